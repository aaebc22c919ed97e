"""`towline keys`: what it keeps, what it shows, and what it asks a provider."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from io import StringIO
from pathlib import Path

import pytest
from aiohttp import web
from rich.console import Console
from typer.testing import CliRunner, Result

from towline.cli.keys import try_keys
from towline.cli.main import app
from towline.secrets import Login, edit_keys, keep_key, keep_login, open_wallet, stored_keys
from towline_agent.providers.oauth import OAUTH_SERVICES
from towline_agent.providers.testing import FakeAuthorization
from towline_protocol import TowlineError, UsageError

KEY = "sk-very-secret-1234"
BACKUP = "sk-other-secret-5678"
END_S = 60.0

Say = Callable[..., Result]
Serve = Callable[..., AbstractAsyncContextManager[str]]


@pytest.fixture(name="keys")
def keys_fixture(headless_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Say:
    """Runs `towline keys` in a home of its own."""
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN"))]:
        monkeypatch.delenv(name)
    for name, value in headless_environ.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, text: str = "") -> Result:
        result = CliRunner().invoke(app, ["keys", *arguments], input=text)
        assert "secret" not in result.output.replace("secrets.", "")
        assert "secret" not in str(result.exception or "").replace("secrets.", "")
        return result

    return run


def _refused(result: Result) -> str:
    """The sentence with which a command ended."""
    assert isinstance(result.exception, TowlineError)
    return result.exception.message


@pytest.mark.rules("A2.75", "A2.76")
def test_a_key_is_kept_and_shown_by_its_last_four_characters(
    keys: Say, headless_environ: dict[str, str]
) -> None:
    kept = keys("set", "openai", text=f"  {KEY}\n")
    assert kept.exit_code == 0
    assert "Kept the key …1234 for openai in the encrypted file" in kept.output
    assert "There is no system keyring" in kept.output
    listed = keys("list")
    assert listed.exit_code == 0
    assert "secrets.bin" in listed.output
    assert "openai       …1234" in listed.output
    assert stored_keys("openai", headless_environ) == (KEY,)


@pytest.mark.rules("A2.75")
@pytest.mark.slow
def test_further_keys_are_backups_behind_the_first(
    keys: Say, headless_environ: dict[str, str]
) -> None:
    keys("set", "openai", "--add", text=KEY)
    added = keys("set", "openai", "--add", text=BACKUP)
    again = keys("set", "openai", "--add", text=KEY)
    assert "as backup 1" in added.output
    assert "already" in again.output
    assert "…5678  backup 1" in keys("list").output
    assert stored_keys("openai", headless_environ) == (KEY, BACKUP)


@pytest.mark.rules("A2.75")
@pytest.mark.slow
def test_a_key_replaces_all_before_it(keys: Say, headless_environ: dict[str, str]) -> None:
    keys("set", "openai", text=KEY)
    keys("set", "openai", "--add", text="sk-third-one-9999")
    keys("set", "openai", text=BACKUP)
    assert stored_keys("openai", headless_environ) == (BACKUP,)


@pytest.mark.rules("A2.75")
@pytest.mark.slow
def test_one_key_or_all_of_a_provider_can_be_removed(
    keys: Say, headless_environ: dict[str, str]
) -> None:
    keys("set", "openai", text=KEY)
    keys("set", "openai", "--add", text=BACKUP)
    keys("set", "groq", text="gsk-is-here-0000")
    assert "Removed from openai: …1234" in keys("remove", "openai", "--last4", "1234").output
    listed = keys("list").output
    assert ("…1234" in listed, "…5678" in listed) == (False, True)
    assert "9999" in _refused(keys("remove", "openai", "--last4", "9999"))
    assert "…5678" in keys("remove", "openai", "--last4", "…5678").output
    assert "groq" in _refused(keys("remove", "openai"))
    assert "…0000" in keys("remove", "groq").output
    assert "nothing is kept at all" in _refused(keys("remove", "groq"))
    assert stored_keys("openai", headless_environ) == ()


@pytest.mark.rules("A2.76")
def test_a_short_key_is_not_half_shown(keys: Say) -> None:
    assert "1234" not in keys("set", "openai", text="sk-1234").output
    assert "1234" not in keys("list").output
    assert keys("remove", "openai").exit_code == 0


@pytest.mark.parametrize("command", ["set", "remove", "test"])
def test_an_unknown_provider_is_answered_with_those_that_there_are(keys: Say, command: str) -> None:
    said = _refused(keys(command, "opnai", text=KEY))
    assert "'opnai'" in said
    assert "openai" in said


@pytest.mark.parametrize(
    "text",
    ["", "  \n", "sk-very secret", "sk-very\nsecret", "sk-véry-secret", "a" * 20_000],
)
def test_what_is_no_key_is_not_kept(keys: Say, text: str) -> None:
    said = _refused(keys("set", "openai", text=text))
    assert "sk-" not in said
    assert "None are kept" in keys("list").output


def test_more_keys_than_anybody_has_are_refused(
    keys: Say, headless_environ: dict[str, str]
) -> None:
    most = tuple(f"sk-number-{number:04}" for number in range(15))
    edit_keys(open_wallet(headless_environ), "openai", lambda _: most)
    assert "as backup 15" in keys("set", "openai", "--add", text=KEY).output
    assert "remove one" in _refused(keys("set", "openai", "--add", text=BACKUP))
    assert stored_keys("openai", headless_environ) == (*most, KEY)


@pytest.mark.rules("A2.85")
def test_a_key_in_the_environment_is_said_to_go_first(
    keys: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other-secret")
    assert "OPENAI_API_KEY is set, and goes before" in keys("set", "openai", text=KEY).output
    assert "OPENAI_API_KEY is set, and goes before" in keys("list").output


@pytest.mark.rules("A2.74")
@pytest.mark.slow
def test_a_locked_keyring_leaves_one_clear_line(
    keys: Say, keyring_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    backend = keyring_environ["PYTHON_KEYRING_BACKEND"]
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", backend)
    assert "the system keyring (Fake Keyring)" in keys("set", "openai", text=KEY).output
    assert "the system keyring (Fake Keyring)" in keys("list").output
    (tmp_path / "mood").write_text("locked")
    kept = keys("set", "groq", text="gsk-is-here-0000")
    assert kept.output.count("The system keyring is locked.") == 1
    listed = keys("list").output
    assert "groq         …0000" in listed
    assert "openai       cannot be read now: The system keyring is locked." in listed


@pytest.mark.rules("A2.75")
@pytest.mark.slow
def test_a_key_typed_at_a_terminal_is_not_shown(headless_environ: dict[str, str]) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "towline", "keys", "set", "openai"],
        env=headless_environ,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        screen = _read_until(master, b"not shown): ")
        os.write(master, f"{KEY}\n".encode())
        screen += _read_until(master, b"There is no system keyring on this machine.")
        assert process.wait(END_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert b"1234 for openai" in screen
    assert b"very" not in screen
    assert stored_keys("openai", headless_environ) == (KEY,)


def _read_until(descriptor: int, words: bytes) -> bytes:
    screen = b""
    until = time.monotonic() + END_S
    while words not in screen:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
        assert ready, screen
        screen += os.read(descriptor, 4096)
    return screen


@pytest.fixture(name="serve")
def serve_fixture() -> Serve:
    """A provider on this machine that knows one key."""

    @asynccontextmanager
    async def serve(*, public: bool = False, status: int = 401) -> AsyncGenerator[str]:
        async def models(request: web.Request) -> web.Response:
            if public or request.headers.get("authorization") == f"Bearer {KEY}":
                return web.json_response({"data": [{"id": "one"}, {"id": "two"}]})
            said = "Incorrect API key" if status == 401 else "Not now"
            said = f"{said}: {request.headers.get('authorization')}"
            return web.json_response({"error": {"message": said}}, status=status)

        server = web.Application()
        server.router.add_get("/v1/models", models)
        runner = web.AppRunner(server)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            host, port = runner.addresses[0][:2]
            yield f"http://{host}:{port}/v1"
        finally:
            await runner.cleanup()

    return serve


async def _try(environ: dict[str, str], url: str, provider: str = "custom") -> tuple[int, str]:
    screen = StringIO()
    code = await try_keys(
        provider, Console(file=screen, width=400), {**environ, "TOWLINE_BASE_URL": url}
    )
    assert "secret" not in screen.getvalue()
    return code, screen.getvalue()


@pytest.mark.rules("A2.75", "A2.76")
async def test_each_key_is_tried_at_its_provider_and_the_answer_is_plain(
    headless_environ: dict[str, str], serve: Serve
) -> None:
    keep_key(open_wallet(headless_environ), "custom", KEY)
    async with serve() as url:
        code, said = await _try(headless_environ, url)
        assert (code, said) == (
            0,
            "…1234 (kept): works; An address of your own offers 2 models.\n",
        )
        code, said = await _try({**headless_environ, "TOWLINE_API_KEY": BACKUP}, url)
    assert code == 1
    assert "…1234 (kept): works" in said
    assert "…5678 (from the environment): does not work" in said
    assert "status 401" in said


@pytest.mark.rules("A2.75")
async def test_a_list_that_anybody_gets_proves_nothing_and_it_says_so(
    headless_environ: dict[str, str], serve: Serve
) -> None:
    keep_key(open_wallet(headless_environ), "custom", BACKUP)
    async with serve(public=True) as url:
        code, said = await _try(headless_environ, url)
    assert code == 0
    assert "cannot be told" in said
    assert "works" not in said


@pytest.mark.rules("A2.75")
@pytest.mark.parametrize("status", [404, 429, 500])
async def test_a_provider_that_fails_says_nothing_about_the_key(
    headless_environ: dict[str, str], serve: Serve, status: int
) -> None:
    keep_key(open_wallet(headless_environ), "custom", BACKUP)
    async with serve(status=status) as url:
        code, said = await _try(headless_environ, url)
    assert code == 1
    assert "could not be tried" in said


@pytest.mark.rules("A2.75")
async def test_an_address_where_nobody_answers_is_said(headless_environ: dict[str, str]) -> None:
    keep_key(open_wallet(headless_environ), "custom", KEY)
    code, said = await _try(headless_environ, "http://127.0.0.1:9/v1")
    assert code == 1
    assert "could not be tried. Nothing listens at http://127.0.0.1:9/v1/models" in said
    code, said = await _try(headless_environ, "http://example.com/v1")
    assert code == 1
    assert "could not be tried. http://example.com/v1 is not encrypted" in said


async def test_without_a_key_there_is_nothing_to_try(headless_environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="keys set custom"):
        await _try(headless_environ, "http://127.0.0.1:9/v1")


@pytest.mark.rules("A2.75")
async def test_a_kept_sign_in_is_tried_too(
    headless_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeAuthorization() as server:
        monkeypatch.setitem(OAUTH_SERVICES, "gemini", server.service())
        made = Login(
            client_id=server.client.id,
            client_secret=server.client.secret,
            refresh=server.refresh_token,
        )
        keep_login(open_wallet(headless_environ), "gemini", made)
        good, said = await _try(headless_environ, "", "google")
        server.refuses = "invalid_grant"
        bad, complaint = await _try(headless_environ, "", "gemini")
    assert (good, bad) == (0, 1)
    assert "sign-in (kept): works" in said
    assert "towline login gemini" in complaint
