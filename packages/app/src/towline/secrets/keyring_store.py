"""The system keyring, asked in a process of its own (A2.74).

A keyring is another program. It may be locked and wait for a person who is not there, or not answer
at all, and a thread that waits for it could never be ended; a process can.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from towline.secrets.store import SecretsUnavailable

__all__ = ["KeyringStore"]

_CHILD: Final = Path(__file__).with_name("keyring_child.py")

_LOCKED: Final = "KeyringLocked"
"""What it fails with when nobody has unlocked it."""


class _Answer(msgspec.Struct):
    keyring: str = ""
    usable: bool = False
    value: str | None = None
    kept: bool = True
    """Whether a look after a change found it."""
    failed: str = ""


class KeyringStore:
    """Keeps texts in the system keyring; see `SecretStore`.

    Once it did not answer, this object does not ask it again: one wait is enough.

    Args:
        service: The name under which the keyring's own screens show what is kept.
        limit_s: Seconds for it to answer; with a person there it may have to be unlocked first.
        environ: The environment, which says where the keyring is.
    """

    def __init__(
        self, service: str, *, limit_s: float, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._service = service
        self._limit_s = limit_s
        self._environ = environ
        self._name = ""
        self._problem: str | None = None

    @property
    def title(self) -> str:
        """What it is, with its own name once it has told it."""
        return f"the system keyring ({self._name})" if self._name else "the system keyring"

    def get(self, name: str) -> str | None:
        """What is kept under a name."""
        return self._ask("get", name).value

    def set(self, name: str, value: str) -> None:
        """Keep a text."""
        self._ask("set", name, value)

    def delete(self, name: str) -> None:
        """Forget a name."""
        self._ask("delete", name)

    def _ask(self, do: str, name: str, value: str = "") -> _Answer:
        if self._problem is not None:
            raise SecretsUnavailable(self._problem)
        asked = {"do": do, "service": self._service, "name": name, "value": value}
        try:
            answer = msgspec.json.decode(self._run(msgspec.json.encode(asked)), type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            answer = _Answer(failed="no answer")
        if answer.failed:
            locked = answer.failed == _LOCKED
            what = "is locked" if locked else f"failed ({answer.failed})"
            raise self._give_up(f"The system keyring {what}.")
        if not answer.usable:
            raise self._give_up("There is no system keyring on this machine.")
        if not answer.kept:
            raise self._give_up(
                f"The system keyring ({answer.keyring}) says it did as told, and did not."
            )
        self._name = answer.keyring
        return answer

    def _run(self, asked: bytes) -> bytes:
        # -P: a file of that name in the current folder is not the keyring
        command = [sys.executable, "-P", str(_CHILD)]
        try:
            process = subprocess.Popen(  # noqa: S603 - our own file
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=dict(self._environ),
            )
        except OSError as error:
            raise self._give_up(
                f"The system keyring could not be asked ({error.strerror})."
            ) from error
        with process:
            try:
                return process.communicate(asked, timeout=self._limit_s)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                raise self._give_up(
                    f"The system keyring did not answer within {self._limit_s:g} s; is it locked?"
                ) from None
            except BaseException:
                process.kill()
                raise

    def _give_up(self, problem: str) -> SecretsUnavailable:
        self._problem = problem
        return SecretsUnavailable(problem)
