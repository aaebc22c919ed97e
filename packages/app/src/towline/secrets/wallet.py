"""Which store keeps what: the system keyring where it answers, else the encrypted file (A2.74).

An index beside them says where each name lies. So nothing is asked of a keyring that holds nothing
of ours: it would have people type a password for nothing. An index that is lost is made anew out of
what the stores hold; one that cannot be looked into then is noted in it, and is not written before
it was.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from towline.paths import find_paths
from towline.secrets.file_store import FileSecretStore
from towline.secrets.keyring_store import KeyringStore
from towline.secrets.private_file import locked, read_private, write_private
from towline.secrets.store import SecretStore, SecretsUnavailable

__all__ = ["PERSON_S", "START_S", "Placed", "Wallet", "WalletContents", "open_wallet"]

PERSON_S: Final = 20.0
"""Seconds for a keyring to answer a command that a person waits for: it may have to be unlocked."""
START_S: Final = 5.0
"""Seconds for a keyring to answer while a program starts."""

_DOCUMENT: Final = "wallet"
"""All that a store keeps for us lies under this one name: one look shows it all."""
_KEYRING: Final = "keyring"
_FILE: Final = "file"
_ANSWERS: Final = "It answers."
_VALUES: Final = dict[str, str]
_ROWS: Final = dict[str, Any]
_UNSEEN: Final = "*"
"""The row of the index that lists the stores which have not been looked into since it was lost."""

_log: Final = logging.getLogger("towline")


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """Where secrets are kept, and why there (A2.74)."""

    title: str
    """The store, for people."""
    why: str
    """One sentence."""
    preferred: bool
    """Whether it is the keyring, and not what is taken instead of it."""


class WalletContents(msgspec.Struct, frozen=True, kw_only=True):
    """What one look found. Its `repr` shows names alone."""

    values: dict[str, str]
    """What is kept, by name."""
    unread: dict[str, str]
    """Names that lie in a store which cannot be used now, and the sentence that says why."""
    places: dict[str, str]
    """Where each name lies: `keyring` or `file`."""

    def __repr__(self) -> str:
        return f"WalletContents({sorted(self.values)!r}, unread={sorted(self.unread)!r})"


class _Places(msgspec.Struct):
    """Where each name lies."""

    rows: dict[str, Any]
    """The place of each name, also places that only another version of this program knows."""
    unseen: dict[str, str] = {}
    """Stores that may hold more names, and why they cannot be looked into."""


class Wallet:
    """Texts by name in one of two stores; see `SecretStore` for what blocks and what is raised.

    Args:
        keyring: The store that is preferred.
        file: The one that is taken when that cannot be used.
        index: The file that says which name lies in which of them. It holds no secret.
    """

    def __init__(self, keyring: SecretStore, file: SecretStore, index: Path) -> None:
        self._stores: dict[str, SecretStore] = {_KEYRING: keyring, _FILE: file}
        self._index = index
        self._lock = index.with_name(f"{index.name}.lock")

    def names(self) -> tuple[str, ...]:
        """What is kept, without a look into any store unless the index was lost."""
        return tuple(self._places().rows)

    def read(self) -> WalletContents:
        """All that is kept: at most one look into each store."""
        places = self._places()
        for why in places.unseen.values():
            _log.warning("%s", self._lost(why))
        values: dict[str, str] = {}
        unread = {
            name: self._foreign(name) for name in places.rows if not self._knows(places, name)
        }
        for kind in self._stores:
            names = [name for name, place in places.rows.items() if place == kind]
            if not names:
                continue
            try:
                held = self._held(kind)
            except SecretsUnavailable as error:
                unread.update(dict.fromkeys(names, error.message))
            else:
                values.update({name: held[name] for name in names if name in held})
        known = {name: place for name, place in places.rows.items() if self._knows(places, name)}
        return WalletContents(values=values, unread=unread, places=known)

    def get(self, name: str) -> str | None:
        """What is kept under a name.

        Raises:
            SecretsUnavailable: The store where it lies cannot be used now.
        """
        with _needed():
            return self._find(self._places(), name)

    def set(self, name: str, value: str) -> Placed:
        """Keep a text in the first store that can be used, and tell which that was.

        Raises:
            SecretsUnavailable: No store can be used.
        """
        with self._changing(sets=True) as places:
            return self._set(places, name, value)

    def delete(self, name: str) -> None:
        """Forget a name; one that is not there is fine.

        Raises:
            SecretsUnavailable: The store where it lies cannot be used now, so it is still there.
        """
        with self._changing(sets=False) as places:
            self._delete(places, name)

    def edit(self, name: str, change: Callable[[str | None], str | None]) -> Placed | None:
        """Change what is kept under a name, with nobody else in between.

        Args:
            name: The name.
            change: From what is there to what shall be; `None` stands for nothing.

        Raises:
            SecretsUnavailable: The store where it lies cannot be used now.
        """
        with self._changing(sets=True) as places:
            with _needed():
                before = self._find(places, name)
            text = change(before)
            if text is not None:
                return self._set(places, name, text)
            self._delete(places, name)
            return None

    def place(self) -> Placed:
        """Where a new secret would be kept now. Asks the keyring, which may ask a person."""
        kind, why = _KEYRING, _ANSWERS
        try:
            self._stores[_KEYRING].get(_DOCUMENT)
        except SecretsUnavailable as error:
            kind, why = _FILE, error.message
        return self._placed(kind, why)

    def _placed(self, kind: str, why: str) -> Placed:
        return Placed(title=self._stores[kind].title, why=why, preferred=kind == _KEYRING)

    @contextlib.contextmanager
    def _changing(self, *, sets: bool) -> Generator[_Places]:
        used = self._lock.exists()
        with locked(self._lock):
            yield self._places(used=used, sets=sets)

    def _set(self, places: _Places, name: str, value: str) -> Placed:
        before = places.rows.get(name)
        kind, why = self._put(places, name, value)
        self._save_places(places)
        if before in (_KEYRING, _FILE) and before != kind:
            # what stays there is not found any more, and goes with the next change there
            with contextlib.suppress(SecretsUnavailable):
                self._drop(places, before)
        return self._placed(kind, why)

    def _delete(self, places: _Places, name: str) -> None:
        with _needed():
            place = self._place_of(places, name)
            if place is None:
                return
            del places.rows[name]
            self._drop(places, place)
        self._save_places(places)

    def _find(self, places: _Places, name: str) -> str | None:
        place = self._place_of(places, name)
        return self._held(place).get(name) if place is not None else None

    def _place_of(self, places: _Places, name: str) -> str | None:
        """The store where a name lies; `None` when it is certain that it lies in none."""
        if name not in places.rows:
            for why in places.unseen.values():
                raise SecretsUnavailable(self._lost(why))
            return None
        if not self._knows(places, name):
            raise SecretsUnavailable(self._foreign(name))
        return places.rows[name]

    def _knows(self, places: _Places, name: str) -> bool:
        return places.rows[name] in (_KEYRING, _FILE)

    def _put(self, places: _Places, name: str, value: str) -> tuple[str, str]:
        """Keep a text, note its place, and tell it and why it lies there."""
        try:
            self._add(_KEYRING, places, name, value)
        except SecretsUnavailable as error:
            self._add(_FILE, places, name, value)
            return _FILE, error.message
        return _KEYRING, _ANSWERS

    def _add(self, kind: str, places: _Places, name: str, value: str) -> None:
        if kind in places.unseen:  # what it holds would be written over
            raise SecretsUnavailable(places.unseen[kind])
        held = self._own(kind, places)
        self._stores[kind].set(_DOCUMENT, _encode({**held, name: value}))
        places.rows[name] = kind

    def _drop(self, places: _Places, kind: str) -> None:
        """Leave in a store only what the index says is there."""
        held = self._own(kind, places)
        if held:
            self._stores[kind].set(_DOCUMENT, _encode(held))
        else:
            self._stores[kind].delete(_DOCUMENT)

    def _own(self, kind: str, places: _Places) -> dict[str, str]:
        rows = places.rows
        return {name: text for name, text in self._held(kind).items() if rows.get(name) == kind}

    def _held(self, kind: str) -> dict[str, str]:
        text = self._stores[kind].get(_DOCUMENT)
        if text is None:
            return {}
        try:
            return msgspec.json.decode(text, type=_VALUES)
        except msgspec.DecodeError:
            # `from None`: the cause may quote what it could not read
            raise SecretsUnavailable(
                f"What {self._stores[kind].title} keeps for towline is damaged, so it is left as "
                "it is; put it back from a copy, or save it elsewhere before you remove it there."
            ) from None

    def _places(self, *, used: bool | None = None, sets: bool = False) -> _Places:
        """The index; what it does not know of a store since it was lost is looked up there.

        Args:
            used: Whether this wallet was changed before; by default its lock tells.
            sets: Whether something will be set, which asks the keyring anyway.
        """
        content = read_private(self._index)
        rows = _read_rows(content) if content is not None else None
        if rows is not None:
            unseen = str(rows.pop(_UNSEEN, "")).split()
            return self._look(_Places(rows), unseen)
        # what lies in both went to the file last, when the keyring did not answer: that one counts
        places = self._look(_Places({}), (_FILE,))
        used = self._lock.exists() if used is None else used
        if content is not None or used or places.rows or places.unseen:  # it was lost
            return self._look(places, (_KEYRING,))
        if sets:
            places = self._look(places, (_KEYRING,))
            places.unseen.clear()  # nothing says that anything was ever there
        return places

    def _look(self, places: _Places, kinds: Iterable[str]) -> _Places:
        """The places with what lies in these stores."""
        unseen, rows = dict(places.unseen), dict(places.rows)
        for kind in kinds:
            if kind not in self._stores:
                continue
            try:
                held = self._held(kind)
            except SecretsUnavailable as error:
                unseen[kind] = error.message
            else:
                rows = {**dict.fromkeys(held, kind), **rows}
        return _Places(rows, unseen)

    def _save_places(self, places: _Places) -> None:
        unseen = {_UNSEEN: " ".join(places.unseen)} if places.unseen else {}
        write_private(self._index, msgspec.json.encode({**places.rows, **unseen}))

    def _lost(self, why: str) -> str:
        return (
            f"The file {str(self._index)!r}, which says where keys lie, was lost or damaged, and a "
            f"place where some may lie cannot be looked into. {why}"
        )

    def _foreign(self, name: str) -> str:
        return (
            f"{name!r} lies where another version of towline put it, as {str(self._index)!r} says; "
            "use that version, or set it anew."
        )


def _read_rows(content: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(content, type=_ROWS)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


@contextlib.contextmanager
def _needed() -> Generator[None]:
    """Nothing can stand in for a store that holds the very thing: says what to do then."""
    try:
        yield
    except SecretsUnavailable as error:
        raise SecretsUnavailable(
            f"{error.message} What is asked for lies there: see that it can be used, and try again."
        ) from error


def _encode(values: Mapping[str, str]) -> str:
    return msgspec.json.encode(values).decode()


def open_wallet(
    environ: Mapping[str, str] = os.environ, *, keyring_limit_s: float = PERSON_S
) -> Wallet:
    """The wallet of this user; nothing is read before it is asked.

    Args:
        environ: Says where files lie and where the keyring is.
        keyring_limit_s: Seconds for the keyring to answer.
    """
    paths = find_paths(environ)
    home = environ.get("TOWLINE_HOME")
    return Wallet(
        KeyringStore(
            f"towline {paths.data_dir.parent}" if home else "towline",
            limit_s=keyring_limit_s,
            environ=environ,
        ),
        FileSecretStore(paths.data_dir / "secrets.bin", paths.config_file.with_name("secrets.key")),
        paths.data_dir / "secrets.json",
    )
