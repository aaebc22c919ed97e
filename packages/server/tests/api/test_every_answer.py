"""What holds for every operation of the contract table."""

import hashlib
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from towline_agent.testing import ScriptedProvider
from towline_protocol import (
    CONTRACT_HEADER,
    CONTRACT_VERSION,
    FAULT_CODES,
    OPERATIONS,
    AddUser,
    AnswerPermission,
    AnswerQuestion,
    ChangePassword,
    ChangeProvider,
    Claim,
    ClaimCall,
    CloseSession,
    CreateSession,
    CreateToken,
    DeclareTools,
    DefaultModel,
    FinishSignIn,
    ForkSession,
    Interrupt,
    Login,
    MarkRead,
    NotePresence,
    Operation,
    Problem,
    PushKeys,
    ReportProgress,
    Resend,
    RevertTurn,
    RunCommand,
    SendPrompt,
    SendResult,
    SetTrust,
    StartSignIn,
    SubscribePush,
    Text,
    UpdateSession,
    encode,
)
from towline_server.api.guard import MAX_BODY, MAX_PROMPT_BODY
from towline_server.api.handlers import HANDLERS
from towline_server.build import BuiltApp
from towline_server.testing import AppClient, Reply, open_test_app

pytestmark = pytest.mark.wide

BODIES: dict[type[msgspec.Struct], msgspec.Struct] = {
    AddUser: AddUser(name="bob", password="a password"),
    AnswerPermission: AnswerPermission(option="allow_once", digest="0" * 64),
    AnswerQuestion: AnswerQuestion(answers={"item_1": ("option_1",)}),
    ChangePassword: ChangePassword(password="a password"),
    ChangeProvider: ChangeProvider(),
    DefaultModel: DefaultModel(),
    Claim: Claim(code="ABCD-EFGH"),
    ClaimCall: ClaimCall(reader="phone"),
    CloseSession: CloseSession(),
    CreateSession: CreateSession(),
    CreateToken: CreateToken(name="bot"),
    DeclareTools: DeclareTools(reader="phone"),
    FinishSignIn: FinishSignIn(),
    ForkSession: ForkSession(),
    Interrupt: Interrupt(),
    Login: Login(password="a password"),
    MarkRead: MarkRead(seq=1),
    NotePresence: NotePresence(client="a phone"),
    RevertTurn: RevertTurn(),
    RunCommand: RunCommand(),
    SetTrust: SetTrust(),
    Resend: Resend(content=(Text(text="hello"),)),
    ReportProgress: ReportProgress(reader="phone", text="on it"),
    SendResult: SendResult(reader="phone"),
    SendPrompt: SendPrompt(content=(Text(text="hello"),)),
    UpdateSession: UpdateSession(title="New", labels=("a",)),
    StartSignIn: StartSignIn(),
    SubscribePush: SubscribePush(
        endpoint="https://push.example.org/a",
        keys=PushKeys(
            p256dh="BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            auth="BTBZMqHH6r4Tts7J_aSIgg",
        ),
    ),
}
"""A body that fits, for each operation that takes one."""

FILE = b"a file"
"""The body of an upload."""

every = pytest.mark.parametrize("name", OPERATIONS)
closed = pytest.mark.parametrize("name", [n for n, row in OPERATIONS.items() if not row.open])
with_body = pytest.mark.parametrize("name", [n for n, row in OPERATIONS.items() if row.request])
of_session = pytest.mark.parametrize(
    "name", [n for n, row in OPERATIONS.items() if "{session}" in row.path]
)


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider("well", "well"), root=tmp_path) as built:
        yield built


@pytest.fixture
def client(built: BuiltApp) -> AppClient:
    return AppClient(built)


def _path(row: Operation, session: str = "ses_0") -> str:
    path = row.path.replace("{file}", hashlib.sha256(FILE).hexdigest())
    path = path.replace("{session}", session).replace("{provider}", "acme")
    return (
        path.replace("{permission}", "prm_0")
        .replace("{token}", "tok_0")
        .replace("{user}", "ann")
        .replace("{question}", "qst_0")
        .replace("{call}", "call_0")
        .replace("{prompt}", "pmt_0")
        .replace("{turn}", "trn_0")
        .replace("{command}", "init")
        .replace("{subscription}", "psh_0")
    )


def _body(row: Operation) -> msgspec.Struct | bytes | None:
    if row.raw:
        return FILE
    return None if row.request is None else BODIES[row.request]


def _problem(reply: Reply, status: int, code: str) -> Problem:
    """The problem in an answer, checked for what every problem has (C2.2)."""
    assert reply.status == status, reply.body
    assert reply.headers[CONTRACT_HEADER] == CONTRACT_VERSION
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["cache-control"] == "no-store"
    problem = reply.read(Problem)
    assert (problem.code, problem.status) == (code, status)
    assert problem.retry == FAULT_CODES[code].retry
    assert problem.request_id == reply.headers["x-request-id"]
    assert problem.title
    assert problem.detail.endswith((".", "…"))
    return problem


