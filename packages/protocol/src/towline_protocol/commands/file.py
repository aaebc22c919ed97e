"""Files that go with what people say."""

from towline_protocol.commands.body import Body

__all__ = ["FileInfo"]


class FileInfo(Body, frozen=True, kw_only=True):
    """A file that is kept."""

    file: str
    """The hash of its bytes: SHA-256 in hex. `Image.file` and `File.file` name it."""
    media_type: str
    """What the bytes are, as they show it themselves."""
    size: int
    """Their number."""
    name: str = ""
    """What it was called; may be empty."""
