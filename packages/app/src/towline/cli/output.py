"""Output that cannot be written, told in one line: a full disk, or a reader that has gone."""

import contextlib
import os
import sys
from collections.abc import Generator, Iterable
from typing import Any, Final, NoReturn, TextIO, cast

__all__ = ["OUTPUT_FAILED", "OutputFailed", "heeded_output"]

OUTPUT_FAILED: Final = 1
"""The exit code when output could not be written."""


class OutputFailed(OSError):
    """What was written went nowhere. Without a number of its own: libraries end silently for some.

    Args:
        name: Which output it was.
        why: What the system says.
        stream: The output.
    """

    def __init__(self, name: str, why: str, stream: TextIO) -> None:
        super().__init__(f"{name} cannot be written ({why}).")
        self.stream = stream
        """The output."""


class _Heeded:
    """A stream that says of a failure that it is one of output; all else is the stream's own."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return iter(self._stream)

    def write(self, text: str) -> int:
        with self._telling():
            return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        with self._telling():
            self._stream.writelines(lines)

    def flush(self) -> None:
        with self._telling():
            self._stream.flush()

    @contextlib.contextmanager
    def _telling(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise OutputFailed(self._name, why, self._stream) from error


@contextlib.contextmanager
def heeded_output() -> Generator[None]:
    """End the process with one line, not with a traceback, when output cannot be written.

    For the whole of a program: it stands around everything that prints.
    """
    kept: tuple[Any, Any] = sys.stdout, sys.stderr
    heeded: Any = _Heeded(sys.stdout, "Standard output"), _Heeded(sys.stderr, "Standard error")
    sys.stdout, sys.stderr = heeded
    try:
        try:
            yield
        finally:
            heeded[0].flush()  # else the interpreter finds out, and has no words for it
    except OutputFailed as error:
        _give_up(error)
    except BaseExceptionGroup as group:
        error = _find(group)
        if error is None:
            raise
        _give_up(error)
    finally:
        sys.stdout, sys.stderr = kept


def _find(group: BaseExceptionGroup[BaseException]) -> OutputFailed | None:
    """The failure of output among what tasks ended with."""
    for error in group.exceptions:
        if isinstance(error, OutputFailed):
            return error
        if isinstance(error, BaseExceptionGroup):
            found = _find(cast("BaseExceptionGroup[BaseException]", error))
            if found is not None:
                return found
    return None


def _give_up(error: OutputFailed) -> NoReturn:
    with contextlib.suppress(OSError, ValueError):  # a stream without a file has nothing to mend
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, error.stream.fileno())  # or the end of the process fails once more
        os.close(nowhere)
    with contextlib.suppress(OSError):  # it may be the very one that failed
        sys.stderr.write(f"towline: {error}\n")
        sys.stderr.flush()
    sys.exit(OUTPUT_FAILED)
