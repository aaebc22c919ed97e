from typing import Literal

from towline_agent import Agent, ToolContext, ToolError, tool

stock = {"tea": 12, "coffee": 0}


@tool(effect="read")
def count(article: Literal["tea", "coffee"]) -> int:
    """Count the packets of an article that are left."""
    return stock[article]


@tool(effect="write", timeout_s=30)
async def order(context: ToolContext, article: Literal["tea", "coffee"], packets: int = 10) -> str:
    """Order packets of an article.

    Args:
        article: What to order.
        packets: At most 100.
    """
    if packets > 100:
        raise ToolError(f"{packets} packets are too many; order 100 at most.")
    context.progress(f"ordering {article}")
    stock[article] += packets
    return "ordered"


agent = Agent("openai", tools=[count, order])
print(agent.run_sync("See that we have enough coffee.").final_message)
print(stock)
