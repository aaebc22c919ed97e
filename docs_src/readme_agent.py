from dataclasses import dataclass

from towline_agent import Agent


@dataclass
class Bill:
    number: str
    total: float


def newest_mail(sender: str) -> str:
    """Read the newest mail of a sender."""
    return "Bill 2026-118: three nights at 80 euros, 240 euros in all."


agent = Agent("anthropic", instructions="You do the books.", tools=[newest_mail])
result = agent.run_sync("What do we owe Hotel Alba?", output=Bill)
print(result.output.number, result.output.total)
