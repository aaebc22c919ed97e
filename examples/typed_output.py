"""An answer of a certain type: `python examples/typed_output.py "Tea with Ann at four"`."""

import os
import sys
from dataclasses import dataclass
from typing import Literal

from towline_agent import Agent
from towline_protocol import TowlineError


@dataclass
class Entry:
    """A line of a diary."""

    what: str
    day: Literal["today", "tomorrow", "later"]
    hour: int | None
    guests: list[str]


def main(words: str) -> None:
    agent = Agent(os.environ.get("TOWLINE_MODEL", "openai"), instructions="You keep a diary.")
    entry = agent.run_sync(words, output=Entry).output
    print(f"{entry.day}, {entry.hour}: {entry.what}, with {', '.join(entry.guests) or 'nobody'}")


try:
    main(sys.argv[1] if len(sys.argv) > 1 else "Dentist, tomorrow at nine.")
except TowlineError as error:
    sys.exit(error.message)  # one line, such as which key is missing
