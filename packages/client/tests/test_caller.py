"""Single calls: keys, retries, credentials, checks."""

import asyncio
from collections import deque
from contextlib import aclosing

import pytest

from towline_client import (
    Client,
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    Models,
    Push,
    Session,
    Unauthorized,
)
from towline_client.testing import (
    ManualClock,
    ScriptedServer,
    ScriptedTransport,
    ScriptedTurn,
    connect,
    refuse,
)
from towline_client.transport import Call, Reply, check_reply
from towline_protocol import (
    OPERATIONS,
    AddUser,
    ClientTool,
    CreateSession,
    FileChange,
    FilesChanged,
    Operation,
    Option,
    Preview,
    Problem,
    PushKeys,
    QuestionItem,
    SessionId,
    SessionInfo,
    SessionRows,
    SubscribePush,
    Unknown,
    UpdateSession,
    VersionMismatch,
    block_text,
    encode,
)


def _names(server: ScriptedServer) -> list[str]:
    return [call.operation.name for call in server.calls]


async def _use_account(client: Client) -> None:
    account = client.account
    assert (await client.claim("ABCD-1234", name="laptop")).user == "me"
    assert (await client.pair()).code == "ABCD1234"
    assert (await client.me()).user == "me"
    assert (await account.login("correct horse", user="me", name="laptop")).user == "me"
    assert [token.id for token in (await account.list_tokens()).tokens] == ["tok_1"]
    assert (await account.create_token("bot", lifetime_s=60)).id == "tok_2"
    await account.revoke_token("tok_1")
    new = AddUser(name="ann", password="correct horse")
    assert (await account.add_user(new)).name == "ann"
    assert [user.name for user in (await account.list_users()).users] == ["ann"]
    await account.change_password("ann", "correct horse", old="another", everywhere=True)
    await account.remove_user("ann")
    await client.logout()


async def _use_discovery(client: Client) -> None:
    about = client.discovery
    assert (await client.health()).status == "ok"
    assert (await about.ready()).status == "ready"
    assert {row.name for row in (await about.manifest()).operations} == OPERATIONS.keys()
    assert (await about.capabilities()).agents[0].name == "main"
    assert (await about.start("/home/person")).folder == "/home/person"
    assert (await about.start_paths("a", folder="/home/person", limit=5)).paths == ()
    assert (await about.openapi())["openapi"] == "3.1.0"
    assert (await about.docs()).startswith("<!doctype html>")


async def _use_models(models: Models) -> None:
    assert (await models.list_models()).default == "scripted/model"
    assert (await models.set_default_model("scripted/model")).model == "scripted/model"
    assert (await models.local_model()).state == "ready"
    assert (await models.list_providers()).providers[0].provider == "scripted"
    assert (await models.change_provider("scripted", api_key="k", backup_keys=["b"])).key == "abcd"
    assert (await models.test_provider("scripted")).keys[0].works
    assert (await models.start_sign_in("scripted")).url == "http://here/consent"
    assert (await models.finish_sign_in("scripted", "http://back")).state == "ready"
    await models.cancel_sign_in("scripted")
    assert (await models.remove_provider("scripted")).provider == "scripted"
    assert (await models.get_usage("day", first="2026-01-31")).total.requests == 1


async def _use_push(push: Push) -> None:
    assert (await push.key()).languages == ("en", "zh")
    browser = SubscribePush(
        endpoint="https://push.example.org/1", keys=PushKeys(p256dh="B", auth="a"), name="phone"
    )
    assert (await push.subscribe(browser)).name == "phone"
    (phone,) = (await push.subscriptions()).subscriptions
    assert (await push.test(phone.id)).outcome == "delivered"
    await push.unsubscribe(phone.id)
    await push.presence("page-1")


async def _use_sessions(client: Client) -> SessionInfo:
    info = await client.create_session(CreateSession(title="A talk"))
    assert (await client.list_sessions()).sessions == (info,)
    assert (await client.list_requests()).requests == ()
    assert await client.get_session(info.id) == info
    assert (await client.get_view(info.id)).view.title == "A talk"
    settings = await client.life.read(info.id)
    change = UpdateSession(title="The talk")
    changed = await client.life.update(info.id, change, if_match=settings.tag, key="k")
    assert changed.info.title == "The talk"
    kept = await client.upload(b"words", name="a.txt")
    assert (kept.name, kept.size) == ("a.txt", 5)
    assert await client.download(kept.file) == b"words"
    return info


