"""`towline login`: sign in at a provider with a client of the user's own (A2.69 to A2.72)."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final

import typer
from rich.console import Console
from rich.markup import escape

from towline.cli.browser import open_browser
from towline.cli.command import command_name
from towline.cli.keys import say_place
from towline.cli.secret_input import read_secret
from towline.cli.visible import show_visible
from towline.providers.names import ALIASES
from towline.providers.sign_in import CLIENT_ID, CLIENT_SECRET, make_login, named_project
from towline.secrets import Login, check_secret, keep_login, login_credential, open_wallet
from towline_agent import (
    CA_SETTING,
    OAUTH_SERVICES,
    SIGN_IN_S,
    OAuthClient,
    OAuthService,
    OAuthSignIn,
    parse_pasted_token,
)
from towline_protocol import UsageError

__all__ = ["LoginOptions", "login"]

_READ: Final = 4096
"""Bytes of one read from the terminal, which gives a line at most."""
_MAX_LINE: Final = 16 * 1024
"""Bytes of a pasted address; more without a line end is none."""


@dataclass(frozen=True, kw_only=True)
class LoginOptions:
    """What the command line says."""

    token: bool = False
    """Whether a token is pasted instead of a consent given."""
    client_id: str | None = None
    """The user's own registration; else from the environment or asked for."""
    project: str | None = None
    """The project that requests are counted for."""
    browser: bool = True
    """Whether a browser is opened here."""


async def login(
    named: str,
    options: LoginOptions,
    console: Console,
    environ: Mapping[str, str] = os.environ,
    *,
    browse: Callable[[str], None] | None = None,
) -> int:
    """Sign in and keep what that gives.

    Args:
        named: The provider.
        options: What the command line says.
        console: Where to talk.
        environ: The environment.
        browse: Opens a page; `None` for a browser on this machine.

    Raises:
        UsageError: The provider has no sign-in, or something is missing.
        AuthenticationFailed: There was no consent, or a token is not accepted.
        ProviderError: The provider could not be asked.
        SecretsUnavailable: Nothing can be kept here.
    """
    service = _service(named)
    if options.token:
        made = await _pasted_login(service, options, environ, console)
    else:
        project = _project(service, options, environ)
        client = _client(service, options, environ)
        made = await _consented_login(
            service, client, project, console, environ, browse if options.browser else _no_browser
        )
    placed = keep_login(open_wallet(environ), service.provider, made)
    _say(console, f"Signed in for {service.provider}; kept in {placed.title}.")
    say_place(console, placed, service.provider, environ)
    return 0


def _no_browser(_url: str) -> None:
    pass


async def _consented_login(
    service: OAuthService,
    client: OAuthClient,
    project: str | None,
    console: Console,
    environ: Mapping[str, str],
    browse: Callable[[str], None] | None,
) -> Login:
    async with OAuthSignIn(service, client, ca_file=environ.get(CA_SETTING) or None) as sign_in:
        _say(console, f"Open this page and sign in at {service.title}:\n\n{sign_in.url}\n")
        minutes = f"{SIGN_IN_S / 60:g} minutes"
        _say(console, f"Waiting for your consent, for up to {minutes}. Ctrl+C ends it.")

        def offer(line: str) -> None:
            try:
                sign_in.offer(line)
            except UsageError as error:
                _say(console, error.message)

        with _pasted_lines(offer) as pasting:
            if pasting:
                _say(
                    console,
                    "If the browser is on another device, it ends at a page that does not open: "
                    "paste the address of that page here.",
                )
            (browse or open_browser)(sign_in.url)
            tokens = await sign_in.tokens()
    if tokens.refresh is None:
        _say(console, "No refresh token came, so this sign-in ends with its first token.")
    return make_login(client, tokens, project)


async def _pasted_login(
    service: OAuthService, options: LoginOptions, environ: Mapping[str, str], console: Console
) -> Login:
    pasted = parse_pasted_token(service, read_secret(f"Token for {service.provider}"))
    project = pasted.project or _project(service, options, environ)
    if not pasted.refresh:
        _say(console, "This is an access token: it holds for about an hour and is not renewed.")
        return Login(access=pasted.token, project=project)
    client = _client(service, options, environ)
    made = Login(
        client_id=client.id, client_secret=client.secret, refresh=pasted.token, project=project
    )
    # a token that is not accepted shows now, not in the middle of the first prompt
    await login_credential(service.provider, made, environ).token()
    return made


@contextlib.contextmanager
def _pasted_lines(on_line: Callable[[str], None]) -> Generator[bool]:
    """Tells each line that a person enters; says whether there is a terminal to enter one at."""
    if not sys.stdin.isatty():
        yield False
        return
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()
    held = bytearray()

    def read() -> None:
        chunk = os.read(descriptor, _READ)  # ready, so it does not wait
        if not chunk:
            loop.remove_reader(descriptor)
        held.extend(chunk)
        while b"\n" in held or len(held) > _MAX_LINE:
            line, _, rest = bytes(held).partition(b"\n")
            held[:] = rest
            if line.strip():
                on_line(line.decode(errors="replace"))

    loop.add_reader(descriptor, read)
    try:
        yield True
    finally:
        loop.remove_reader(descriptor)


def _service(named: str) -> OAuthService:
    provider = ALIASES.get(named.strip().lower(), named.strip().lower())
    service = OAUTH_SERVICES.get(provider)
    if service is None:
        raise UsageError(
            f"There is no sign-in for {named!r}; there is one for: {', '.join(OAUTH_SERVICES)}. "
            f"For a key, run `{command_name()} keys set {named}`."
        )
    return service


def _client(
    service: OAuthService, options: LoginOptions, environ: Mapping[str, str]
) -> OAuthClient:
    """The user's own registration: no product's identity is borrowed (A2.69)."""
    asks = sys.stdin.isatty()
    named = options.client_id or environ.get(CLIENT_ID, "").strip()
    if not named and asks:
        named = str(typer.prompt("Your OAuth client id"))
    if not named:
        raise UsageError(
            f"{service.title} wants to know which program signs in. Make an OAuth client of the "
            f"kind 'Desktop app' in the Google Cloud console and set {CLIENT_ID} and "
            f"{CLIENT_SECRET} to what it shows."
        )
    secret = environ.get(CLIENT_SECRET, "").strip()
    if not secret and asks:
        question = "Its client secret (it is not shown; empty for none)"
        secret = str(typer.prompt(question, default="", hide_input=True, show_default=False))
    return OAuthClient(id=check_secret(named.strip()), secret=check_secret(secret.strip()) or None)


def _project(
    service: OAuthService, options: LoginOptions, environ: Mapping[str, str]
) -> str | None:
    project = options.project or named_project(environ)
    if project is None and service.needs_project:
        if not sys.stdin.isatty():
            raise UsageError(
                f"{service.provider!r} needs a project; name it with --project or in "
                "GOOGLE_CLOUD_PROJECT."
            )
        project = str(typer.prompt("Your Google Cloud project")).strip()
    return check_secret(project) if project else None


def _say(console: Console, text: str) -> None:
    console.print(escape(show_visible(text)), soft_wrap=True, highlight=False, emoji=False)
