"""A server in memory that plays a script for every prompt."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from towline_client.errors import ConnectionLost
from towline_client.testing.log import ScriptedSession, time_at
from towline_client.testing.turn import Script, ScriptedTurn
from towline_client.transport import Call, Reply
from towline_protocol import (
    CONTRACT_HEADER,
    CONTRACT_VERSION,
    FAULT_CODES,
    AnswerPermission,
    Claimed,
    CreateSession,
    Health,
    Identity,
    Interrupted,
    Limits,
    Pairing,
    PermissionAnswered,
    PermissionId,
    Problem,
    PromptAccepted,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    SendPrompt,
    SessionCreated,
    SessionId,
    SessionInfo,
    SessionList,
    TurnCancelled,
    TurnCompleted,
    TurnId,
    TurnStarted,
    Usage,
    ViewAnswer,
    block_text,
    encode,
    encode_comment,
)

__all__ = ["ScriptedServer", "refuse"]

_HEAD: Final = {CONTRACT_HEADER: CONTRACT_VERSION, "content-type": "application/json"}


async def _echo(turn: ScriptedTurn, text: str) -> None:
    await turn.say("You said: ", text)


class ScriptedServer:
    """Sessions in memory. Use it as an async context: it owns the turns that run."""

    def __init__(self, script: Script = _echo, *, log: str = "log_1") -> None:
        self.sessions: dict[SessionId, ScriptedSession] = {}
        """Its sessions."""
        self.calls: list[Call] = []
        """All calls that came, streams included."""
        self.replies: dict[str, deque[Reply]] = {}
        """Answers to give instead, by operation, each once."""
        self.lose: deque[str] = deque()
        """Operations whose next reply is lost after it was carried out."""
        self.cuts: deque[int] = deque()
        """The next streams are cut after so many frames, one stream each."""
        self.doubled = False
        """Whether every frame is sent twice."""
        self.left_out: set[int] = set()
        """Numbers of events that the next stream loses, once each."""
        self.log = log
        """The lineage of new sessions' logs."""
        self._script = script
        self._minted = 0
        self._kept: dict[tuple[str, str], bytes] = {}
        self._answers: dict[PermissionId, asyncio.Future[str]] = {}
        self._turns: dict[SessionId, asyncio.Task[None]] = {}

    async def __aenter__(self) -> "ScriptedServer":
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = list(self._turns.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def mint(self, prefix: str) -> str:
        """A new id: later ones sort after earlier ones."""
        self._minted += 1
        return f"{prefix}_{self._minted:04d}"

    def add_session(self, new: CreateSession | None = None) -> ScriptedSession:
        """A new session."""
        new = new or CreateSession()
        session = ScriptedSession(SessionId(self.mint("ses")), self.log)
        self.sessions[session.id] = session
        session.emit(
            SessionCreated(
                agent=new.agent or "main",
                model=new.model or "scripted/model",
                mode=new.mode or "ask",
                title=new.title,
                cwd=new.cwd,
            )
        )
        return session

    def expect(self, permission: PermissionId) -> asyncio.Future[str]:
        """A future with the option that a person takes."""
        self._answers[permission] = asyncio.get_running_loop().create_future()
        return self._answers[permission]

    def answer(self, call: Call) -> Reply:
        """Carry out an ordinary call.

        Raises:
            ConnectionLost: The reply is one of those to be lost.
        """
        self.calls.append(call)
        name = call.operation.name
        if self.replies.get(name):
            return self.replies[name].popleft()
        reply = self._carry_out(call)
        if name in self.lose:
            self.lose.remove(name)
            raise ConnectionLost("The script lost the reply.")
        return reply

    async def follow(self, call: Call) -> Reply | AsyncGenerator[bytes]:
        """Open a stream: its frames, or the answer that there is none."""
        self.calls.append(call)
        if self.replies.get("follow"):
            return self.replies["follow"].popleft()
        session = self.sessions.get(_session_of(call))
        if session is None:
            return refuse("not_found", "There is no such session; list them.")
        return self._frames(session, call.headers.get("last-event-id"))

    async def _frames(self, session: ScriptedSession, cursor: str | None) -> AsyncGenerator[bytes]:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        for frame in session.head(cursor):
            queue.put_nowait(frame)
        if session.view.closed is not None:
            queue.put_nowait(None)
        session.readers.append(queue)
        left = self.cuts.popleft() if self.cuts else None
        try:
            while left is None or left > 0:
                frame = await queue.get()
                if frame is None:
                    return
                if self._loses(frame):
                    continue
                yield frame
                if self.doubled:
                    yield encode_comment()
                    yield frame
                left = None if left is None else left - 1
            raise ConnectionLost("The script cut the stream.")
        finally:
            session.readers.remove(queue)

    def _loses(self, frame: bytes) -> bool:
        for seq in self.left_out:
            if frame.startswith(b"id: %d\n" % seq):
                self.left_out.remove(seq)
                return True
        return False

    def _carry_out(self, call: Call) -> Reply:
        name = call.operation.name
        plain: dict[str, Any] = {
            "health": Health(status="ok", server_version="scripted", pid=1),
            "claim": Claimed(token="a token", user="me"),  # noqa: S106 - not a real one
            "pair": Pairing(code="ABCD1234", url="http://here/#ABCD1234", expires_at=time_at(600)),
            "me": Identity(user="me", server_name="scripted"),
            "logout": None,
        }
        if name in plain:
            return _reply(call, plain[name])
        if name == "list_sessions":
            rows = [_info(session) for session in reversed(self.sessions.values())]
            return _reply(call, SessionList(sessions=tuple(rows)))
        kept = (name, call.headers.get("idempotency-key", ""))
        if kept in self._kept:
            return Reply(status=call.operation.status, headers=_HEAD, body=self._kept[kept])
        if name == "create_session":
            new = msgspec.json.decode(call.body or b"{}", type=CreateSession)
            reply = _reply(call, _info(self.add_session(new)))
        else:
            session = self.sessions.get(_session_of(call))
            if session is None:
                return refuse("not_found", "There is no such session; list them.")
            reply = self._on_session(session, call)
        if call.operation.idempotent and reply.status < 400:
            self._kept[kept] = reply.body
        return reply

    def _on_session(self, session: ScriptedSession, call: Call) -> Reply:
        match call.operation.name:
            case "get_session":
                return _reply(call, _info(session))
            case "get_view":
                seq = len(session.events)
                return _reply(call, ViewAnswer(log=session.log, seq=seq, view=session.view))
            case "send_prompt":
                return self._prompt(session, call)
            case "interrupt":
                return self._interrupt(session, call)
            case _:
                return self._decide(session, call)

    def _prompt(self, session: ScriptedSession, call: Call) -> Reply:
        if session.view.closed is not None:
            return refuse("gone", "The session is closed; make a new one.")
        asked = msgspec.json.decode(call.body or b"", type=SendPrompt)
        prompt = PromptId(self.mint("pmt"))
        position = len(session.view.queue)
        session.emit(
            PromptAdmitted(
                prompt=prompt,
                content=asked.content,
                when=asked.when,
                key=call.headers.get("idempotency-key"),
                position=position,
            )
        )
        running = self._turns.get(session.id)
        if running is None or running.done():
            self._turns[session.id] = asyncio.create_task(self._play(session))
        return _reply(call, PromptAccepted(prompt=prompt, position=position, session=session.id))

    async def _play(self, session: ScriptedSession) -> None:
        """Run the prompts that wait, one turn each."""
        while session.view.queue:
            queued = session.view.queue[0]
            turn = ScriptedTurn(
                session, TurnId(self.mint("trn")), mint=self.mint, expect=self.expect
            )
            turn.emit(PromptDelivered(prompt=queued.prompt, turn=turn.id, how="started"))
            turn.emit(TurnStarted(prompt=queued.prompt, model=session.view.model, limits=Limits()))
            try:
                await self._script(turn, block_text(queued.content))
            except asyncio.CancelledError:
                turn.emit(TurnCancelled(by="me", reason="stopped by the user", usage=Usage()))
                raise
            if session.view.turn is not None:
                usage = Usage(input=100, output=20)
                turn.emit(TurnCompleted(stop_reason="end_turn", usage=usage, cost=0.0))

    def _interrupt(self, session: ScriptedSession, call: Call) -> Reply:
        running = session.view.turn
        if running is not None:
            self._turns[session.id].cancel()
        return _reply(call, Interrupted(turn=None if running is None else running.id))

    def _decide(self, session: ScriptedSession, call: Call) -> Reply:
        permission = call.path.rpartition("/")[2]
        asked = msgspec.json.decode(call.body or b"", type=AnswerPermission)
        for request in session.view.permissions:
            if request.permission != permission:
                continue
            if request.digest != asked.digest:
                return refuse("conflict", "The digest is another one; read the request again.")
            answered = self._answers.get(request.permission)
            if answered is None or answered.done():
                break
            answered.set_result(asked.option)
            return _reply(call, PermissionAnswered(option=asked.option))
        return refuse("gone", "The request was answered already; nothing was changed.")


def refuse(code: str, detail: str, *, retry_after_s: float | None = None) -> Reply:
    """A problem answer.

    Args:
        code: One of the fault codes.
        detail: What was wrong, then what to do next.
        retry_after_s: Seconds until a retry can help.
    """
    row = FAULT_CODES[code]
    problem = Problem(
        title=code.replace("_", " "),
        status=row.status,
        detail=detail,
        code=code,
        retry=row.retry,
        retry_after_s=retry_after_s,
    )
    head = {**_HEAD, "content-type": "application/problem+json"}
    return Reply(status=row.status, headers=head, body=encode(problem))


def _reply(call: Call, value: msgspec.Struct | None) -> Reply:
    body = b"" if value is None else encode(value)
    return Reply(status=call.operation.status, headers=_HEAD, body=body)


def _session_of(call: Call) -> SessionId:
    return SessionId(call.path.split("/")[3])


def _info(session: ScriptedSession) -> SessionInfo:
    view = session.view
    return SessionInfo(
        id=session.id,
        agent=view.agent,
        model=view.model,
        mode=view.mode,
        live=view.turn is not None,
        last_seq=view.seq,
        turn=None if view.turn is None else view.turn.id,
        pending=len(view.permissions),
        queued=len(view.queue),
        title=view.title,
        cwd=view.cwd,
        created=view.created,
        updated=view.updated,
        closed=view.closed is not None,
    )
