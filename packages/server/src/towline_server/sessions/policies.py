"""Which rules, mode and trust a folder has: kept in the data folder, never in the project."""

import asyncio
import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from towline_agent import MODES, Policy, Rule, is_secret, parse_rule
from towline_protocol import TrustFile, UsageError
from towline_server.errors import StoreError, TrustRefused
from towline_server.sessions.control import Control, parse_rules, read_control

__all__ = ["Policies", "Trust", "TrustRecord"]

_T = TypeVar("_T")
_S = TypeVar("_S", bound=msgspec.Struct)

_NAME_CHARS: Final = 32
"""Of a hash as the name of a folder: 128 bits, so that no two folders share one."""
_MAX_BYTES: Final = 2**20
"""Of a file of our own; a longer one is none."""
_SHOWN_BYTES: Final = 64 * 1024
"""Of all control files together: what a person may read before they decide, also on a phone."""


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a folder's own files count, and which these are."""

    folder: str
    """The folder."""
    files: tuple[str, ...]
    """Its control files."""
    digest: str
    """Their hash; to trust is to name it."""
    trusted: bool
    """Whether a person trusts exactly these."""
    changed: bool = False
    """Whether a person trusted others than these."""
    rules: tuple[str, ...] = ()
    """Its rules, those that can be read."""
    problems: tuple[str, ...] = ()
    """What keeps the folder from being trusted, or is wrong with its rules."""
    contents: tuple[TrustFile, ...] = ()
    """What the files say; of a folder that is trusted nothing, for nobody has to decide."""


class TrustRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of a person's trust."""

    folder: str
    """The folder."""
    digest: str
    """The hash of its control files as the person saw them."""


class _UserFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of one user's ways in one folder."""

    folder: str
    mode: str | None = None
    rules: tuple[str, ...] = ()


