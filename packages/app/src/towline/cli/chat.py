"""`towline chat --plain`: a session in the normal screen, line by line."""

import asyncio
import uuid
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any, Final

import msgspec
from rich.console import Console

from towline.cli.asked import Asked
from towline.cli.command import name_command
from towline.cli.keyboard import Keyboard, open_keyboard
from towline.cli.leaving import say_goodbye
from towline.cli.page import Page
from towline.cli.slash import HELP, LISTED, Command, find_command, list_lines, list_own
from towline_client import (
    Client,
    Clock,
    CommandRejected,
    Connection,
    LoopClock,
    PromptWatch,
    Rebuilt,
    Session,
    SessionEvent,
    follow_prompt,
)
from towline_protocol import (
    CreateSession,
    PromptAccepted,
    PromptId,
    QueueResumed,
    SessionId,
    SessionInfo,
    TowlineError,
    UpdateSession,
    UsageError,
    reduce,
)

__all__ = ["BANNER_MS", "chat"]

_SAY_S: Final = 30.0  # after which a person wants to hear that the server has not got it
_LEAVE_S: Final = 2.0  # nobody who leaves waits longer
BANNER_MS: Final = 2_000
"""Milliseconds without a line before it is worth a word."""


async def chat(
    client: Client,
    session_id: SessionId | str | None,
    console: Console,
    *,
    mode: str | None = None,
    model: str | None = None,
    cwd: str | None = None,
    keyboard: Keyboard | None = None,
    clock: Clock | None = None,
    program: str = "towline",
) -> int:
    """Talk in a session until the person leaves.

    Args:
        client: The server.
        session_id: The session to go on with; `None` begins one.
        console: Where to write.
        mode: The mode; `None` for the session's own, in a new one the last that was chosen here.
        model: Which model to ask; `None` for the session's own, in a new one the server's.
        cwd: The folder that new sessions work in. When the server refuses it, the person is asked
            whether its own will do; where nobody can be asked that is an error.
        keyboard: Where lines come from; standard input when left out.
        clock: The clock; the real one when left out.
        program: How the person calls this program, for the hint at the end.

    Returns:
        The exit code: 1 when the line was given up or a turn failed, else 0.

    Raises:
        TowlineError: The session cannot be opened, or the server may not work in `cwd`.
    """
    keys = keyboard if keyboard is not None else open_keyboard()
    page = Page(console, keys)
    new = CreateSession(mode=mode, model=model, cwd=cwd)
    try:
        session: Session | None
        session, new = await _open_first(client, session_id, new, page, keys)
        code = 0
        while session is not None:
            talk = _Talk(client, session, page, keys, new, clock or LoopClock())
            following = await talk.run()
            code = max(code, talk.code)
            if following is None:
                page.say(say_goodbye(session.view, session.id, program))
            else:
                page.say("")
            await session.close()
            session = following
    finally:
        keys.close()
    return code


async def _open_first(
    client: Client,
    session_id: SessionId | str | None,
    new: CreateSession,
    page: Page,
    keys: Keyboard,
) -> tuple[Session, CreateSession]:
    """The session, and what others are made of: only with leave in another folder than this one."""
    try:
        session = await client.open(session_id, new=new)
    except CommandRejected as error:
        elsewhere = session_id is None and error.code == "forbidden" and new.cwd is not None
        if not (elsewhere and keys.terminal):
            raise
        page.say(name_command(error.message))
        page.ask("Talk about the server's own folder, the first of these, instead? [y/N] ")
        if not await _says_yes(keys):
            raise UsageError("No session was begun.") from error
        new = msgspec.structs.replace(new, cwd=None)
        return await client.open(None, new=new), new
    if session_id is not None and (new.mode or new.model):
        await client.life.update(session.id, UpdateSession(mode=new.mode, model=new.model))
    return session, new


async def _says_yes(keys: Keyboard) -> bool:
    """Whether the next line is a yes; Ctrl+C is a no."""
    line = asyncio.ensure_future(keys.line())
    stop = asyncio.ensure_future(keys.interrupted())
    try:
        await asyncio.wait((line, stop), return_when=asyncio.FIRST_COMPLETED)
        return line.done() and (line.result() or "").strip().lower() in ("y", "yes")
    finally:
        line.cancel()
        stop.cancel()


class _Typed(msgspec.Struct, frozen=True):
    """A line came, or the end of all lines."""

    text: str | None


class _Word(msgspec.Struct, frozen=True):
    """Something without contents happened: `ctrl_c`, `away`, `ended` or `look`."""

    name: str


_Item = _Typed | _Word | SessionEvent | Connection | TowlineError