async def _use_session(session: Session) -> None:
    await session.declare_tools(_LOCATE)
    session.attend(["permission", "question"])
    asking = asyncio.create_task(session.ask("Hello"))
    async for view in session.views:
        for request in view.permissions:
            await session.answer(request, "allow_once")
        for question in view.questions:
            await session.answer_question(question, {"size": "s"})
        for call in view.open_calls:
            if call.expires_at is not None:
                await session.claim(call.call)
                await session.report_progress(call.call, "looking")
                await session.send_result(call.call, "here")
        if view.last_turn is not None:
            break
    assert await asking == "allow_once, s, here"
    assert (await session.history()).messages == ()
    assert (await session.project.paths("src")).paths == ("src/", "src/app.py")
    assert (await session.project.commands()).commands[0].name == "help"
    assert (await session.project.suggestions()).suggestions[1] == "/init"
    assert (await session.project.tools()).tools[0].effect == "read"
    trust = await session.project.trust()
    assert (await session.project.set_trust(trust.digest)).trusted
    assert await session.mark_read() == session.view.seq
    turn = session.view.messages[0].turn
    assert turn is not None
    assert [row.files for row in (await session.files.checkpoints()).checkpoints] == [1]
    assert [change.path for change in (await session.files.diff(turn)).changes] == ["a.txt"]
    assert (await session.files.revert(turn)).reverted == ("a.txt",)
    assert (await session.files.checkpoints()).checkpoints == ()
    assert (await session.fork(turn)).title == "The talk"
    assert (await session.compact()).id == session.id
    assert (await session.retry()).position == 0
    async for view in session.views:
        if view.permissions:
            break
    waiting = await session.prompt("Not now")
    await session.withdraw(waiting.prompt)
    stopped = (await session.interrupt()).turn
    assert stopped is not None
    assert (await session.resume_queue()).queued == 0
    assert (await session.resend(stopped, "Hello again")).position == 0
    assert (await session.project.run("init")).session == session.id


_LOCATE = ClientTool(name="locate", description="Where it is.", parameters={"type": "object"})
_SIZE = QuestionItem(id="size", prompt="Which size?", options=(Option(id="s", label="Small"),))


async def _ask_for_all(turn: ScriptedTurn, text: str) -> None:
    del text
    preview = Preview(kind="command", text="make test")
    call, option = await turn.ask("run_program", "make test", preview=preview)
    turn.emit(FilesChanged(call=call, changes=(FileChange(path="a.txt", kind="created"),)))
    turn.end_call(call, "fine")
    answers = await turn.question(_SIZE)
    found = await turn.call_client("locate", "Where it is")
    await turn.say(", ".join([option, *answers["size"], block_text(found.content)]))


async def test_every_operation_of_the_table_can_be_called() -> None:
    server = ScriptedServer(_ask_for_all)
    async with connect(server) as client:
        await _use_discovery(client)
        await _use_account(client)
        await _use_models(client.models)
        await _use_push(client.push)
        info = await _use_sessions(client)
        session = await client.open(info.id)
        async with aclosing(client.feed()) as feed:
            assert isinstance(await anext(feed), SessionRows)
        await _use_session(session)
        assert (await client.life.close(info.id, reason="done", key="k")).closed
        assert (await client.life.delete(info.id, key="k")).session == info.id
    missing = set(OPERATIONS) - set(_names(server))
    assert not missing, "an operation of the table has no call"


@pytest.mark.slow
@pytest.mark.rules("C2.5")
async def test_a_prompt_whose_reply_was_lost_is_sent_again_under_the_same_key() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        session = await client.open()
        server.lose.append("send_prompt")
        assert await session.ask("once") == "You said: once"
        sent = [call for call in server.calls if call.operation.name == "send_prompt"]
        assert len(sent) == 2
        assert len({call.headers["idempotency-key"] for call in sent}) == 1
        said = [entry for entry in session.view.messages if entry.role == "user"]
        assert len(said) == 1
        assert said[0].key == sent[0].headers["idempotency-key"]


@pytest.mark.rules("C2.5")
async def test_a_key_of_ones_own_is_used() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        first = await client.create_session(key="mine")
        assert await client.create_session(key="mine") == first
        assert await client.create_session() != first


async def test_a_call_gives_up_after_three_retries_and_waits_between_them() -> None:
    server = ScriptedServer()
    clock = ManualClock()
    async with connect(server, clock=clock) as client:
        server.lose.extend(["me"] * 4)
        asking = asyncio.create_task(client.me())
        seen: list[tuple[int, int]] = []
        for step_ms in (0, 999, 1, 2999, 1):
            clock.advance(step_ms)
            for _ in range(20):
                await asyncio.sleep(0)
            seen.append((clock.now_ms(), len(server.calls)))
        assert seen == [(0, 2), (999, 2), (1000, 3), (3999, 3), (4000, 4)]
        with pytest.raises(ConnectionLost):
            await asking


