"""Which store keeps what: the system keyring where it answers, else the encrypted file (A2.74).

An index beside them says where each name lies. So nothing is asked of a keyring that holds nothing
of ours: it would have people type a password for nothing.
"""

import contextlib
import os
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Final

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

    def __repr__(self) -> str:
        return f"WalletContents({sorted(self.values)!r}, unread={sorted(self.unread)!r})"


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
        """What is kept, without a look into any store."""
        return tuple(self._places())

    def read(self) -> WalletContents:
        """All that is kept: at most one look into each store."""
        places = self._places()
        values: dict[str, str] = {}
        unread: dict[str, str] = {}
        for kind in dict.fromkeys(places.values()):
            names = [name for name, place in places.items() if place == kind]
            try:
                held = self._held(kind)
            except SecretsUnavailable as error:
                unread.update(dict.fromkeys(names, error.message))
            else:
                values.update({name: held[name] for name in names if name in held})
        return WalletContents(values=values, unread=unread)

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
        with locked(self._lock):
            return self._set(self._places(), name, value)

    def delete(self, name: str) -> None:
        """Forget a name; one that is not there is fine.

        Raises:
            SecretsUnavailable: The store where it lies cannot be used now, so it is still there.
        """
        with locked(self._lock):
            self._delete(self._places(), name)

    def edit(self, name: str, change: Callable[[str | None], str | None]) -> Placed | None:
        """Change what is kept under a name, with nobody else in between.

        Args:
            name: The name.
            change: From what is there to what shall be; `None` stands for nothing.

        Raises:
            SecretsUnavailable: The store where it lies cannot be used now.
        """
        with locked(self._lock):
            places = self._places()
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

    def _set(self, places: dict[str, str], name: str, value: str) -> Placed:
        before = places.get(name)
        why = self._put(places, name, value)
        self._save_places(places)
        kind = places[name]
        if before is not None and before != kind:
            # what stays there is not found any more, and goes with the next change there
            with contextlib.suppress(SecretsUnavailable):
                self._drop(places, before)
        return self._placed(kind, why)

    def _delete(self, places: dict[str, str], name: str) -> None:
        place = places.pop(name, None)
        if place is not None:
            with _needed():
                self._drop(places, place)
            self._save_places(places)

    def _find(self, places: Mapping[str, str], name: str) -> str | None:
        place = places.get(name)
        return self._held(place).get(name) if place is not None else None

    def _put(self, places: dict[str, str], name: str, value: str) -> str:
        """Keep a text, note its place, and tell why it lies there."""
        try:
            self._add(_KEYRING, places, name, value)
        except SecretsUnavailable as error:
            self._add(_FILE, places, name, value)
            return error.message
        return _ANSWERS

    def _add(self, kind: str, places: dict[str, str], name: str, value: str) -> None:
        held = self._own(kind, places)
        self._stores[kind].set(_DOCUMENT, _encode({**held, name: value}))
        places[name] = kind

    def _drop(self, places: Mapping[str, str], kind: str) -> None:
        """Leave in a store only what the index says is there."""
        held = self._own(kind, places)
        if held:
            self._stores[kind].set(_DOCUMENT, _encode(held))
        else:
            self._stores[kind].delete(_DOCUMENT)

    def _own(self, kind: str, places: Mapping[str, str]) -> dict[str, str]:
        return {name: text for name, text in self._held(kind).items() if places.get(name) == kind}

    def _held(self, kind: str) -> dict[str, str]:
        text = self._stores[kind].get(_DOCUMENT)
        if text is None:
            return {}
        try:
            return msgspec.json.decode(text, type=_VALUES)
        except msgspec.DecodeError:
            # `from None`: the cause may quote what it could not read
            raise SecretsUnavailable(
                f"What {self._stores[kind].title} keeps for towline is damaged; delete it there "
                "and set the keys anew."
            ) from None

    def _places(self) -> dict[str, str]:
        content = read_private(self._index)
        if content is None:
            return {}
        try:
            places = msgspec.json.decode(content, type=_VALUES)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SecretsUnavailable(
                f"The file {str(self._index)!r} is damaged; delete it and set the keys anew."
            ) from error
        return {name: place for name, place in places.items() if place in self._stores}

    def _save_places(self, places: Mapping[str, str]) -> None:
        write_private(self._index, msgspec.json.encode(places))


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
