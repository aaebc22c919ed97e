from towline_agent import EXPLORE, Agent, SubAgent, builtin_tools
from towline_protocol import Limits

critic = SubAgent(
    name="critic",
    description="Looks for the weakest point of a plan.",
    instructions="Name the weakest point, in one sentence.",
    reads_only=True,
)
lead = Agent(
    "anthropic",
    tools=builtin_tools(),
    agents=[EXPLORE, critic],
    limits=Limits(max_cost=0.50),  # what they use counts
)
result = lead.run_sync("Have our plan in plan.txt looked at.")
print(result.final_message, result.usage.input)
