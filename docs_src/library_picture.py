import base64
from pathlib import Path

from towline_agent import Agent
from towline_protocol import Image, Text

data = base64.b64encode(Path("cat.png").read_bytes()).decode()
prompt = [Image(media_type="image/png", data=data), Text(text="What is in the picture?")]
print(Agent("gemini").run_sync(prompt).final_message)
