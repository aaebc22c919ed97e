from towline_agent import Agent, make_spawn_agent

agents = {
    "reader": Agent("groq", instructions="Read, and report in three sentences."),
    "critic": Agent("openai", instructions="Find the weakest point."),
}


async def run(task: str, name: str | None) -> str:
    return (await agents[name or "reader"].run(task)).final_message


spawn = make_spawn_agent(run, {"reader": "reads long texts", "critic": "finds faults"})
lead = Agent("anthropic", tools=[spawn])
print(lead.run_sync("Have our plan looked at: we sell umbrellas in Lisbon.").final_message)