@pytest.mark.rules("C2.1")
@pytest.mark.parametrize(
    "name",
    sorted(
        OPERATIONS.keys()
        - {
            "claim",
            "answer_permission",
            "answer_question",
            "claim_call",
            "report_progress",
            "send_result",
            "finish_sign_in",
            "get_diff",
            "revoke_token",
            "resend",
            "retry",
            "revert_turn",
            "test_push",
            "unsubscribe_push",
            "withdraw_prompt",
        }
    ),
)
async def test_every_success_carries_the_contract_and_the_name_of_its_request(
    built: BuiltApp, name: str
) -> None:
    row = OPERATIONS[name]
    code, _ = built.access.new_code()
    client = AppClient(built, token=(await built.access.claim(code, "a device")).token)
    session = await client.create()
    await built.access.accounts.set_password("owner", "a password")
    await built.access.accounts.add_user(AddUser(name="ann", password="a password"))
    await client.ask("POST", "/api/files", FILE)
    if row.stream:
        async with client.follow(session) as wire:
            await wire.take(1)
            head = {key.decode(): value.decode() for key, value in wire.head["headers"]}
            status = wire.head["status"]
    else:
        reply = await client.ask(row.method, _path(row, session), _body(row))
        head, status = reply.headers, reply.status
        assert row.answer is None or reply.read(row.answer)
    assert status == row.status
    assert head[CONTRACT_HEADER] == CONTRACT_VERSION
    assert head["x-request-id"].startswith("req_")
    assert head["x-content-type-options"] == "nosniff"


@pytest.mark.rules("C2.1", "C2.2", "C2.3")
@closed
@pytest.mark.parametrize(
    ("authorization", "reason"),
    [(None, "missing"), ("Basic b3duZXI6", "missing"), ("Bearer twl_foreign", "unknown_token")],
)
async def test_nobody_comes_in_without_a_token_of_this_server(
    client: AppClient, name: str, authorization: str | None, reason: str
) -> None:
    row = OPERATIONS[name]
    headers = {"authorization": authorization}
    reply = await client.ask(row.method, _path(row), _body(row), headers=headers)
    problem = _problem(reply, 401, "unauthorized")
    assert problem.reason == reason
    assert "twl_" not in problem.detail


@pytest.mark.rules("C2.2", "C2.3", "C2.9")
@of_session
async def test_a_session_that_is_not_there_is_not_found(client: AppClient, name: str) -> None:
    row = OPERATIONS[name]
    reply = await client.ask(row.method, _path(row), _body(row))
    assert "ses_0" in _problem(reply, 404, "not_found").detail


@pytest.mark.rules("C2.2", "C2.3")
@with_body
@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
async def test_a_body_that_is_not_said_to_be_json_is_not_read(
    client: AppClient, name: str, kind: str | None
) -> None:
    row = OPERATIONS[name]
    headers = {"content-type": kind}
    reply = await client.ask(row.method, _path(row), _body(row), headers=headers)
    _problem(reply, 415, "unsupported_media")


@pytest.mark.rules("C2.2", "C2.3")
@with_body
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b'{"a":1', b'"text"', b"\xff\xfe", b"[" * 100_000],
)
async def test_a_body_that_is_no_json_object_is_told_so(
    client: AppClient, name: str, body: bytes
) -> None:
    row = OPERATIONS[name]
    reply = await client.ask(row.method, _path(row), body)
    assert len(_problem(reply, 400, "invalid_request").detail) < 500


@pytest.mark.rules("C1.11")
@with_body
async def test_fields_that_this_server_does_not_know_are_passed_over(
    client: AppClient, name: str
) -> None:
    row = OPERATIONS[name]
    body = b'{"of_the_future":{"a":[1]},' + encode(_body(row))[1:].replace(b"{}", b"{ }")
    reply = await client.ask(row.method, _path(row), body.replace(b",}", b"}"))
    assert reply.status != 400, reply.body


