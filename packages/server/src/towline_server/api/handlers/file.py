"""Files, in and out."""

from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from towline_protocol import FileInfo
from towline_server.api.guard import Receive, Scope, Send
from towline_server.api.handlers.call import Call, Handler
from towline_server.errors import BodyTooLarge
from towline_server.sessions.bulk import MAX_FILE
from towline_server.sessions.files import Files
from towline_server.sessions.sniff import PICTURES, TEXT
from towline_server.store.attachments import FileRow

__all__ = ["HANDLERS"]

_SHOWN: Final = PICTURES | {TEXT}
"""What a browser may show in its place; all else it is told to save."""
_FOR_EVER: Final = "private, max-age=31536000, immutable"  # bytes under their own hash never change


async def _upload(call: Call) -> FileInfo:
    said = call.request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:19]) > MAX_FILE:
        raise BodyTooLarge(f"A file has at most {MAX_FILE} bytes; this one has {said[:19]}.")
    name = call.text("name") or ""
    row = await call.service.files.upload(call.user, call.request.stream(), name=name)
    return FileInfo(file=row.file, media_type=row.media_type, size=row.size, name=row.name)


async def _download(call: Call) -> Response:
    file = call.request.path_params["file"]
    row = await call.service.files.find(call.user, file)
    headers = _headers(row)
    if row.file in _tags(call.request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    headers["content-length"] = str(row.size)
    headers["content-type"] = (
        "text/plain; charset=utf-8" if row.media_type == TEXT else (row.media_type)
    )
    if call.request.method == "HEAD":
        return Response(headers=headers)
    return _Bytes(call.service.files, call.user, row, headers)


class _Bytes(Response):
    """The bytes of a file, a piece in memory at a time."""

    def __init__(self, files: Files, user: str, row: FileRow, headers: dict[str, str]) -> None:
        super().__init__(headers=headers)
        self._files = files
        self._user = user
        self._row = row

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them all; a file that goes meanwhile ends short of its length, which is seen."""
        piece = await self._files.piece(self._user, self._row.file, 0)
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        number = 0
        while piece is not None:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            number += 1
            piece = await self._files.piece(self._user, self._row.file, number)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _headers(row: FileRow) -> dict[str, str]:
    """What keeps a browser from running what somebody uploaded."""
    shown = "inline" if row.media_type in _SHOWN else "attachment"
    name = quote(row.name or row.file[:12], safe="")
    return {
        "etag": f'"{row.file}"',
        "cache-control": _FOR_EVER,
        "content-disposition": f"{shown}; filename*=UTF-8''{name}",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
    }


def _tags(text: str) -> list[str]:
    """The hashes in an `If-None-Match`."""
    return [tag.strip().removeprefix("W/").strip('"') for tag in text.split(",")]


HANDLERS: Final[dict[str, Handler]] = {
    "upload_file": _upload,
    "download_file": _download,
}
"""Operation name to handler."""
