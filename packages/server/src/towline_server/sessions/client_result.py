"""What clients send as a call's result: checked, and told from another one. Pure."""

import hashlib
from typing import Final, NamedTuple

from towline_protocol import Image, ResultBlock, Text, encode
from towline_server.errors import Rejected
from towline_server.sessions.bulk import MAX_FILE, read_data
from towline_server.sessions.sniff import PICTURES, sniff

__all__ = ["ClientResult", "check_result", "result_digest"]

_MAX_BLOCKS: Final = 64  # as many as a prompt has (C6)


class ClientResult(NamedTuple):
    """A result that holds."""

    content: tuple[Text | Image, ...]
    """Its blocks; the log moves the bytes of pictures into files."""
    is_error: bool
    """Whether it is told as an error."""
    digest: str
    """Equal for equal results."""


def check_result(content: tuple[Text | Image, ...], *, is_error: bool) -> ClientResult:
    """A result as it came, its pictures looked at.

    Raises:
        Rejected: There are too many blocks, or a picture is none or too large.
    """
    if len(content) > _MAX_BLOCKS:
        raise Rejected(f"A result has at most {_MAX_BLOCKS} blocks; this one has {len(content)}.")
    checked: list[Text | Image] = []
    named: list[Text | Image] = []
    for block in content:
        if isinstance(block, Text):
            checked.append(block)
            named.append(block)
            continue
        data = _read(block)
        kind = sniff(data)
        if kind not in PICTURES:
            raise Rejected(
                f"A picture of this result is {kind}; send one of {', '.join(sorted(PICTURES))}.",
                reason="no_picture",
            )
        checked.append(Image(media_type=kind, data=block.data))
        named.append(Image(media_type=kind, file=hashlib.sha256(data).hexdigest()))
    return ClientResult(tuple(checked), is_error, result_digest(tuple(named), is_error=is_error))


def result_digest(content: tuple[ResultBlock, ...], *, is_error: bool) -> str:
    """What two equal results have in common, as they stand in the log."""
    return hashlib.sha256(encode((content, is_error))).hexdigest()


def _read(image: Image) -> bytes:
    if not image.data or image.file is not None:
        raise Rejected("A picture in a result needs its bytes in `data`, as base 64, and no file.")
    if len(image.data) > (MAX_FILE + 2) // 3 * 4:  # before anything is made of it
        raise _too_large()
    data = read_data(image.data)
    if data is None:
        raise Rejected("The `data` of a picture is no base 64; encode its bytes.")
    if len(data) > MAX_FILE:
        raise _too_large()
    return data


def _too_large() -> Rejected:
    return Rejected(
        f"A picture has at most {MAX_FILE} bytes; make it smaller.", reason="picture_too_large"
    )
