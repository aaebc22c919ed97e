from pathlib import Path

import msgspec

from towline_agent import Agent
from towline_protocol import Message

kept = Path("conversation.json")
earlier = kept.read_bytes() if kept.exists() else b"[]"
messages = msgspec.json.decode(earlier, type=tuple[Message, ...])

result = Agent("openai").run_sync("What did I ask before?", messages=messages)
kept.write_bytes(msgspec.json.encode(result.messages))
print(len(messages), result.final_message)