class _Talk:
    """One session on the screen. `run` takes one thing after another out of its inbox."""

    def __init__(
        self,
        client: Client,
        session: Session,
        page: Page,
        keyboard: Keyboard,
        new: CreateSession,
        clock: Clock,
    ) -> None:
        self.code = 0
        """The exit code so far."""
        self._client = client
        self._session = session
        self._page = page
        self._keyboard = keyboard
        self._new = new
        self._clock = clock
        self._view = session.view
        self._inbox: asyncio.Queue[_Item] = asyncio.Queue()
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._order = asyncio.Lock()
        self._commands = 0
        self._own: frozenset[str] = frozenset()
        self._watches: dict[PromptId, PromptWatch] = {}
        self._asked = Asked(session, page, run=self._run, interrupt=self._interrupt)
        self._picking: tuple[SessionInfo, ...] = ()
        self._reading = False
        self._stopping = False
        self._released = False
        self._no_more_lines = False
        self._away = False
        self._banner: asyncio.Task[None] | None = None
        self._leaving = False
        self._following: Session | None = None

    async def run(self) -> Session | None:
        """Talk until the person leaves; gives the session to go on with, if any."""
        self._page.begin(self._view)
        async with self._group:
            self._spawn(self._watch_events())
            self._spawn(self._watch_connection())
            self._spawn(self._watch_ctrl_c())
            try:
                self._invite()
                while not self._leaving:
                    self._take(await self._inbox.get())
                    self._invite()
            finally:
                for task in self._tasks:
                    task.cancel()
        await self._mark_read()
        return self._following

    async def _mark_read(self) -> None:
        """Say that all of it was on this screen, so that no other one calls it new."""
        with suppress(TowlineError):  # the server may be gone, or the session deleted
            await self._session.mark_read(self._view.seq, timeout_s=_LEAVE_S)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _take(self, item: _Item) -> None:
        match item:
            case _Typed(text=text):
                self._reading = False
                if self._keyboard.terminal:
                    self._page.start_line(typed=text is not None)
                self._line(text)
            case _Word(name=name):
                self._happened(name)
            case Connection():
                self._connection(item)
            case TowlineError():
                self._page.say(f"✗ {item.message}")
                self._leave(code=1)
            case _:
                self._event(item)

    def _invite(self) -> None:
        """Ask for the next line when one is of use."""
        if self._leaving:
            return
        idle = self._is_idle()
        if idle and self._no_more_lines:
            self._leave()
            return
        if self._no_more_lines:
            self._asked.refuse_all(self._view)
        waits_for_answer = self._asked.waits(self._view) and not self._commands
        useful = self._keyboard.terminal or idle or waits_for_answer
        if useful and not self._reading and not self._no_more_lines:
            self._reading = True
            self._spawn(self._read_line())
        at_prompt = idle and not self._asked.permissions(self._view) and not self._picking
        if at_prompt:
            self._page.start_line(typed=False)
        self._keyboard.set_idle(at_prompt)
        if at_prompt:
            self._keyboard.show()

    def _is_idle(self) -> bool:
        """Whether all that was asked for here has come to its end."""
        last = self._view.last_turn
        stopped = last is not None and last.outcome == "cancelled"
        held = stopped and not self._released  # Stop holds what waits (C2.11)
        under_way = [w for w in self._watches.values() if not (held and w.turn is None)]
        return self._view.turn is None and not self._commands and not under_way

    def _leave(self, code: int = 0, following: Session | None = None) -> None:
        self.code = max(self.code, code)
        if not self._leaving:
            self._leaving = True
            self._following = following

    # What the line brings.

    async def _watch_events(self) -> None:
        try:
            async for event in self._session.events:
                self._inbox.put_nowait(event)
        except TowlineError as error:
            self._inbox.put_nowait(error)
        else:
            self._inbox.put_nowait(_Word("ended"))

    async def _watch_connection(self) -> None:
        async for connection in self._session.connection:
            self._inbox.put_nowait(connection)

    def _event(self, event: SessionEvent) -> None:
        self._view = event.view if isinstance(event, Rebuilt) else reduce(self._view, event)
        self._page.paint(self._view, self._own)
        self._follow_prompts()
        self._stopping = self._stopping and self._view.turn is not None
        self._released = self._released and self._view.turn is None

    def _follow_prompts(self) -> None:
        for prompt, watch in list(self._watches.items()):
            self._watches[prompt], outcome = follow_prompt(watch, self._view)
            if outcome is not None:
                del self._watches[prompt]
                self.code = max(self.code, int(outcome.kind == "failed"))

    def _connection(self, connection: Connection) -> None:
        if connection.phase == "live":
            if self._banner is not None:
                self._banner.cancel()
                self._banner = None
            if self._away:
                self._away = False
                self._page.say("back")
        elif self._banner is None and connection.phase not in ("failed", "closed"):
            self._banner = self._spawn(self._count_down())

    async def _count_down(self) -> None:
        await self._clock.wait(asyncio.Event(), self._clock.now_ms() + BANNER_MS)
        self._inbox.put_nowait(_Word("away"))

    def _happened(self, name: str) -> None:
        if name == "ctrl_c":
            self._ctrl_c()
        elif name == "away" and self._banner is not None:
            self._away = True
            self._page.say("reconnecting…")
        elif name == "ended":
            self._leave()

    # What the person brings.

    async def _read_line(self) -> None:
        self._inbox.put_nowait(_Typed(await self._keyboard.line()))

    async def _watch_ctrl_c(self) -> None:
        while True:
            await self._keyboard.interrupted()
            self._inbox.put_nowait(_Word("ctrl_c"))

    def _ctrl_c(self) -> None:
        if self._view.turn is None or self._stopping:
            self._leave()
        else:
            self._interrupt()

    def _line(self, text: str | None) -> None:
        if text is None:
            self._no_more()
        elif text.startswith("/"):
            self._command(text.strip())
        elif self._picking:
            self._pick(text)
        elif not self._asked.take(self._view, text) and text.strip():
            self._prompt(text.strip())

    def _no_more(self) -> None:
        self._no_more_lines = True
        if self._keyboard.terminal:
            if not self._is_idle():
                self._page.say("The turn goes on without you.")
            self._leave()

    def _command(self, text: str) -> None:
        try:
            command, words = find_command(text)
        except UsageError as error:
            self._page.say(error.message)
            return
        match command.name:
            case "/help":
                self._page.say(HELP)
                self._run(self._help())
            case "/quit":
                self._leave()
            case "/new" | "/clear":
                self._run(self._switch(None))
            case "/resume":
                self._run(self._list())
            case "/interrupt" if self._view.turn is None:
                self._page.say("Nothing runs.")
            case "/interrupt":
                self._interrupt()
            case _:
                self._run(self._do(command, words))

    async def _do(self, command: Command, words: str) -> None:
        """Carry out a command that is one request."""
        assert command.call is not None, "what the chat does itself was told apart"
        match await command.call(self._client, self._session, words):
            case PromptAccepted() as accepted:
                self._watch(accepted)
            case QueueResumed():
                self._released = self._view.turn is None
            case SessionInfo(id=session_id):
                await self._switch(session_id)
            case str(came):
                self._page.say(came)
            case None:
                pass

    def _prompt(self, text: str) -> None:
        key = uuid.uuid4().hex
        if self._keyboard.terminal:
            self._own |= {key}
        waits = not self._is_idle()
        self._run(self._send(text, key, waits=waits))

    async def _send(self, text: str, key: str, *, waits: bool) -> None:
        accepted = await self._session.prompt(text, key=key, timeout_s=_SAY_S)
        self._watch(accepted)
        if waits:
            self._page.say("(waits for the turn's end)")

    def _watch(self, accepted: PromptAccepted) -> None:
        """Wait for a prompt's end before leaving by oneself."""
        self._watches[accepted.prompt] = PromptWatch(prompt=accepted.prompt, turn=accepted.turn)
        self._released = self._view.turn is None
        self._follow_prompts()

    def _interrupt(self) -> None:
        self._stopping = True
        self._page.say("stopping…")
        turn = self._view.turn
        self._run(self._session.interrupt(None if turn is None else turn.id))

    async def _help(self) -> None:
        for line in await list_own(self._session):
            self._page.say(line)

    async def _list(self) -> None:
        found = (await self._client.list_sessions(limit=LISTED)).sessions
        for line in list_lines(found):
            self._page.say(line)
        self._page.ask(f"Go on with which, 1-{len(found)}? Enter for none: ")
        self._picking = found

    def _pick(self, text: str) -> None:
        self._page.echo(text)
        rows, self._picking = self._picking, ()
        words = text.strip()
        if words.isascii() and words.isdigit() and 1 <= int(words[:3]) <= len(rows):
            self._run(self._switch(rows[int(words[:3]) - 1].id))
        elif words:
            self._page.say(f"{words[:20]!r} is none of them; /resume lists them again.")

    async def _switch(self, session_id: SessionId | None) -> None:
        following = await self._client.open(session_id, new=self._new)
        self._leave(following=following)

    def _run(self, command: Awaitable[object]) -> None:
        self._commands += 1
        self._spawn(self._carry_out(command))

    async def _carry_out(self, command: Awaitable[object]) -> None:
        """One command after another; what the server says of it becomes a line."""
        try:
            async with self._order:
                await command
        except TowlineError as error:
            self._page.say(f"✗ {name_command(error.message)}")
        finally:
            self._commands -= 1
            self._inbox.put_nowait(_Word("look"))
