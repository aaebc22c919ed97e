from towline_agent import Agent

agent = Agent(
    "anthropic",
    fallbacks=["openai", "groq/openai/gpt-oss-120b"],  # asked in this order
    effort="high",
    server_tools=["web_search"],
)
print(agent.run_sync("What is new in Lisbon this week?").final_message)
