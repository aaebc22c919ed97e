"""Pictures of pages, by a headless browser of this machine (A5.T13)."""

import base64
import os
import posixpath
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import msgspec

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.permissions.part import Part
from towline_agent.permissions.secret import is_secret, path_part
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, Tool, ToolContext, ToolOutput
from towline_agent.tools.web.address import is_public
from towline_agent.tools.web.client import WebClient
from towline_agent.tools.web.fetch import find_page, host_part, tell_redirect
from towline_agent.tools.web.gateway import PAGE_HOST, Gateway, serve_files
from towline_agent.tools.web.url import WebUrl, read_url
from towline_agent.workspaces.program import run_program
from towline_agent.workspaces.threads import FILES
from towline_agent.workspaces.twin import follow
from towline_protocol import Image, PageArtifact, Preview, Text

__all__ = ["MAX_EDGE", "TIMEOUT_S", "find_browser", "make_screenshot"]

MAX_EDGE: Final = 1_568
"""Pixels of a picture's longer edge; models scale down what is larger (A5.T13)."""
TIMEOUT_S: Final = 30.0
"""Seconds for a browser to start, load a page and draw it."""

_NAMES: Final = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)  # fmt: skip
_PAGES: Final = (".html", ".htm", ".xhtml", ".svg")
_MAX_BYTES: Final = 3_750_000
"""Of a picture: 5 MB in base 64, which is the most that some providers take."""
_PATIENCE_MS: Final = 5_000
"""Of the page's own time, in which its scripts may draw it."""
_CLEAN_UP_S: Final = 40.0
_UNBOXED: Final = (
    "The browser runs without its own sandbox, which it can't have under the user root."
)

_Edge = Annotated[int, msgspec.Meta(ge=200, le=MAX_EDGE)]


def find_browser(environ: Mapping[str, str] = os.environ) -> str | None:
    """The path of a Chromium or Chrome: the one that `CHROMIUM` names, else the first on the path.

    Args:
        environ: The environment.
    """
    wanted = environ.get("CHROMIUM")
    path = environ.get("PATH", "")
    for name in (wanted,) if wanted else _NAMES:
        found = shutil.which(name, path=path)
        if found is not None:
            return found
    return None


def make_screenshot(
    browser: str,
    client: WebClient | None = None,
    *,
    public: Callable[[str], bool] = is_public,
    timeout_s: float = TIMEOUT_S,
) -> Tool:
    """The tool `screenshot_page`.

    Args:
        browser: The path of a Chromium or Chrome.
        client: Looks whether an address redirects; `None` for one that reaches the internet.
        public: Tells whether an address in numbers lies in the public internet.
        timeout_s: Seconds for a picture.
    """
    web = client or WebClient()

    @tool(
        effect="read",
        idempotent=True,
        journals=True,
        timeout_s=web.timeout_s + timeout_s + _CLEAN_UP_S,
        title=lambda arguments: f"Picture of {arguments['page']}",
        subject=lambda arguments: arguments["page"],
        look=_look,
        verify=lambda arguments: _read_page(arguments["page"]),
    )
    async def screenshot_page(
        context: ToolContext, page: str, width: _Edge = 1280, height: _Edge = 960
    ) -> ToolOutput:
        """See a page as a browser draws it.

        Args:
            context: The call.
            page: http or https address, or an HTML file.
            width: Pixels.
            height: Pixels.
        """
        found = _read_page(page)
        status = 200
        if isinstance(found, WebUrl):
            found, answer = await find_page(web, found)
            elsewhere = tell_redirect(found, answer)
            if elsewhere is not None:
                await context.start(None)
                return elsewhere
            status = answer.status
            gateway = Gateway(found, None, public)
        else:
            await context.workspace.read(found)  # says in our words when there is none
            gateway = Gateway(None, serve_files(context.workspace, found), public)
        async with gateway:
            address = found.text if isinstance(found, WebUrl) else _address(found)
            argv = _command(browser, address, gateway.port, width, height)
            png = await _draw(context, argv, timeout_s)
        return _tell(page, status, png, gateway.refused)

    return screenshot_page


