"""Which exchange meets which fault: drawn, and the same for the same draws."""

import random
from typing import Final

import msgspec

__all__ = ["Fate", "Faults", "draw_fate"]

MAX_FRAMES: Final = 256
"""Frames after which a stream ends in mid-frame, at most: later ones would rarely be reached."""


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """How often each thing goes wrong, as chances from 0 to 1; with the defaults nothing does.

    Those from `cut` to `refuse` are for a whole exchange (a request and its answer, or a stream),
    which meets one of them at most; their sum is 1 at most. Those of pieces come on top.

    Raises:
        ValueError: The chances are none, or more than 1 together.
    """

    cut: float = 0.0
    """The connection breaks: before the server hears of the request, within it, or anywhere in the
    answer, so that the answer is lost though all was done."""
    half_frame: float = 0.0
    """A stream ends in the middle of a frame; sometimes in order, as if it were whole."""
    double: float = 0.0
    """A request with an idempotency key reaches the server twice at once; one answer is dropped."""
    unauthorized: float = 0.0
    """A stream is cut, and the next one is answered with 401: by the server's contract, or by a
    proxy without it."""
    portal: float = 0.0
    """A sign-in page comes instead of an answer, with status 200."""
    bad_gateway: float = 0.0
    """A proxy's page with status 502 comes instead of an answer; the server hears nothing."""
    black_hole: float = 0.0
    """The connection is taken, and nothing comes, for `hole_s` or until the client leaves."""
    refuse: float = 0.0
    """The connection breaks, and further ones are refused for `refuse_s`."""

    delay: float = 0.0
    """A piece of an answer comes up to `delay_s` late."""
    double_frame: float = 0.0
    """A frame of a stream comes twice."""

    delay_s: float = 0.1
    """The longest delay, in seconds."""
    hole_s: float = 2.0
    """The longest silence, in seconds."""
    refuse_s: float = 0.3
    """How long connections are refused, in seconds."""
    reach: int = 32 * 1024
    """Cuts of an answer come within so many of its bytes; early ones are the more likely."""

    def __post_init__(self) -> None:
        chances = [getattr(self, name) for name in (*_WHOLE, "delay", "double_frame")]
        if not all(0 <= chance <= 1 for chance in chances) or sum(chances[: len(_WHOLE)]) > 1:
            raise ValueError(
                f"{self!r} has chances that are none; give numbers from 0 to 1, and 1 at most for "
                f"the sum of {', '.join(_WHOLE)}."
            )


_WHOLE: Final = (
    "cut", "half_frame", "double", "unauthorized", "portal", "bad_gateway", "black_hole", "refuse",
)  # fmt: skip
_OF_STREAMS: Final = frozenset({"half_frame", "unauthorized"})


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What one exchange meets."""

    kind: str = "pass"
    """A field of `Faults` that is for a whole exchange, or `pass` for none."""
    place: str = "answer"
    """Where a cut comes: `before` the request has reached the server, `within` it, or in its
    `answer`."""
    at: int = 0
    """Bytes of the answer before it; frames of a stream for `half_frame`."""
    end: str = "fin"
    """How the connection ends then: `fin`, `rst`, or `clean` for a stream that seems whole."""
    contract: bool = True
    """Whether a 401 carries the contract's header."""


def draw_fate(chance: random.Random, faults: Faults, *, stream: bool, keyed: bool) -> Fate:
    """What an exchange meets.

    Args:
        chance: Draws; always as many numbers.
        faults: How likely each is.
        stream: Whether it is a stream.
        keyed: Whether its request counts once however often it comes.
    """
    roll, place, at, end, contract = (chance.random() for _ in range(5))
    kind = _kind_of(roll, faults)
    if (kind in _OF_STREAMS and not stream) or (kind == "double" and not keyed):
        kind = "pass"
    ends = ("fin", "rst", "clean") if kind == "half_frame" else ("fin", "rst")
    reach = MAX_FRAMES if kind == "half_frame" else faults.reach
    return Fate(
        kind=kind,
        place="answer" if place < 0.7 or kind != "cut" else "before" if place < 0.85 else "within",
        at=int(reach**at) - 1,  # most answers are short, and what is open in a stream comes first
        end=ends[int(end * len(ends))],
        contract=contract < 0.5,
    )


def _kind_of(roll: float, faults: Faults) -> str:
    for name in _WHOLE:
        roll -= getattr(faults, name)
        if roll < 0:
            return name
    return "pass"
