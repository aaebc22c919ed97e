"""One tool and one question: `python examples/weather.py`.

Needs a provider's key in the environment, such as OPENAI_API_KEY. TOWLINE_MODEL names another
provider or model.
"""

import os
import sys

from towline_agent import Agent
from towline_protocol import TowlineError


def weather(city: str) -> str:
    """Say how the weather is.

    Args:
        city: The English name of a city.
    """
    return f"It is sunny in {city}, 24 degrees."


def main() -> None:
    agent = Agent(
        os.environ.get("TOWLINE_MODEL", "openai"),
        instructions="Be brief.",
        tools=[weather],
    )
    result = agent.run_sync("What is the weather in Lisbon?")
    print(result.final_message)
    print(f"({result.steps} steps, {result.tool_call_count} call)")


try:
    main()
except TowlineError as error:
    sys.exit(error.message)  # one line, such as which key is missing
