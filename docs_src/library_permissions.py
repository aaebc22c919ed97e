from towline_agent import Agent, parse_rule, tool
from towline_protocol import PermissionRequested

sent: list[str] = []


@tool(
    effect="network",
    title=lambda arguments: f"Send a mail to {arguments['to']}",
    subject=lambda arguments: arguments["to"],  # what rules are matched against
)
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    sent.append(f"{to}: {text}")
    return "sent"


async def answer(request: PermissionRequested) -> str:
    """Decide: the id of one of the request's options."""
    print(f"{request.title}?", [option.id for option in request.options])
    return "allow_once"


agent = Agent(
    "openai",
    tools=[send_mail],
    mode="ask",
    rules=[parse_rule("deny send_mail(boss@example.com)")],
    answer=answer,
)
agent.run_sync("Tell ann@example.com and boss@example.com that I am ill.")
print(sent)