@pytest.mark.rules("C2.2", "C2.3")
@every
@pytest.mark.parametrize("method", ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"])
async def test_a_method_that_a_path_does_not_offer_is_told_with_those_that_it_does(
    client: AppClient, name: str, method: str
) -> None:
    path = _path(OPERATIONS[name])
    offered = {row.method for row in OPERATIONS.values() if _path(row) == path}
    offered |= {"HEAD"} if "GET" in offered else set()
    if method in offered:
        return
    reply = await client.ask(method, path, b"{}")
    _problem(reply, 405, "method_not_allowed")
    assert set(reply.headers["allow"].split(", ")) == offered


@pytest.mark.rules("C2.1", "C2.2", "C2.3")
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/api/sessions/", "/api//me"])
async def test_a_path_under_the_api_that_nobody_knows_is_not_found(
    client: AppClient, method: str, path: str
) -> None:
    _problem(await client.ask(method, path), 404, "not_found")


@pytest.mark.rules("C2.1")
@pytest.mark.parametrize(("method", "path"), [("GET", "/nothing.js"), ("POST", "/"), ("PUT", "/x")])
async def test_answers_of_the_page_carry_the_contract_too(
    client: AppClient, method: str, path: str
) -> None:
    reply = await client.ask(method, path)
    assert reply.status in (404, 405)
    assert reply.headers[CONTRACT_HEADER] == CONTRACT_VERSION


@pytest.mark.rules("C2.2", "C2.3")
@every
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.org", ""])
async def test_a_name_that_is_not_this_server_s_is_refused(
    client: AppClient, name: str, host: str
) -> None:
    row = OPERATIONS[name]
    reply = await client.ask(row.method, _path(row), _body(row), headers={"host": host})
    _problem(reply, 403, "forbidden")


@pytest.mark.parametrize("host", ["127.0.0.1:4747", "LOCALHOST", "localhost:80", "[::1]:4747"])
async def test_the_names_of_this_machine_are_this_server_s(client: AppClient, host: str) -> None:
    assert (await client.ask("GET", "/healthz", headers={"host": host})).status == 200


@pytest.mark.rules("C2.1", "C2.3")
@every
async def test_a_request_that_speaks_another_major_version_is_refused(
    client: AppClient, name: str
) -> None:
    row = OPERATIONS[name]
    headers = {CONTRACT_HEADER: "2"}
    reply = await client.ask(row.method, _path(row), _body(row), headers=headers)
    assert "update the older" in _problem(reply, 400, "version_mismatch").detail


@pytest.mark.rules("C2.1")
@pytest.mark.parametrize("contract", ["0", "2.1", "11", "one", ""])
async def test_what_is_not_this_version_is_another_one(client: AppClient, contract: str) -> None:
    reply = await client.ask("GET", "/healthz", headers={CONTRACT_HEADER: contract})
    assert _problem(reply, 400, "version_mismatch").code == "version_mismatch"


@pytest.mark.rules("C2.1")
@pytest.mark.parametrize("contract", ["1", "1.7"])
async def test_a_request_that_speaks_this_major_version_is_served(
    client: AppClient, contract: str
) -> None:
    reply = await client.ask("GET", "/healthz", headers={CONTRACT_HEADER: contract})
    assert reply.status == 200


@pytest.mark.rules("C2.2", "C2.3")
@pytest.mark.parametrize("name", [n for n, row in OPERATIONS.items() if row.method != "GET"])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
async def test_a_page_of_another_site_may_not_write(
    client: AppClient, name: str, origin: str
) -> None:
    row = OPERATIONS[name]
    headers = {"origin": origin}
    reply = await client.ask(row.method, _path(row), _body(row), headers=headers)
    _problem(reply, 403, "forbidden")


async def test_this_server_s_own_page_may_write_and_any_page_may_ask_for_health(
    client: AppClient,
) -> None:
    own = {"origin": "http://127.0.0.1:4747", "host": "127.0.0.1:4747"}
    reply = await client.ask("POST", "/api/sessions", CreateSession(), headers=own)
    assert reply.status == 201
    foreign = {"origin": "http://evil.example"}
    assert (await client.ask("GET", "/healthz", headers=foreign)).status == 200


@pytest.mark.rules("C2.8")
@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-1.2_3", True), ("", False), ("a" * 65, False), ("a b", False), ("a\u00e9", False)],
)
async def test_the_name_of_a_request_is_kept_when_it_is_one(
    client: AppClient, given: str, *, kept: bool
) -> None:
    reply = await client.ask("GET", "/api/nothing", headers={"x-request-id": given})
    named = _problem(reply, 404, "not_found").request_id
    assert (named == given) is kept


@pytest.mark.rules("C2.3", "C6")
@with_body
@pytest.mark.parametrize("pieces", [1, 7])
async def test_a_body_that_is_too_large_is_refused_however_it_comes(
    client: AppClient, name: str, pieces: int
) -> None:
    row = OPERATIONS[name]
    bound = MAX_PROMPT_BODY if row.large else MAX_BODY
    piece = b" " * (bound // pieces)
    body = [piece] * pieces + [b" " * (bound - len(piece) * pieces)]
    just = await client.ask(row.method, _path(row), body)
    _problem(just, 400, "invalid_request")  # it was read whole
    _problem(await client.ask(row.method, _path(row), [*body, b" "]), 413, "payload_too_large")


@pytest.mark.rules("C2.2", "C2.3")
async def test_a_fault_of_the_server_s_own_tells_nothing_but_the_request_s_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(call: object) -> None:
        del call
        raise RuntimeError("the secret is 42")

    monkeypatch.setitem(HANDLERS, "me", broken)
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        reply = await AppClient(built).ask("GET", "/api/auth/me")
    problem = _problem(reply, 500, "internal_error")
    assert "42" not in problem.detail
    assert f"{problem.request_id}" in caplog.text
    assert "the secret is 42" in caplog.text  # the traceback is in the log alone
