"""The session service inside a web app of your own, with your users: `python examples/embed.py`.

Needs a provider's key in the environment, such as OPENAI_API_KEY. Then, as Ann:

    curl http://127.0.0.1:8000/agent/api/sessions -H 'authorization: Bearer badge-of-ann' \
      -H 'content-type: application/json' -d '{"prompt": [{"type": "text", "text": "Weather?"}]}'
    curl -N http://127.0.0.1:8000/agent/api/sessions/THE-ID/events \
      -H 'authorization: Bearer badge-of-ann'
"""

import os
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from towline_agent import Toolset, connect, tool
from towline_server import AgentSpec, Caller, Config, create_app

BADGES = {"badge-of-ann": "user-17", "badge-of-bob": "user-42"}  # yours: a cookie, a token, a login


@tool(effect="read")
async def weather(city: str) -> str:
    """Say how the weather is."""
    return f"It is sunny in {city}, 24 degrees."


async def who(connection: HTTPConnection) -> Caller | None:
    """Who is asking. The id owns the sessions for ever, so take one that never changes hands."""
    badge = connection.headers.get("authorization", "").removeprefix("Bearer ")
    user = BADGES.get(badge)
    return None if user is None else Caller(user)


async def home(request: Request) -> PlainTextResponse:
    """A page of the app around it."""
    return PlainTextResponse(f"The agent is at {request.url_for('agent', path='/docs')}.\n")


agent = create_app(
    Config(data_dir=Path("embedded-data").absolute(), roots=(Path.cwd(),)),
    agents={"helper": AgentSpec(name="helper", tools=Toolset([weather]))},
    connect=connect,
    default_model=os.environ.get("TOWLINE_MODEL", "openai/gpt-6.1-sol"),
    authenticate=who,
)
app = Starlette(
    routes=[Route("/", home), Mount("/agent", app=agent, name="agent")], lifespan=agent.lifespan
)

if __name__ == "__main__":
    port = int(os.environ.get("PORT", "8000"))
    uvicorn.run(app, port=port, timeout_graceful_shutdown=5)  # or open streams hold back the stop
