"""The store of machines without a keyring: an encrypted file, its key kept apart (A2.74)."""

from pathlib import Path
from typing import Final

import msgspec

from towline.secrets.private_file import locked, read_private, write_private
from towline.secrets.store import SecretsUnavailable

__all__ = ["FileSecretStore"]

_VALUES: Final = dict[str, str]


class FileSecretStore:
    """Keeps texts in one encrypted file; see `SecretStore`.

    The key stands in another folder, so that a copy of one of them tells nothing. Both files are
    readable by this user alone.

    Args:
        path: The encrypted file; made at the first `set`.
        key_file: The file with its key; made with it.
    """

    def __init__(self, path: Path, key_file: Path) -> None:
        self._path = path
        self._key_file = key_file
        self._lock = path.with_name(f"{path.name}.lock")

    @property
    def title(self) -> str:
        """What it is and where."""
        return f"the encrypted file {str(self._path)!r} (its key is in {str(self._key_file)!r})"

    def get(self, name: str) -> str | None:
        """What is kept under a name; the file is replaced as a whole, so no lock is needed."""
        return self._load().get(name)

    def set(self, name: str, value: str) -> None:
        """Keep a text."""
        with locked(self._lock):
            self._save({**self._load(), name: value})

    def delete(self, name: str) -> None:
        """Forget a name."""
        with locked(self._lock):
            values = self._load()
            if values.pop(name, None) is not None:
                self._save(values)

    def _load(self) -> dict[str, str]:
        sealed = read_private(self._path)
        if sealed is None:
            return {}
        key = read_private(self._key_file)
        if key is None:
            raise self._unreadable(f"its key {str(self._key_file)!r} is not there")
        # Loading a cipher takes 50 ms, and without a secret nobody needs it.
        from cryptography.fernet import Fernet, InvalidToken

        try:
            return msgspec.json.decode(Fernet(key.strip()).decrypt(sealed), type=_VALUES)
        except (InvalidToken, ValueError):  # a DecodeError is a ValueError
            # `from None`: the cause may quote what it could not read
            reason = f"it is damaged, or {str(self._key_file)!r} is not its key"
            raise self._unreadable(reason) from None

    def _save(self, values: dict[str, str]) -> None:
        from cryptography.fernet import Fernet

        key = read_private(self._key_file)
        if key is None:
            key = Fernet.generate_key()
            write_private(self._key_file, key + b"\n")
        try:
            cipher = Fernet(key.strip())
        except ValueError:
            raise self._unreadable(f"{str(self._key_file)!r} holds no key") from None
        write_private(self._path, cipher.encrypt(msgspec.json.encode(values)))

    def _unreadable(self, why: str) -> SecretsUnavailable:
        return SecretsUnavailable(
            f"The file {str(self._path)!r} cannot be decrypted: {why}. Put the right files back; "
            "to begin anew, move both of them aside and set the keys again."
        )
