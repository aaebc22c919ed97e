from towline_agent import Agent, connect

provider = connect("groq", api_keys=["gsk-of-the-team", "gsk-of-mine"])
print(Agent(provider).run_sync("Hello").final_message)