class Policies:
    """Reads and keeps the policies of folders.

    What stands in a file of ours that can't be read is not guessed at: everything asks until it is
    mended or removed.

    Args:
        data_dir: The server's data folder; `None` keeps nothing beyond the process, for tests.
        rules_file: The user's own rules, beside `config.toml`.
    """

    def __init__(self, data_dir: Path | None, rules_file: Path | None = None) -> None:
        self._memory: dict[Path, bytes] | None = {} if data_dir is None else None
        self._data_dir = data_dir
        self._rules_file = rules_file
        self._pool: ThreadPoolExecutor | None = None

    # what a turn asks

    async def read(self, user: str, cwd: str) -> Policy:
        """The policy of a user in a folder, as it is now."""
        return await self._run(partial(self.read_now, user, cwd))

    def read_now(self, user: str, cwd: str) -> Policy:
        """The same; it blocks."""
        problems: list[str] = []
        kept = self._load(self._user_path(user, cwd), _UserFile, problems)
        always = [_parse(text, problems) for text in (() if kept is None else kept.rules)]
        own = self._read_own(problems)
        control = read_control(Path(cwd))
        project = control.rules
        trusted = self._trusts(cwd, control, problems)
        return Policy(
            user=(*own, *(rule for rule in always if rule is not None)),
            project=project.rules,
            trusted=trusted,
            broken=(*problems, *project.problems),
            stores=True,
        )

    def own_now(self) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
        """The rules that the user has written for all folders, and what can't be read of them."""
        problems: list[str] = []
        return self._read_own(problems), tuple(problems)

    async def mode(self, user: str, cwd: str) -> str | None:
        """The mode that the user last chose in a folder (A5.46)."""

        def load() -> str | None:
            kept = self._load(self._user_path(user, cwd), _UserFile, [])
            return kept.mode if kept is not None and kept.mode in MODES else None

        return await self._run(load)

    async def keep_mode(self, user: str, cwd: str, mode: str) -> None:
        """Note the mode that a user chose in a folder (A5.45).

        Raises:
            StoreError: It could not be kept.
        """
        await self._run(partial(self._change, user, cwd, mode=mode))

    async def keep_rule(self, user: str, cwd: str, rule: str) -> None:
        """Note a rule for good (A5.57).

        Raises:
            StoreError: It could not be kept.
        """
        await self._run(partial(self._change, user, cwd, rule=rule))

    # trust

    async def trust(self, cwd: str) -> Trust:
        """Whether a folder is trusted, and what that is about."""
        return await self._run(partial(self.trust_now, cwd))

    def trust_now(self, cwd: str) -> Trust:
        """The same; it blocks."""
        control = read_control(Path(cwd))
        problems: list[str] = []
        kept = self._load(self._trust_path(cwd), TrustRecord, problems)
        trusted = self._trusts(cwd, control, [])
        return Trust(
            folder=cwd,
            files=tuple(control.files),
            digest=control.digest,
            trusted=trusted,
            changed=kept is not None and not trusted,
            rules=tuple(rule.text for rule in control.rules.rules),
            problems=(*problems, *control.problems, *control.rules.problems),
            contents=() if trusted else tuple(_show(control.files)),
        )

    async def set_trust(self, cwd: str, digest: str | None) -> Trust:
        """Trust a folder's files as they were seen, or forget that (A5.51).

        Raises:
            TrustRefused: The files are others than those that were seen, or can't be read whole.
            StoreError: It could not be kept.
        """
        return await self._run(partial(self.set_trust_now, cwd, digest))

    def set_trust_now(self, cwd: str, digest: str | None) -> Trust:
        """The same; it blocks."""
        if digest is None:
            self._forget(self._trust_path(cwd))
            return self.trust_now(cwd)
        control = read_control(Path(cwd))
        if control.problems:
            raise TrustRefused(
                f"{cwd!r} can't be trusted: {control.problems[0]} Mend that, then try again.",
                reason="unreadable",
            )
        if digest != control.digest:
            raise TrustRefused(
                f"The files of {cwd!r} have changed since you looked; look at them again.",
                reason="changed",
            )
        self._save(self._trust_path(cwd), TrustRecord(folder=cwd, digest=digest))
        return self.trust_now(cwd)

    def trusted_now(self) -> tuple[TrustRecord, ...]:
        """The folders that a person trusted, their files still the same or not; it blocks."""
        found = [
            self._load(path, TrustRecord, [])
            for path in sorted(self._projects().glob("*/trust.json"))
        ]
        return tuple(one for one in found if one is not None)

    def close(self) -> None:
        """End its threads."""
        if self._pool is not None:
            self._pool.shutdown()

    # files

    def _trusts(self, cwd: str, control: Control, problems: list[str]) -> bool:
        kept = self._load(self._trust_path(cwd), TrustRecord, problems)
        if kept is None or control.problems:
            return False
        return kept.folder == cwd and kept.digest == control.digest

    def _read_own(self, problems: list[str]) -> tuple[Rule, ...]:
        """The rules that the user has written for all folders."""
        if self._rules_file is None:
            return ()
        try:
            raw = self._rules_file.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            problems.append(f"{str(self._rules_file)!r} can't be read ({error.strerror}).")
            return ()
        found = parse_rules(raw, str(self._rules_file))
        problems += found.problems
        return found.rules

    def _change(
        self, user: str, cwd: str, *, mode: str | None = None, rule: str | None = None
    ) -> None:
        path, problems = self._user_path(user, cwd), list[str]()
        kept = self._load(path, _UserFile, problems)
        if problems:
            raise StoreError(problems[0])
        kept = kept or _UserFile(folder=cwd)
        rules = kept.rules if rule is None or rule in kept.rules else (*kept.rules, rule)
        mode = kept.mode if mode is None else mode
        self._save(path, _UserFile(folder=cwd, mode=mode, rules=rules))

    def _projects(self) -> Path:
        return (self._data_dir or Path()) / "projects"

    def _trust_path(self, cwd: str) -> Path:
        return self._projects() / _short(cwd) / "trust.json"

    def _user_path(self, user: str, cwd: str) -> Path:
        return self._projects() / _short(cwd) / f"user-{_short(user)}.json"

    def _load(self, path: Path, kind: type[_S], problems: list[str]) -> _S | None:
        """A file of ours; `None` where there is none, or where it can't be read, which is told."""
        try:
            return msgspec.json.decode(self._read(path), type=kind)
        except FileNotFoundError:
            return None
        except OSError as error:
            problems.append(f"{str(path)!r} can't be read ({error.strerror}).")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            problems.append(f"{str(path)!r} is broken; mend it, or remove it.")
        return None

    def _read(self, path: Path) -> bytes:
        if self._memory is not None:
            if path not in self._memory:
                raise FileNotFoundError
            return self._memory[path]
        with path.open("rb") as file:
            return file.read(_MAX_BYTES + 1)

    def _save(self, path: Path, content: msgspec.Struct) -> None:
        """Put a file in the place of the one before, whole or not at all, for this user alone."""
        if self._memory is not None:
            self._memory[path] = msgspec.json.encode(content)
            return
        with _kept(f"The file {str(path)!r}"):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600
            try:
                with open(fd, "wb") as file:  # noqa: PTH123 - it is open already
                    file.write(msgspec.json.encode(content))
                    file.flush()
                    os.fsync(fd)
                Path(name).replace(path)
            finally:
                Path(name).unlink(missing_ok=True)

    def _forget(self, path: Path) -> None:
        if self._memory is not None:
            self._memory.pop(path, None)
            return
        with _kept(f"The file {str(path)!r}"):
            path.unlink(missing_ok=True)

    async def _run(self, work: Callable[[], _T]) -> _T:
        """Work in one thread: what one call reads and writes, none other changes meanwhile."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="towline-policy")
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


@contextlib.contextmanager
def _kept(what: str) -> Generator[None]:
    """Say of a failure of the disk what was not done."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{what} could not be kept ({error.strerror}); see that the data folder is writable."
        ) from error


def _show(files: Mapping[str, bytes]) -> Iterator[TrustFile]:
    """What control files say, as far as there is room; what holds secrets by its name is not."""
    room = _SHOWN_BYTES
    for path, raw in files.items():
        name = path.encode(errors="surrogateescape").decode(errors="replace")
        if is_secret(path):
            yield TrustFile(path=name, bytes=len(raw), shown="secret")
            continue
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            yield TrustFile(path=name, bytes=len(raw), shown="binary")
            continue
        part = raw[: max(room, 0)].decode(errors="ignore")
        room -= len(raw)
        shown = "whole" if len(part) == len(text) else "cut"
        yield TrustFile(path=name, text=part, bytes=len(raw), shown=shown)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:_NAME_CHARS]


def _parse(text: str, problems: list[str]) -> Rule | None:
    try:
        return parse_rule(text)
    except UsageError as error:
        problems.append(f"A rule that was stored can't be read: {error.message}")
        return None