async def test_a_call_that_might_act_twice_is_not_sent_again() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        server.lose.append("claim")
        with pytest.raises(ConnectionLost):
            await client.claim("ABCD1234")
        assert _names(server) == ["claim"]


@pytest.mark.rules("C2.3")
async def test_a_busy_server_is_asked_again_after_the_time_it_names() -> None:
    server = ScriptedServer()
    clock = ManualClock()
    async with connect(server, clock=clock) as client:
        busy = refuse("draining", "The server is restarting; wait.", retry_after_s=2)
        server.replies["me"] = deque([busy])
        asking = asyncio.create_task(client.me())
        for _ in range(20):
            await asyncio.sleep(0)
        assert _names(server) == ["me"]
        clock.advance(2000)
        assert (await asking).user == "me"


async def test_a_wait_of_days_is_the_callers_decision() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        server.replies["me"] = deque([refuse("rate_limited", "Wait.", retry_after_s=259_200)])
        with pytest.raises(CommandRejected) as caught:
            await client.me()
        assert caught.value.retry == "same_request"
        assert caught.value.retry_after_s == 259_200
        assert caught.value.fault().code == "rate_limited"


async def test_a_refusal_that_a_retry_does_not_help_comes_at_once() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        with pytest.raises(CommandRejected) as caught:
            await client.get_session(SessionId("ses_none"))
        assert caught.value.problem.code == "not_found"
        assert _names(server) == ["get_session"]


async def test_the_credential_is_asked_for_every_request_and_not_for_open_ones() -> None:
    server = ScriptedServer()
    count = 0

    async def credential() -> str:
        nonlocal count
        count += 1
        return f"token {count}"

    transport = ScriptedTransport(server)
    async with asyncio.timeout(10), server, Client("", credential, transport=transport) as client:
        await client.health()
        await client.me()
        await client.me()
    assert [call.token for call in server.calls] == [None, "token 1", "token 2"]
    assert "token" not in repr(server.calls)


@pytest.mark.rules("C4.6")
async def test_a_credential_shows_in_no_repr_no_message_and_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ScriptedServer()
    caplog.set_level("DEBUG")
    client = Client("", "hush", transport=ScriptedTransport(server))
    async with asyncio.timeout(10), server, client:
        session = await client.open()
        await session.ask("Hello")
        server.replies["me"] = deque([refuse("unauthorized", "It was revoked.")])
        with pytest.raises(Unauthorized) as caught:
            await client.me()
        shown = [client, session, client.account, session.connection.value, caught.value]
        assert "hush" not in repr([*shown, *server.calls, caught.value.fault()])
    assert {call.token for call in server.calls} == {"hush"}
    assert "hush" not in caplog.text


@pytest.mark.rules("C4.6", "C4.9")
async def test_a_credential_that_cannot_be_had_for_now_is_waited_for() -> None:
    server = ScriptedServer()
    missing = 0

    async def credential() -> str:
        nonlocal missing
        if missing:
            missing -= 1
            raise ConnectionLost("The keeper of tokens does not answer; try again.")
        return "token"

    clock = ManualClock()
    transport = ScriptedTransport(server)
    client = Client("", credential, transport=transport, clock=clock)
    async with asyncio.timeout(10), server, client:
        session = await client.open()
        missing = 4
        server.sessions[session.id].hang_up()
        asking = asyncio.create_task(session.ask("Hello"))
        for _ in range(10):
            for _ in range(30):
                await asyncio.sleep(0)
            clock.advance(1000)
        assert await asking == "You said: Hello"
        assert missing == 0


async def test_ids_cannot_leave_their_place_in_the_path() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        with pytest.raises(CommandRejected):
            await client.get_session(SessionId("../auth/me?x=/#"))
    assert server.calls[0].path == "/api/sessions/..%2Fauth%2Fme%3Fx%3D%2F%23"


async def test_an_answer_that_cannot_be_read_is_no_success() -> None:
    server = ScriptedServer()
    head = {"towline-contract": "1", "content-type": "application/json"}
    async with connect(server) as client:
        server.replies["me"] = deque([Reply(status=200, headers=head, body=b"{}")])
        with pytest.raises(ContractUnavailable) as caught:
            await client.me()
        assert (caught.value.reason, caught.value.status) == ("not_json", 200)


