from dataclasses import dataclass
from typing import Literal

from towline_agent import Agent


@dataclass
class Line:
    what: str
    price: float


@dataclass
class Invoice:
    number: str
    currency: Literal["EUR", "USD"]
    lines: list[Line]


mail = "Invoice 118. Three nights, 240 euros. One breakfast, 9 euros."
result = Agent("openai").run_sync(f"Read this invoice: {mail}", output=Invoice)
print(sum(line.price for line in result.output.lines), result.output.currency)
