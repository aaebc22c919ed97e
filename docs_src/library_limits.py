from towline_agent import Agent
from towline_protocol import Limits

agent = Agent("gemini", limits=Limits(max_steps=8, max_cost=0.10, wall_s=120))
result = agent.run_sync("Prove that there are infinitely many primes.")
print(result.stop_reason)
print("price unknown" if result.cost is None else f"{result.cost:.6f} dollars")
