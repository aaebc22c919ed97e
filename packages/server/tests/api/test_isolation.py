"""Two users of one server: what one has, the other neither sees nor touches (C2.9)."""

import hashlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from towline_agent import ToolContext, tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    OPERATIONS,
    CreateSession,
    CreateToken,
    NewToken,
    Operation,
    PermissionRequested,
    Problem,
    PushKeys,
    PushSubscription,
    SessionId,
    SubscribePush,
    Text,
)
from towline_server.build import BuiltApp
from towline_server.testing import AppClient, open_test_app, sign_in

SECRET = "zebrafish"
FILE = f"what only ann knows: {SECRET}".encode()

DEVICE = SubscribePush(
    endpoint=f"https://push.example.org/{SECRET}",
    keys=PushKeys(
        p256dh="BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        auth="BTBZMqHH6r4Tts7J_aSIgg",
    ),
)

pytestmark = pytest.mark.wide

owned = pytest.mark.parametrize(
    "name", [n for n, row in OPERATIONS.items() if "{" in row.path and not row.admin]
)
listing = pytest.mark.parametrize(
    "name",
    [
        n
        for n, row in OPERATIONS.items()
        if row.method == "GET" and "{" not in row.path and not (row.admin or row.stream)
    ],
)
guarded = pytest.mark.parametrize("name", [n for n, row in OPERATIONS.items() if row.admin])


@dataclass(frozen=True)
class House:
    """A server with two users, and what one of them has."""

    built: BuiltApp
    ann: AppClient
    eve: AppClient
    ids: dict[str, str]
    """Path parameter to the id of something that is Ann's."""

    @property
    def session(self) -> SessionId:
        return SessionId(self.ids["session"])


@tool(effect="write")
async def change(context: ToolContext, what: str) -> str:
    """Change something.

    Args:
        what: What to change.
    """
    del context
    return what


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    provider = ScriptedProvider(call("change", what=SECRET), "done")
    async with open_test_app(provider, root=tmp_path, tools=(change,), mode="ask") as built:
        ann, eve = await sign_in(built, "ann"), await sign_in(built, "eve")
        new = CreateSession(title=f"the {SECRET} plan", prompt=(Text(text=f"about {SECRET}"),))
        session = await ann.create(new)
        asked: list[PermissionRequested] = []
        async with ann.follow(session) as wire:
            await wire.until(lambda: b'"permission_requested"' in b"".join(wire.pieces))
        asked = [*(await ann.view(session)).permissions]
        await ann.ask("POST", "/api/files", FILE, headers={"content-type": "text/plain"})
        token = await ann.ask("POST", "/api/auth/tokens", CreateToken(name=f"{SECRET} bot"))
        pushed = await ann.ask("POST", "/api/push/subscriptions", DEVICE)
        view = await ann.view(session)
        assert view.turn is not None
        ids = {
            "session": session,
            "permission": asked[0].permission,
            "call": asked[0].call,
            "turn": view.turn.id,
            "prompt": "prm_0",
            "command": "init",
            "question": "qst_0",
            "file": hashlib.sha256(FILE).hexdigest(),
            "token": token.read(NewToken).id,
            "user": "ann",
            "subscription": pushed.read(PushSubscription).id,
        }
        yield House(built, ann, eve, ids)


def _absent(ids: dict[str, str]) -> dict[str, str]:
    """Ids of the same shape, of things that nobody has."""
    return {
        name: hashlib.sha256(b"").hexdigest() if name == "file" else f"{id_[:3]}_absent"
        for name, id_ in ids.items()
    }


def _minimal(kind: msgspec.inspect.Type) -> Any:
    """The least JSON that is of this type."""
    match kind:
        case msgspec.inspect.StructType():
            fields = {f.encode_name: _minimal(f.type) for f in kind.fields if f.required}
            return fields if kind.tag_field is None else {kind.tag_field: kind.tag, **fields}
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return [_minimal(kind.item_type)]
        case msgspec.inspect.UnionType():
            return _minimal(kind.types[0])
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            return 1
        case msgspec.inspect.BoolType():
            return False
        case msgspec.inspect.DictType():
            return {}
        case _:
            return "some words"


def _body(row: Operation) -> bytes | None:
    if row.request is None:
        return b"some bytes" if row.method in ("POST", "PUT") else None
    return msgspec.json.encode(_minimal(msgspec.inspect.type_info(row.request)))


async def _problem(client: AppClient, row: Operation, ids: dict[str, str]) -> Problem:
    reply = await client.ask(row.method, row.path.format(**ids), _body(row))
    assert reply.status == 404, reply.body
    assert SECRET.encode() not in reply.body
    problem = reply.read(Problem)
    detail = problem.detail
    for name, id_ in ids.items():
        detail = detail.replace(id_, name)
    return msgspec.structs.replace(problem, detail=detail, request_id="")


