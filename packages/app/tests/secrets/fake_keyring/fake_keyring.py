"""A keyring for tests: a file, and whatever else a keyring may do to those who ask it.

`PYTHON_KEYRING_BACKEND=fake_keyring.FakeKeyring` makes it the system's. `FAKE_KEYRING` names its
folder; a file `mood` there makes it hang, locked, gone or lie.
"""

import json
import os
import threading
from pathlib import Path
from typing import Any

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked


class FakeKeyring(KeyringBackend):
    name = "Fake Keyring"  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
    priority = 5  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def get_password(self, service: str, username: str) -> str | None:
        return self._open("get").get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._save({**self._open("set"), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        values = self._open("delete")
        del values[f"{service}/{username}"]
        self._save(values)

    def _open(self, call: str) -> dict[str, Any]:
        folder = Path(os.environ["FAKE_KEYRING"])
        with (folder / "calls").open("a") as calls:
            calls.write(f"{call}\n")
        mood = folder / "mood"
        match mood.read_text() if mood.exists() else "":
            case "hang":
                threading.Event().wait()
            case "locked":
                raise KeyringLocked("sk-secret-in-its-words")
            case "gone":
                os._exit(7)
            case "chatty":
                os.write(1, b"Hello!\n")
            case _:
                pass
        values = folder / "values"
        return json.loads(values.read_text()) if values.exists() else {}

    def _save(self, values: dict[str, Any]) -> None:
        mood = Path(os.environ["FAKE_KEYRING"]) / "mood"
        if mood.exists() and mood.read_text() == "lies":
            return
        (Path(os.environ["FAKE_KEYRING"]) / "values").write_text(json.dumps(values))


class PlainFile(FakeKeyring):
    """What other packages add: it works, but hides nothing."""

    priority = 0.5  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
