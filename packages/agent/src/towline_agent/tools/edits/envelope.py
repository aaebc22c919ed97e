"""The `*** Begin Patch` form of a patch."""

from typing import Final

from towline_agent.tools.edits.hunk import FilePatch, Hunk
from towline_agent.tools.edits.patch_lines import NO_END, PatchLines

__all__ = ["read_envelope"]

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_MOVE: Final = "*** Move to: "
_END_OF_FILE: Final = "*** End of File"
_KINDS: Final = {
    "*** Add File: ": "add",
    "*** Delete File: ": "delete",
    "*** Update File: ": "update",
}
_SIGNS: Final = (" ", "-", "+")


def read_envelope(lines: list[str]) -> tuple[FilePatch, ...]:
    """The files of such a patch.

    Raises:
        ToolInputInvalid: A line can't stand where it stands.
    """
    rest = PatchLines(lines)
    rest.skip_empty()
    if rest.take().rstrip() != _BEGIN:
        rest.refuse(f"begin with '{_BEGIN}'", rest.number - 1)
    found: list[FilePatch] = []
    while True:
        rest.skip_empty()
        if rest.next is None:
            rest.refuse(f"end with '{_END}'")
        if rest.next.rstrip() == _END:
            break
        found.append(_read_file(rest))
    rest.take()
    rest.skip_empty()
    if not rest.is_over:
        rest.refuse(f"nothing may follow '{_END}'")
    return tuple(found)


def _read_file(rest: PatchLines) -> FilePatch:
    number, line = rest.number, rest.take()
    header = next((header for header in _KINDS if line.startswith(header)), None)
    if header is None:
        rest.refuse("expected '*** Add File: ', '*** Update File: ' or '*** Delete File: '", number)
    path = line.removeprefix(header).strip()
    if not path:
        rest.refuse("it names no path", number)
    kind = _KINDS[header]
    if kind == "add":
        return FilePatch(number=number, kind=kind, path=path, hunks=(_read_new(rest),))
    if kind == "delete":
        return FilePatch(number=number, kind=kind, path=path)
    target = None
    if (rest.next or "").startswith(_MOVE):
        target = rest.take().removeprefix(_MOVE).strip()
        if not target:
            rest.refuse("it names no path", rest.number - 1)
    hunks: list[Hunk] = []
    while rest.next is not None and not _is_header(rest.next):
        hunks.append(_read_hunk(rest))
    if not hunks and target is None:
        rest.refuse("it changes nothing; lines that begin with ' ', '-' or '+' belong here")
    return FilePatch(number=number, kind=kind, path=path, target=target, hunks=tuple(hunks))


def _read_new(rest: PatchLines) -> Hunk:
    number = rest.number
    body: list[tuple[str, str]] = []
    while rest.next is not None and rest.next.startswith("+"):
        body.append(("+", rest.take()[1:]))
    is_open = bool(body) and _take_no_end(rest)
    rest.skip_empty()
    if rest.next is not None and not _is_header(rest.next):
        rest.refuse("each line of a new file begins with '+'")
    return Hunk(number=number, body=tuple(body), new_open=is_open, at_end=True)


def _read_hunk(rest: PatchLines) -> Hunk:
    number = rest.number
    anchors: list[str] = []
    while (rest.next or "").startswith("@@"):
        anchor = rest.take()[2:].removesuffix("@@").removeprefix(" ").rstrip()
        if anchor:
            anchors.append(anchor)
    body: list[tuple[str, str]] = []
    open_signs = ""
    while rest.next is not None and not rest.next.startswith(("@@", "*** ")):
        line = rest.take()
        if line and line[0] not in _SIGNS:
            rest.refuse("begin it with ' ' to keep it, '-' or '+'", rest.number - 1)
        body.append((line[:1] or " ", line[1:]))
        if _take_no_end(rest):
            open_signs += body[-1][0]
    if _is_header(rest.next or _END):
        while body and body[-1] == (" ", "") and not open_signs:
            body.pop()  # an empty line before the next header is there to look nice
    at_end = (rest.next or "").rstrip() == _END_OF_FILE
    if at_end:
        rest.take()
        rest.skip_empty()
    if not any(sign != " " for sign, _ in body):
        rest.refuse("this place changes nothing; it needs lines with '-' or '+'", number)
    return Hunk(
        number=number,
        body=tuple(body),
        anchors=tuple(anchors),
        at_end=at_end,
        old_open=" " in open_signs or "-" in open_signs,
        new_open=" " in open_signs or "+" in open_signs,
    )


def _take_no_end(rest: PatchLines) -> bool:
    if not (rest.next or "").startswith(NO_END):
        return False
    rest.take()
    return True


def _is_header(line: str) -> bool:
    return line.startswith("*** ") and line.rstrip() != _END_OF_FILE