@pytest.mark.rules("C2.9")
@owned
async def test_what_is_another_user_s_looks_as_if_it_were_not_there(
    house: House, name: str
) -> None:
    row = OPERATIONS[name]
    before = (await house.ann.view(house.session), await house.ann.ask("GET", "/api/auth/tokens"))
    foreign = await _problem(house.eve, row, house.ids)
    assert foreign == await _problem(house.eve, row, _absent(house.ids))
    assert foreign.code == "not_found"
    after = (await house.ann.view(house.session), await house.ann.ask("GET", "/api/auth/tokens"))
    assert after[0] == before[0]  # nothing happened to it either
    assert after[1].body == before[1].body


@pytest.mark.rules("C2.9")
@pytest.mark.parametrize("name", [n for n, row in OPERATIONS.items() if "{session}" in row.path])
async def test_an_admin_has_no_way_into_the_sessions_of_others(house: House, name: str) -> None:
    row = OPERATIONS[name]
    admin = await sign_in(house.built, "boss", admin=True)
    for client in (admin, AppClient(house.built)):
        assert (await _problem(client, row, house.ids)).code == "not_found"


@pytest.mark.rules("C2.9")
@listing
async def test_no_list_holds_what_is_another_user_s(house: House, name: str) -> None:
    row = OPERATIONS[name]
    for client in (house.eve, AppClient(house.built)):
        reply = await client.ask("GET", row.path)
        assert reply.status == 200
        assert SECRET.encode() not in reply.body
        hers = [id_ for name, id_ in house.ids.items() if name != "command"]  # those are anybody's
        assert not [id_ for id_ in hers if f'"{id_}"'.encode() in reply.body]


async def test_a_search_finds_nothing_of_another_user(house: House) -> None:
    path = f"/api/sessions?search={SECRET}"
    assert SECRET.encode() in (await house.ann.ask("GET", path)).body
    assert SECRET.encode() not in (await house.eve.ask("GET", path)).body


@pytest.mark.rules("C2.9")
async def test_a_user_s_feed_tells_of_nobody_else(house: House) -> None:
    async with house.ann.follow_all() as hers, house.eve.follow_all() as wire:
        await wire.take(2)
        await house.ann.create(CreateSession(title=f"another {SECRET}"))
        await hers.until(lambda: f"another {SECRET}".encode() in b"".join(hers.pieces))
        mine = await house.eve.create(CreateSession(title="a plan of my own"))
        await wire.until(lambda: mine.encode() in b"".join(wire.pieces))
        told = b"".join(wire.pieces)
    assert SECRET.encode() not in told
    assert house.session.encode() not in told


@pytest.mark.rules("C2.9")
async def test_a_feed_takes_no_session_of_another_user_along(house: House) -> None:
    refused = await house.eve.ask("GET", f"/api/events?session={house.session}")
    assert (refused.status, refused.read(Problem).code) == (404, "not_found")
    absent = await house.eve.ask("GET", "/api/events?session=ses_absent")
    assert refused.read(Problem).detail.replace(house.session, "ses_absent") == (
        absent.read(Problem).detail
    )


@pytest.mark.rules("C2.9")
async def test_a_token_that_ends_ends_the_feed_too(house: House) -> None:
    async with house.ann.follow_all() as wire:
        await wire.take(1)
        assert (await AppClient(house.built).ask("DELETE", "/api/users/ann")).status == 204
        await wire.until(lambda: wire.ended)


@pytest.mark.rules("C2.9")
@guarded
async def test_what_concerns_everybody_is_for_admins(house: House, name: str) -> None:
    row = OPERATIONS[name]
    ids = {**house.ids, "provider": "acme"}
    reply = await house.eve.ask(row.method, row.path.format(**ids), _body(row))
    assert (reply.status, reply.read(Problem).code) == (403, "forbidden")
    assert SECRET.encode() not in reply.body


@pytest.mark.rules("C2.5", "C2.9")
async def test_one_user_s_idempotency_key_is_not_another_s(house: House) -> None:
    headers = {"idempotency-key": "the same"}
    new = CreateSession(title=f"a {SECRET}")
    first = await house.ann.ask("POST", "/api/sessions", new, headers=headers)
    again = await house.ann.ask("POST", "/api/sessions", new, headers=headers)
    other = await house.eve.ask(
        "POST", "/api/sessions", CreateSession(title="mine"), headers=headers
    )
    assert first.body == again.body
    assert other.status == 201
    assert SECRET.encode() not in other.body
