import base64
from pathlib import Path

from towline_agent import Agent
from towline_protocol import Image, Message

data = base64.b64encode(Path("cat.png").read_bytes()).decode()
picture = Message("user", (Image(media_type="image/png", data=data),))
print(Agent("gemini").run_sync("What is in the picture?", messages=[picture]).final_message)
