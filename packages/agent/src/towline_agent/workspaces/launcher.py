"""Becomes the program when it is told to, so that its id, start time and group are known before.

Run as a script, in the sandbox if there is one, with little of the standard library, since each
module costs every program some time. It waits at its gate, a socket: when the other end closes
without a word, as in a crash of ours, it leaves. A failed start is told by its number; a good one
closes the gate.
"""

import os
import sys

__all__ = ["LANDLOCK", "MAKER", "MARK", "main"]

MARK = "PROGRAM_OF"
"""The variable that names the program whose processes inherit it: how those are found that have
left its group, its session and its parents. Its value is `PID@START`."""
MAKER = "PROGRAM_BY"
"""The variable that names the process that runs the program: `PID@START@NAMESPACE`."""
LANDLOCK = 444
"""The number of the first of the three calls, the same on every machine."""

_NO_NEW_PRIVS = 38
_PATH_BENEATH = 1


def main(gate: int, argv: list[str]) -> None:
    """Greet, wait for the word, and become the program; returns when that failed."""
    import _signal  # pyright: ignore[reportMissingImports] - `signal` itself takes its time

    os.write(gate, b"+")
    size = _receive(gate, 4)
    words = _receive(gate, int.from_bytes(size, "big")) if size else b""
    if not words:
        return
    os.environ[MARK], os.environ[MAKER], *fence = os.fsdecode(words).split("\0")
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these, and programs expect them
        if hasattr(_signal, name):
            _signal.signal(getattr(_signal, name), 0)  # pyright: ignore[reportUnknownMemberType]
    try:
        if fence:
            _fence_in(fence)
    except OSError as error:
        os.write(gate, f"!{error.errno}".encode())
        return
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - what runs was allowed by the gate
    except OSError as error:
        os.write(gate, str(error.errno).encode())


def _receive(gate: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = os.read(gate, size - len(data))
        if not more:
            return b""
        data += more
    return data


def _fence_in(words: list[str]) -> None:
    """Give up, for good, all that is not allowed (Linux's landlock).

    Args:
        words: What is kept from it of files, of the network, and of other processes, as bits; then
            bits and the path below which they are given back, again and again.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: object) -> int:
        done = int(libc.syscall(number, *arguments))
        if done < 0:
            raise OSError(ctypes.get_errno(), "landlock")
        return done

    kept = [int(word) for word in words[:3]]
    while kept[-1] == 0:
        kept.pop()  # an older kernel does not know the later fields
    rules = (ctypes.c_uint64 * len(kept))(*kept)
    ruleset = call(LANDLOCK, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    for bits, path in zip(words[3::2], words[4::2], strict=True):
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # it is gone: then there is nothing to allow
        beneath = int(bits).to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
        call(LANDLOCK + 1, ruleset, _PATH_BENEATH, ctypes.c_char_p(beneath), 0)
        os.close(place)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "landlock")
    call(LANDLOCK + 2, ruleset, 0)


if __name__ == "__main__":
    _gate = int(sys.argv[1])
    os.set_inheritable(_gate, False)
    main(_gate, sys.argv[2:])
    os._exit(127)
