from towline_agent import Agent


def weather(city: str) -> str:
    """Say how the weather is in a city."""
    return f"Sunny in {city}."


agent = Agent("anthropic/claude-opus-5-5", instructions="Be brief.", tools=[weather])
print(agent.run_sync("What is the weather in Lisbon?").final_message)
