from towline_agent import Agent


def weather(city: str) -> str:
    """Say how the weather is in a city."""
    return f"Sunny in {city}."


agent = Agent("openai", instructions="Be brief.", tools=[weather])
result = agent.run_sync("What is the weather in Lisbon?")
print(result.final_message)
