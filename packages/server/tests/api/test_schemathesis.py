"""The server, held against its own OpenAPI document by requests that are made from it.

Each operation gets some requests that fit the document and some that do not. Whatever comes, the
answer is one that the document tells: its status, its kind, its shape, and never a fault of ours.
"""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote, urlencode

import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.core import NotSet
from schemathesis.core.transport import Response

from towline_agent.testing import ScriptedProvider
from towline_protocol import CONTRACT_HEADER, OPERATIONS, openapi_document
from towline_server.build import BuiltApp
from towline_server.testing import AppClient, Reply, open_test_app

pytestmark = pytest.mark.slow

EXAMPLES: Final = 3  # of each kind for each operation: the whole run stays below 30 s
DOCUMENT: Final = msgspec.json.decode(msgspec.json.encode(openapi_document()))
PATHS: Final = DOCUMENT["paths"]
SCHEMA: Final = schemathesis.openapi.from_dict(DOCUMENT)
TRIED: Final = [name for name, row in OPERATIONS.items() if not row.stream]
LEFT_OUT: Final = frozenset(
    {"host", "content-length", "towline-timeout", "cookie", "authorization"}
)
"""What a client's library sets itself, and a bound that would make any answer a late one."""


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider(*["well"] * 20), root=tmp_path) as built:
        yield built


@pytest.mark.rules("C2.1", "C2.2", "C2.3", "C2.4")
@pytest.mark.parametrize("name", TRIED)
async def test_every_answer_is_one_that_the_document_tells(built: BuiltApp, name: str) -> None:
    row = OPERATIONS[name]
    operation = cast("Any", SCHEMA[row.path][row.method])
    client = AppClient(built)
    session = await client.create()
    sent = 0
    for case in _cases(operation):
        if sent % 2 and "session" in case.path_parameters:
            case.path_parameters["session"] = session
        path = _path(case)
        if path is not None:
            _check(operation, case, await _send(client, case, path))
            sent += 1
    assert sent >= EXAMPLES


def _cases(operation: Any) -> list[Any]:
    """Requests to an operation, first those that fit the document, then those that do not."""
    made: list[Any] = []
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=(Phase.generate,),
            suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)),
        )
        @given(case=operation.as_strategy(mode))
        def note(case: Any) -> None:
            made.append(case)

        note()
    return made


def _path(case: Any) -> str | None:
    """The path as a server sees it; `None` when it is another operation's or none."""
    values = {name: unquote(str(value)) for name, value in case.path_parameters.items()}
    if any(not value or set(value) & {"/", "?"} for value in values.values()):
        return None
    path: str = case.path
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    query = urlencode(case.query or {}, doseq=True, errors="replace")
    return f"{path}?{query}" if query else path


async def _send(client: AppClient, case: Any, path: str) -> Reply:
    given_headers = cast("dict[str, object]", case.headers or {})
    headers: dict[str, str | None] = {
        name.lower(): str(value)
        for name, value in given_headers.items()
        if name.lower() not in LEFT_OUT and str(value).isascii() and name.isascii()
    }
    if isinstance(case.body, NotSet):
        return await client.ask(case.method, path, headers=headers)
    headers["content-type"] = case.media_type if "*" not in case.media_type else "text/plain"
    return await client.ask(case.method, path, _body(case), headers=headers)


def _body(case: Any) -> bytes:
    if isinstance(case.body, bytes):
        return case.body
    if case.media_type == "application/json":
        return json.dumps(case.body).encode()
    return str(case.body).encode("utf-8", "replace")


def _check(operation: Any, case: Any, reply: Reply) -> None:
    said = f"{case.method} {case.path} {case.body!r:.200}: {reply.status} {reply.body[:300]!r}"
    assert reply.status < 500, said
    answers = PATHS[case.path][case.method.lower()]["responses"]
    assert str(reply.status) in answers, said
    assert reply.headers[CONTRACT_HEADER] == "1"
    told = answers[str(reply.status)]
    if "$ref" in told:
        told = DOCUMENT["components"]["responses"][str(reply.status)]
    kind = reply.headers.get("content-type", "").partition(";")[0]
    assert kind in told["content"] if "content" in told else not reply.body, said
    if reply.status == 429:
        assert int(reply.headers["retry-after"]) >= 1
    response = Response(
        status_code=reply.status,
        headers={name: [value] for name, value in reply.headers.items()},
        content=reply.body,
        request=requests.Request(case.method, "http://127.0.0.1/").prepare(),
        elapsed=0.0,
        verify=False,
    )
    operation.validate_response(response, case=case)
