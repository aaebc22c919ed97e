"""Files that go with what people say, and what tools left."""

from typing import Final

from towline_protocol.commands.file import FileInfo
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
    Operation(
        name="upload_file",
        method="POST",
        path="/api/files",
        summary="Keep the bytes of the body; the same bytes again are the same file.",
        query=("name",),
        answer=FileInfo,
        status=201,
        faults=("payload_too_large", "capacity_exceeded"),
        raw=True,
    ),
    Operation(
        name="download_file",
        method="GET",
        path="/api/files/{file}",
        summary="Read the bytes of a file of one's own.",
        media="application/octet-stream",
        faults=("not_found",),
    ),
)
"""The rows of this part of the table."""
