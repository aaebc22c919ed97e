"""`towline login`: a consent here or on a phone, a pasted token, and what is kept of it."""

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from towline.cli.browser import open_browser
from towline.cli.login import LoginOptions, login
from towline.cli.main import app
from towline.secrets import kept_secrets, open_wallet, stored_credential
from towline_agent import AuthenticationFailed
from towline_agent.providers.credential import BearerCredential
from towline_agent.providers.oauth import OAUTH_SERVICES
from towline_agent.providers.testing import FakeAuthorization, fetch_page
from towline_protocol import UsageError

END_S = 60.0


@pytest.fixture(name="server")
async def server_fixture(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[FakeAuthorization]:
    async with asyncio.timeout(END_S), FakeAuthorization() as server:
        monkeypatch.setitem(OAUTH_SERVICES, "gemini", server.service())
        monkeypatch.setitem(OAUTH_SERVICES, "vertex", server.service("vertex", needs_project=True))
        yield server


@pytest.fixture(name="environ")
def environ_fixture(headless_environ: dict[str, str]) -> dict[str, str]:
    """A home of a person who has a client of their own."""
    return {
        **headless_environ,
        "TOWLINE_GOOGLE_CLIENT_ID": FakeAuthorization.client.id,
        "TOWLINE_GOOGLE_CLIENT_SECRET": str(FakeAuthorization.client.secret),
    }


@pytest.fixture(name="screen", autouse=True)
def screen_fixture(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    """What is printed; standard input is no terminal."""
    monkeypatch.setattr(sys, "stdin", StringIO(""))
    return StringIO()


async def _login(
    named: str,
    environ: dict[str, str],
    screen: StringIO,
    options: LoginOptions | None = None,
    browse: Callable[[str], None] | None = None,
) -> int:
    console = Console(file=screen, width=400)
    return await login(named, options or LoginOptions(), console, environ, browse=browse)


def _paste(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO(text))


@pytest.mark.rules("A2.66", "A2.70")
async def test_a_consent_in_the_browser_signs_in_and_the_product_finds_it(
    server: FakeAuthorization, environ: dict[str, str], screen: StringIO
) -> None:
    visits: list[asyncio.Task[object]] = []

    def browse(url: str) -> None:
        assert url in screen.getvalue()
        visits.append(asyncio.create_task(server.browse(url)))

    assert await _login("google", environ, screen, browse=browse) == 0
    await visits[0]
    said = screen.getvalue()
    assert "Signed in for gemini; kept in the encrypted file" in said
    assert not any(word in said for word in ("1//", "ya29", "client-secret", "code-1"))
    credential = stored_credential("gemini", environ)
    assert credential is not None
    assert credential.bearer
    assert str(await credential.token()).startswith("ya29.")
    assert [form["grant_type"] for form in server.forms] == [
        "authorization_code",
        "refresh_token",
    ]


@pytest.mark.rules("A2.71")
async def test_the_address_that_a_phone_shows_can_be_pasted_at_the_terminal(
    server: FakeAuthorization,
    environ: dict[str, str],
    screen: StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    master, slave = pty.openpty()
    visits: list[asyncio.Task[None]] = []

    async def use_phone(url: str) -> None:
        os.write(master, b"http://127.0.0.1:1/callback?code=stolen&state=guessed\n")
        page = await fetch_page(url)  # the phone cannot follow: loopback is itself
        os.write(master, f"{page.headers['location']}\n".encode())

    try:
        with os.fdopen(slave) as terminal:
            monkeypatch.setattr(sys, "stdin", terminal)
            code = await _login(
                "gemini",
                environ,
                screen,
                browse=lambda url: visits.append(asyncio.create_task(use_phone(url))),
            )
            await visits[0]
    finally:
        os.close(master)
    said = screen.getvalue()
    assert code == 0
    assert "paste the address of that page here" in said
    assert "does not belong to this sign-in" in said
    assert "stolen" not in said
    assert kept_secrets(open_wallet(environ), "gemini").login is not None


async def test_a_refused_consent_keeps_nothing(
    server: FakeAuthorization, environ: dict[str, str], screen: StringIO
) -> None:
    server.denies = True
    visits: list[asyncio.Task[object]] = []

    def browse(url: str) -> None:
        visits.append(asyncio.create_task(server.browse(url)))

    with pytest.raises(AuthenticationFailed, match="You did not allow it"):
        await _login("gemini", environ, screen, browse=browse)
    await visits[0]
    assert open_wallet(environ).names() == ()


@pytest.mark.rules("A2.67")
async def test_a_cancel_ends_the_sign_in_and_its_listener(
    server: FakeAuthorization, environ: dict[str, str], screen: StringIO
) -> None:
    opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    signing = asyncio.create_task(
        _login("gemini", environ, screen, browse=lambda url: opened.set_result(url))
    )
    page = await fetch_page(await opened)
    signing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await signing
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await fetch_page(page.headers["location"])
    assert open_wallet(environ).names() == ()


@pytest.mark.rules("A2.72")
async def test_a_pasted_refresh_token_is_tried_before_it_is_kept(
    server: FakeAuthorization,
    environ: dict[str, str],
    screen: StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _paste("1//made-up\n", monkeypatch)
    with pytest.raises(AuthenticationFailed, match="invalid_grant"):
        await _login("gemini", environ, screen, LoginOptions(token=True))
    assert open_wallet(environ).names() == ()
    _paste(f"{server.refresh_token}|my-project\n", monkeypatch)
    assert await _login("vertex", environ, screen, LoginOptions(token=True)) == 0
    credential = stored_credential("vertex", environ)
    assert credential is not None
    assert credential.project == "my-project"
    assert str(await credential.token()).startswith("ya29.")
    assert "1//" not in screen.getvalue()


@pytest.mark.rules("A2.72")
async def test_a_pasted_access_token_is_kept_with_its_project(
    server: FakeAuthorization,
    headless_environ: dict[str, str],
    screen: StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _paste("ya29.pasted|my-project", monkeypatch)
    assert await _login("vertex", headless_environ, screen, LoginOptions(token=True)) == 0
    assert stored_credential("vertex", headless_environ) == BearerCredential(
        "ya29.pasted", "my-project"
    )
    assert "about an hour" in screen.getvalue()
    assert "ya29" not in screen.getvalue()
    assert server.forms == []


@pytest.mark.rules("A2.68")
async def test_a_refresh_token_that_the_service_replaces_is_kept_for_the_next_process(
    server: FakeAuthorization,
    environ: dict[str, str],
    screen: StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _paste(server.refresh_token, monkeypatch)
    await _login("gemini", environ, screen, LoginOptions(token=True))
    before = server.refresh_token
    server.rotates = True
    credential = stored_credential("gemini", environ)
    assert credential is not None
    await credential.token()
    kept = kept_secrets(open_wallet(environ), "gemini").login
    assert kept is not None
    assert kept.refresh == server.refresh_token != before


async def test_a_rotated_token_that_cannot_be_kept_still_serves(
    server: FakeAuthorization,
    environ: dict[str, str],
    screen: StringIO,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _paste(server.refresh_token, monkeypatch)
    await _login("gemini", environ, screen, LoginOptions(token=True))
    server.rotates = True
    credential = stored_credential("gemini", environ)
    assert credential is not None
    (tmp_path / "towline" / "secrets.key").unlink()
    assert str(await credential.token()).startswith("ya29.")
    (record,) = caplog.records
    assert "could not be kept" in record.getMessage()
    assert "1//" not in record.getMessage()


@pytest.mark.rules("A2.69")
async def test_without_a_client_of_the_users_own_nothing_is_asked(
    server: FakeAuthorization, headless_environ: dict[str, str], screen: StringIO
) -> None:
    with pytest.raises(UsageError, match="TOWLINE_GOOGLE_CLIENT_ID"):
        await _login("gemini", headless_environ, screen)
    assert server.forms == []


async def test_vertex_wants_a_project(
    server: FakeAuthorization,
    environ: dict[str, str],
    screen: StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UsageError, match="--project"):
        await _login("vertex", environ, screen)
    _paste("ya29.pasted", monkeypatch)
    options = LoginOptions(token=True)
    named = {**environ, "GOOGLE_CLOUD_PROJECT": "my-project"}
    assert await _login("vertex", named, screen, options) == 0
    login_kept = kept_secrets(open_wallet(environ), "vertex").login
    assert login_kept is not None
    assert login_kept.project == "my-project"
    assert server.forms == []


def test_a_provider_without_a_sign_in_is_told_the_way_to_a_key() -> None:
    result = CliRunner().invoke(app, ["login", "openai"])
    assert isinstance(result.exception, UsageError)
    assert "gemini, vertex" in result.exception.message
    assert "keys set openai" in result.exception.message


@pytest.mark.rules("A2.70")
@pytest.mark.parametrize(
    ("environ", "opens"), [({}, sys.platform == "darwin"), ({"WAYLAND_DISPLAY": "w"}, True)]
)
def test_a_browser_is_opened_only_where_somebody_sees_it(
    environ: dict[str, str], opens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    class Thread:
        def __init__(self, target: Callable[[str], None], args: tuple[str], daemon: bool) -> None:
            assert daemon
            self._work = lambda: target(*args)

        def start(self) -> None:
            self._work()

    monkeypatch.setattr("towline.cli.browser.threading.Thread", Thread)
    monkeypatch.setattr("towline.cli.browser.webbrowser.open", started.append)
    open_browser("https://example.com/", environ)
    assert started == (["https://example.com/"] if opens else [])


@pytest.mark.rules("A2.67")
def test_ctrl_c_at_the_terminal_ends_the_wait(environ: dict[str, str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "towline", "login", "gemini", "--no-browser"],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stdout is not None
            screen = b""
            until = time.monotonic() + END_S
            while b"Ctrl+C ends it." not in screen:
                wait_s = max(0.0, until - time.monotonic())
                ready, _, _ = select.select([process.stdout], [], [], wait_s)
                assert ready, screen
                chunk = os.read(process.stdout.fileno(), 4096)
                assert chunk, screen
                screen += chunk
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=END_S)[1]
        finally:
            process.kill()
    assert process.returncode == 130
    assert said == b""
    assert b"https://accounts.google.com/o/oauth2/v2/auth?" in screen
    assert not (tmp_path / "towline" / "data" / "secrets.bin").exists()
