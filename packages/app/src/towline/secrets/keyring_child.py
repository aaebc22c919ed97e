"""One question to the system keyring, in a process of its own that can be ended when it hangs.

It is run by its path, reads one JSON object from standard input and writes one to standard output;
what a keyring itself prints goes nowhere. What goes wrong is told by its class alone: its text is
the keyring's own and might hold anything.
"""

import json
import os
import sys
from types import TracebackType
from typing import Any, Final

_ANSWERS: Final = 3
"""A second descriptor of standard output, after the first one was turned away."""


def _tell_class(
    kind: type[BaseException], _error: BaseException, _traceback: TracebackType | None
) -> None:
    _answer({"failed": kind.__name__})


def _answer(value: dict[str, Any]) -> None:
    os.write(_ANSWERS, json.dumps(value).encode())


def _is_real(keyring: Any) -> bool:
    """Not the plain text files that other packages add, and not the one that always fails."""
    return bool(keyring.priority >= 1)


def _main() -> None:
    from keyring import core

    asked: dict[str, Any] = json.load(sys.stdin)
    core.init_backend(_is_real)
    keyring: Any = core.get_keyring()
    answer: dict[str, Any] = {"keyring": str(keyring.name), "usable": _is_real(keyring)}
    if answer["usable"]:
        service, name = asked["service"], asked["name"]
        match asked["do"]:
            case "get":
                answer["value"] = keyring.get_password(service, name)
            case "set":
                keyring.set_password(service, name, asked["value"])
                answer["kept"] = keyring.get_password(service, name) == asked["value"]
            case _:
                if keyring.get_password(service, name) is not None:
                    keyring.delete_password(service, name)
                answer["kept"] = keyring.get_password(service, name) is None
    _answer(answer)


if __name__ == "__main__":
    os.dup2(1, _ANSWERS)
    os.dup2(2, 1)
    sys.excepthook = _tell_class
    _main()