async def _look(context: ToolContext, arguments: dict[str, Any]) -> Look:
    found = _read_page(arguments["page"])
    if not isinstance(found, WebUrl):
        return Look(parts=(await _file_part(context, found),))
    part = host_part(found)
    if part.caution is None and _is_root():
        part = Part(subject=part.subject, kind="host", effect="network", caution=_UNBOXED)
    return Look(parts=(part,), preview=Preview(kind="url", text=found.text))


async def _file_part(context: ToolContext, path: str) -> Part:
    """The file that is drawn, by where its path leads."""
    _address(path)  # what lies outside is refused, not asked about
    root = context.workspace.root
    lead = await FILES.run(lambda: follow(root, path, is_secret))
    also = () if lead.shown == path else (path,)
    names, doubt = (), None
    if lead.twin is not None:
        names, doubt = lead.twin.names, lead.twin.doubt(path)
    grants = (lead.real,) if lead.shown.startswith("/") else ()
    return path_part(
        lead.shown, effect="read", also=(*also, *names), grants=grants, caution=doubt
    )


def _is_root() -> bool:
    return os.geteuid() == 0


def _read_page(page: str) -> WebUrl | str:
    """An address, or the path of a file that a browser draws."""
    if "://" in page or page.lower().startswith(("http:", "https:", "file:", "data:")):
        return read_url(page)
    path = posixpath.normpath(page)
    if not path.lower().endswith(_PAGES):
        raise ToolInputInvalid(
            f"{page!r} is no page; give an http or https address, or a file that ends in "
            f"{', '.join(_PAGES)}."
        )
    return path


def _address(path: str) -> str:
    if posixpath.isabs(path) or path.startswith(".."):
        raise ToolInputInvalid(f"{path!r} lies outside; give a path relative to the folder.")
    return f"http://{PAGE_HOST}/{quote(path)}"


def _command(browser: str, address: str, port: int, width: int, height: int) -> tuple[str, ...]:
    """The browser's command line; it works in a folder of its own, which it gets as `.`."""
    return (
        browser,
        "--headless=new",
        *(("--no-sandbox",) if _is_root() else ()),
        f"--proxy-server=http://127.0.0.1:{port}",
        "--proxy-bypass-list=<-loopback>",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--disable-quic",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-extensions",
        "--disable-sync",
        "--disable-breakpad",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--deny-permission-prompts",
        "--no-first-run",
        "--no-default-browser-check",
        "--mute-audio",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        f"--window-size={width},{height}",
        f"--virtual-time-budget={_PATIENCE_MS}",
        "--user-data-dir=profile",
        "--screenshot=page.png",
        address,
    )


async def _draw(context: ToolContext, argv: tuple[str, ...], timeout_s: float) -> bytes:
    """The picture that a browser made, which is gone with all it left when this returns."""
    folder = Path(await FILES.run(lambda: tempfile.mkdtemp(prefix="towline-page-")))
    try:
        result = await run_program(
            argv,
            root=str(folder),
            timeout_s=timeout_s,
            on_start=context.start,
            on_output=lambda text: None,
        )
        if result.exit_code is None:
            raise ToolError(f"The browser took longer than {timeout_s:g} s; try a lighter page.")
        return await FILES.run(lambda: _read_picture(folder / "page.png"))
    finally:
        await FILES.run(lambda: shutil.rmtree(folder, ignore_errors=True))


def _read_picture(path: Path) -> bytes:
    try:
        png = path.read_bytes()
    except OSError as error:
        raise ToolError("The browser made no picture; the page may not load.") from error
    if len(png) > _MAX_BYTES:
        raise ToolError(f"The picture has {len(png)} bytes, too many; make it smaller.")
    return png


def _tell(page: str, status: int, png: bytes, refused: list[str]) -> ToolOutput:
    told = f"HTTP {status} {page}" if "://" in page else page
    if refused:
        shown = ", ".join(list(dict.fromkeys(refused))[:5])
        told += f"\n[not reached from the page: {shown}]"
    picture = Image(media_type="image/png", data=base64.b64encode(png).decode())
    artifacts = (PageArtifact(url=page, status=status),) if "://" in page else ()
    return ToolOutput(content=(Text(text=told), picture), artifacts=artifacts)


