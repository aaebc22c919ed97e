"""A server in memory that plays a script for every prompt."""

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

from towline_client.errors import ConnectionLost
from towline_client.testing.account import ACCOUNT_ANSWERS
from towline_client.testing.client_call import CLIENT_CALLS
from towline_client.testing.discovery import describe
from towline_client.testing.life import LIFE, list_sessions
from towline_client.testing.log import ScriptedSession, ScriptedStream
from towline_client.testing.model import MODEL_ANSWERS
from towline_client.testing.project import PROJECT
from towline_client.testing.push import PUSH_ANSWERS
from towline_client.testing.reply import give, part_of, read_body, refuse
from towline_client.testing.stage import Handler, Stage
from towline_client.testing.talk import TALK
from towline_client.testing.turn import Script, ScriptedTurn
from towline_client.testing.turn_files import TURN_FILES
from towline_client.transport import Call, Reply
from towline_protocol import (
    CreateSession,
    FileInfo,
    RequestList,
    RequestRow,
    SessionId,
    encode_comment,
)

__all__ = ["ScriptedServer"]

_FIXED: Final[dict[str, Any]] = {**ACCOUNT_ANSWERS, **MODEL_ANSWERS, **PUSH_ANSWERS}
_ON_SESSIONS: Final[dict[str, Handler]] = {**LIFE, **TALK, **TURN_FILES, **CLIENT_CALLS, **PROJECT}


async def _echo(turn: ScriptedTurn, text: str) -> None:
    await turn.say("You said: ", text)


class ScriptedServer:
    """Sessions in memory. Use it as an async context: it owns the turns that run."""

    def __init__(self, script: Script = _echo, *, log: str = "log_1") -> None:
        """Make a server without sessions.

        Args:
            script: Plays each turn; it gets the turn and the prompt's words. Left out, it says
                them back.
            log: The lineage of new sessions' logs: another one is a log that began anew.
        """
        self._stage = Stage(script)
        self.sessions = self._stage.sessions
        """Its sessions."""
        self.paths = self._stage.paths
        """What stands in the folder of every session."""
        self.commands = self._stage.commands
        """Own commands: name to the words of their prompts."""
        self.feed = self._stage.feed
        """The feed of the session list."""
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
        self._kept: dict[tuple[str, str], Reply] = {}
        self._called = asyncio.Event()

    async def __aenter__(self) -> "ScriptedServer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stage.turns.end()

    def mint(self, prefix: str) -> str:
        """A new id: later ones sort after earlier ones."""
        return self._stage.mint(prefix)

    def add_session(self, new: CreateSession | None = None) -> ScriptedSession:
        """A new session."""
        return self._stage.add(new or CreateSession(), self.log)

    def count(self, name: str) -> int:
        """How often an operation was asked for."""
        return sum(call.operation.name == name for call in self.calls)

    async def until_called(self, name: str, count: int = 1) -> None:
        """Wait until an operation was asked for so often."""
        while self.count(name) < count:
            self._called.clear()
            await self._called.wait()

    def answer(self, call: Call) -> Reply:
        """Carry out an ordinary call.

        Raises:
            ConnectionLost: The reply is one of those to be lost.
        """
        self.calls.append(call)
        self._called.set()
        name = call.operation.name
        if self.replies.get(name):
            return self.replies[name].popleft()
        reply = self._once(call)
        if name in self.lose:
            self.lose.remove(name)
            raise ConnectionLost("The script lost the reply.")
        return reply

    async def follow(self, call: Call) -> Reply | AsyncGenerator[bytes]:
        """Open a stream: its frames, or the answer that there is none."""
        self.calls.append(call)
        self._called.set()
        name = call.operation.name
        if self.replies.get(name):
            return self.replies[name].popleft()
        if name == "follow_all":
            return self._frames(self.feed, lambda: self.feed.head(self._stage.rows(), self.log))
        session = self._find(call)
        if isinstance(session, Reply):
            return session
        cursor = call.headers.get("last-event-id")
        return self._frames(session, lambda: session.head(cursor))

    async def _frames(
        self, stream: ScriptedStream, head: Callable[[], list[bytes]]
    ) -> AsyncGenerator[bytes]:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        for frame in head():  # without a seam to what comes live (C3.3)
            queue.put_nowait(frame)
        if stream.over:
            queue.put_nowait(None)
        stream.readers.append(queue)
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
            stream.readers.remove(queue)

    def _loses(self, frame: bytes) -> bool:
        for seq in self.left_out:
            if frame.startswith(b"id: %d\n" % seq):
                self.left_out.remove(seq)
                return True
        return False

    def _once(self, call: Call) -> Reply:
        """The same key again gets the same answer (C2.5)."""
        kept = (call.operation.name, call.headers.get("idempotency-key", ""))
        if kept in self._kept:
            return self._kept[kept]
        reply = self._carry_out(call)
        if call.operation.idempotent and reply.status < 400:
            self._kept[kept] = reply
        return reply

    def _carry_out(self, call: Call) -> Reply:
        name = call.operation.name
        if name in _FIXED:
            return give(call, _FIXED[name])
        said = describe(name)
        if said is not None:
            return give(call, said)
        match name:
            case "upload_file" | "download_file":
                return self._file(call)
            case "list_requests":
                asked = [row for session in self.sessions.values() for row in _requests(session)]
                return give(call, RequestList(requests=tuple(asked)))
            case "list_sessions":
                return list_sessions(self._stage, call)
            case "create_session":
                return give(call, self.add_session(read_body(call, CreateSession)).info)
            case _:
                session = self._find(call)
                if isinstance(session, Reply):
                    return session
                return _ON_SESSIONS[name](self._stage, session, call)

    def _find(self, call: Call) -> ScriptedSession | Reply:
        id_ = SessionId(part_of(call, 2))
        if id_ in self._stage.deleted:
            return refuse("gone", "The session is deleted; make a new one.")
        found = self.sessions.get(id_)
        return found or refuse("not_found", "There is no such session; list them.")

    def _file(self, call: Call) -> Reply:
        files = self._stage.files
        if call.body is not None:
            file = hashlib.sha256(call.body).hexdigest()
            files[file] = call.body
            name, size = call.query.get("name", ""), len(call.body)
            return give(call, FileInfo(file=file, media_type="text/plain", size=size, name=name))
        data = files.get(part_of(call, 2))
        if data is None:
            return refuse("not_found", "There is no such file of yours; upload it.")
        return give(call, data)


def _requests(session: ScriptedSession) -> list[RequestRow]:
    view = session.view
    permissions = [
        RequestRow(session=session.id, title=view.title, kind="permission", permission=request)
        for request in view.permissions
    ]
    questions = [
        RequestRow(session=session.id, title=view.title, kind="question", question=question)
        for question in view.questions
    ]
    calls = [
        RequestRow(session=session.id, title=view.title, kind="call", call=call)
        for call in view.open_calls
        if call.expires_at is not None
    ]
    return [*permissions, *questions, *calls]