@pytest.mark.rules("C1.11")
async def test_a_view_with_blocks_of_a_newer_server_can_be_read() -> None:
    async def say(turn: ScriptedTurn, text: str) -> None:
        await turn.say(text)

    server = ScriptedServer(say)
    async with connect(server) as client:
        session = await client.open()
        await session.ask("Hello")
        asked = next(call for call in server.calls if call.operation.name == "get_view")
        body = server.answer(asked).body
        newer = body.replace(b'"type":"text","text":"Hello"', b'"type":"hologram","w":3')
        assert newer != body
        head = {"towline-contract": "1", "content-type": "application/json"}
        server.replies["get_view"] = deque([Reply(status=200, headers=head, body=newer)])
        view = (await client.get_view(session.id)).view
        blocks = [block for entry in view.messages for block in entry.content]
        assert len(blocks) == 2
        assert all(isinstance(block, Unknown) and block.name == "hologram" for block in blocks)


def _check(status: int, headers: dict[str, str], body: bytes = b"", name: str = "me") -> None:
    reply = Reply(status=status, headers=headers, body=body)
    assert "secret" not in repr(reply)
    check_reply(reply, OPERATIONS[name])


_JSON = "application/json"


@pytest.mark.rules("C2.1")
@pytest.mark.parametrize(
    ("status", "headers", "reason"),
    [
        (200, {"content-type": _JSON}, "missing_header"),
        (302, {"location": "http://portal/"}, "missing_header"),
        (302, {"towline-contract": "1"}, "missing_header"),
        (200, {"towline-contract": "", "content-type": _JSON}, "bad_header"),
        (200, {"towline-contract": "1.0", "content-type": _JSON}, "bad_header"),
        (200, {"towline-contract": "1", "content-type": "text/html; charset=utf-8"}, "not_json"),
        (200, {"towline-contract": "1"}, "not_json"),
    ],
)
def test_a_success_must_carry_the_contract(
    status: int, headers: dict[str, str], reason: str
) -> None:
    with pytest.raises(ContractUnavailable) as caught:
        _check(status, headers)
    assert (caught.value.status, caught.value.reason) == (status, reason)


def test_a_success_with_the_contract_passes() -> None:
    _check(200, {"towline-contract": "1", "content-type": "application/json; charset=utf-8"})
    _check(204, {"towline-contract": "1"}, name="logout")
    _check(200, {"towline-contract": "1", "content-type": "text/event-stream"}, name="follow")


@pytest.mark.rules("C2.1")
def test_another_major_version_is_told_apart() -> None:
    with pytest.raises(VersionMismatch, match="update the older"):
        _check(200, {"towline-contract": "2", "content-type": _JSON})
    problem = (
        b'{"title":"","status":400,"detail":"Speak 2.","code":"version_mismatch","retry":"none"}'
    )
    with pytest.raises(VersionMismatch, match=r"Speak 2\."):
        _check(400, {"towline-contract": "2"}, problem)


@pytest.mark.rules("C4.7")
def test_an_error_without_the_contract_came_from_a_proxy() -> None:
    with pytest.raises(ConnectionLost) as caught:
        _check(503, {"retry-after": "7"}, b"<html>")
    assert (caught.value.status, caught.value.retry_after_s) == (503, 7.0)


def test_an_error_without_a_readable_problem_still_says_its_status() -> None:
    with pytest.raises(CommandRejected) as caught:
        _check(503, {"towline-contract": "1", "retry-after": "soon"}, b"\xff")
    assert (caught.value.status, caught.value.retry) == (503, "same_request")
    with pytest.raises(CommandRejected) as caught:
        _check(418, {"towline-contract": "1"}, b"[]")
    assert (caught.value.status, caught.value.retry) == (418, "none")


def test_a_refused_credential_keeps_the_servers_words() -> None:
    problem = Problem(
        title="", status=401, detail="Expired; sign in.", code="unauthorized", retry="none"
    )
    with pytest.raises(Unauthorized) as caught:
        _check(401, {"towline-contract": "1"}, encode(problem))
    assert caught.value.problem is not None
    assert caught.value.fault().scope == "client.auth"
    assert Unauthorized("No token.").problem is None


def test_a_call_shows_neither_token_nor_body() -> None:
    operation: Operation = OPERATIONS["claim"]
    call = Call(operation=operation, path=operation.path, body=b'{"code":"secret"}', token="secret")
    assert repr(call) == "Call(POST /api/auth/claim)"
