"""The `towline` command. Heavy imports stand inside the commands: `--help` must be quick."""

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from towline import __version__
from towline.cli.command import name_command
from towline.cli.output import heeded_output
from towline.cli.visible import show_visible
from towline_protocol import TowlineError, UsageError

__all__ = ["main"]

app: Final = typer.Typer(
    name="towline",
    help="An agent that works on this machine while you hold the other end of the line.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)

keys: Final = typer.Typer(
    help="Set, list, test and remove the keys of providers.", no_args_is_help=True
)
app.add_typer(keys, name="keys")

users: Final = typer.Typer(
    help="List, add and remove people who may come in.", no_args_is_help=True
)
app.add_typer(users, name="users")

devices: Final = typer.Typer(
    help="List and revoke what is let in as you: devices, logins, programs.", no_args_is_help=True
)
app.add_typer(devices, name="devices")

_User = Annotated[str, typer.Argument(help="The user's name; owner is yours.")]
_Provider = Annotated[str, typer.Argument(help="Such as openai, anthropic or gemini.")]

_MODES: Final = ["ask", "accept_edits", "auto", "plan"]  # for completion, which must be quick
_Mode = Annotated[
    str | None,
    typer.Option(
        help="What needs no asking: ask, accept_edits, auto or plan.",
        autocompletion=lambda: _MODES,
    ),
]
_err: Final = Console(stderr=True)


def main() -> None:
    """Run the command line."""
    _open_missing()
    with heeded_output():
        _set_log(os.environ.get("TOWLINE_LOG", ""))
        try:
            app()
        except TowlineError as error:
            _fail(error.message)
        except KeyboardInterrupt:
            sys.exit(130)


def _set_log(setting: str) -> None:
    """Log to standard error: a level, and `json` for lines that programs read."""
    words = [word for word in setting.upper().replace(",", " ").split() if word != "JSON"]
    level = words[0] if words else "WARNING"
    if len(words) > 1 or level not in logging.getLevelNamesMapping():
        _fail(
            f"TOWLINE_LOG={setting!r} is no level; use debug, info, warning or error, and add "
            "',json' for JSON lines."
        )
    log = logging.StreamHandler()
    if "JSON" in setting.upper():
        from towline_server import JsonFormatter

        log.setFormatter(JsonFormatter())
    else:
        log.setFormatter(_VisibleFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[log])


class _VisibleFormatter(logging.Formatter):
    """A log line as it is: what others wrote in it must not steer the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return show_visible(super().format(record))


def _fail(message: str, code: int = 1) -> NoReturn:
    """End with one line for a person; others may have written parts of it."""
    line = Text.assemble(("towline:", "bold red"), " ", show_visible(name_command(message)))
    _err.print(line, soft_wrap=True, highlight=False)
    sys.exit(code)


def _open_missing() -> None:
    """Open what the caller has closed of input and output: else another file gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


@app.command()
def up(
    host: Annotated[str | None, typer.Option(help="Address to listen at.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen at; 4747 or the next.")] = None,
    model: Annotated[
        str | None, typer.Option(help="provider/model, or the path of a GGUF file.")
    ] = None,
    mode: _Mode = None,
    root: Annotated[
        list[Path] | None, typer.Option(help="One more folder the agent may work in.")
    ] = None,
    opens: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser on this machine.")
    ] = True,
    background: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Start the server, the web page and a model, and say where to open it."""
    from towline.cli.up import UpOptions
    from towline.cli.up import up as run_up

    options = UpOptions(
        host=host,
        port=port,
        model=model,
        mode=mode,
        roots=tuple(path.absolute() for path in root or ()),
        background=background,
        opens=opens,
    )
    asyncio.run(run_up(options, Console(highlight=False)))


@app.command()
def chat(
    plain: Annotated[
        bool, typer.Option("--plain", help="Line by line; there is no other kind yet.")
    ] = False,
    session: Annotated[
        str | None, typer.Option(help="Go on with this one of `towline sessions`.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Ask this one, provider/model as `towline models` lists it.")
    ] = None,
    mode: _Mode = None,
) -> None:
    """Talk to the agent about this folder, in this terminal; starts a server if none runs."""
    from towline.cli.talk import talk

    del plain  # the only kind there is; the flag keeps scripts working when another one comes
    _run(talk(session, Console(highlight=False), mode=mode, model=model))


@app.command()
def run(
    prompt: Annotated[
        str | None, typer.Argument(help="What to do; left out or -, standard input says it.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="provider/model, or the path of a GGUF file.")
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            help="What needs no asking: ask, accept_edits, auto or plan.",
            autocompletion=lambda: _MODES,
        ),
    ] = "ask",
    auto: Annotated[bool, typer.Option("--auto", help="Short for --mode auto.")] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="US dollars that it may cost, where prices are known.")
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Requests that it may make.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Each event as a line of JSON.")] = False,
) -> None:
    """Do one turn in this folder, without a server.

    The answer goes to standard output and all else beside it. What is piped in is attached.

    It exits with 0 when it is done, 1 when it failed, 2 when the command line does not hold, 3
    when something was denied since nobody could be asked, 4 when a bound ended it, 130 after
    Ctrl+C.
    """
    from towline.cli.ending import heed_end
    from towline.cli.run import RunWish, run_once

    wish = RunWish(
        prompt=prompt,
        model=model,
        mode="auto" if auto else mode,
        max_cost=max_cost,
        max_steps=max_steps,
        as_json=as_json,
    )
    try:
        _run(heed_end(run_once(wish, answer=Console(highlight=False))))
    except UsageError as error:
        _fail(error.message, code=2)  # as for an option that is not known


@app.command()
def models(
    provider: Annotated[
        str | None, typer.Argument(help="Such as openai: list its models and their prices.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show which model is taken and why, or what one provider offers."""
    from towline.cli.models import show_models, show_provider

    console = Console(highlight=False)
    if provider is None:
        _run(show_models(console, as_json=as_json))
    else:
        _run(show_provider(provider, console, as_json=as_json))


@app.command()
def sessions(
    limit: Annotated[int, typer.Option(min=1, max=100, help="The most rows.")] = 20,
    after: Annotated[
        str | None, typer.Option(help="Where the page before ended, as it says.")
    ] = None,
    needs: Annotated[bool, typer.Option("--needs", help="Those that wait for you.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Those put away.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List your sessions, newest first, to go on with one by `towline chat --session`."""
    from towline.cli.sessions import show_sessions

    console = Console(highlight=False)
    _run(
        show_sessions(
            console, limit=limit, after=after, archived=archived, needs=needs, as_json=as_json
        )
    )


@app.command()
def usage(
    by: Annotated[str, typer.Option(help="day, model or session.")] = "day",
    first: Annotated[
        str | None, typer.Option("--from", help="The first day, as 2026-01-31; 30 days ago.")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="The last day; today, in UTC.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show what the server used and what it cost, by day, model or session; not what `run` did."""
    from towline.cli.usage import show_usage

    _run(show_usage(Console(highlight=False), by=by, first=first, last=last, as_json=as_json))


@app.command()
def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend the store; a copy is made before.")
    ] = False,
    copy: Annotated[
        Path | None, typer.Option("--copy", help="Only write a copy of the store to this file.")
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Ask each provider that has a key, once.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Check the store and this machine, and say what is wrong; exit code 1 when something is."""
    from towline.cli import doctor as ward

    console = Console(highlight=False)
    if sum((repair, copy is not None, online)) > 1:
        _fail("--repair, --copy and --online are three things: give one of them.")
    if copy is not None:
        _end(ward.copy(console, copy.absolute()))
    elif repair:
        _end(ward.repair(console, as_json=as_json))
    else:
        _run(ward.examine(console, online=online, as_json=as_json))


@app.command()
def pair() -> None:
    """Print a one-time link to your own account for another device, and the same as a QR code."""
    from towline.cli.pair import pair as make_link

    _run(make_link(Console(highlight=False)))


@app.command()
def trust(
    folder: Annotated[Path, typer.Argument(help="The project.")] = Path(),
    forget: Annotated[bool, typer.Option("--forget", help="Trust it no longer.")] = False,
    list_all: Annotated[
        bool, typer.Option("--list", help="Show the folders that are trusted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Let a project's own rules, commands and servers count, as they are now."""
    from towline.cli.trust import list_trusted, trust_folder

    console = Console(highlight=False)
    if list_all:
        _end(list_trusted(console))
    else:
        _end(trust_folder(folder, console, forget=forget, yes=yes))


@app.command()
def stop() -> None:
    """Stop the server and wait until it has; running turns have 30 s to end."""
    from towline.cli.stop import stop as end

    _end(end(Console(highlight=False)))


@keys.command("set")
def set_key(
    provider: _Provider,
    add: Annotated[
        bool, typer.Option("--add", help="Keep it as a backup behind the others.")
    ] = False,
) -> None:
    """Keep a key, read hidden from the terminal or from standard input."""
    from towline.cli.keys import set_key as keep

    _end(keep(provider, Console(), add=add))


@keys.command("list")
def list_keys() -> None:
    """Show where keys are kept, and the last four characters of each."""
    from towline.cli.keys import list_keys as show

    _end(show(Console()))


@keys.command("remove")
def remove_keys(
    provider: _Provider,
    last4: Annotated[
        str | None, typer.Option(help="Only the key that ends in these characters.")
    ] = None,
) -> None:
    """Forget the keys and the sign-in of a provider."""
    from towline.cli.keys import remove_keys as forget

    _end(forget(provider, Console(), last4=last4))


@keys.command("test")
def try_keys(provider: _Provider) -> None:
    """Ask a provider for its models with each of its keys."""
    from towline.cli.keys import try_keys as ask

    _run(ask(provider, Console()))


@app.command()
def login(
    provider: Annotated[str, typer.Argument(help="gemini (or google), or vertex.")],
    token: Annotated[
        bool,
        typer.Option(
            "--token", help="Paste a refresh or access token, TOKEN or TOKEN|PROJECT, instead."
        ),
    ] = False,
    client_id: Annotated[
        str | None, typer.Option(help="Your own OAuth client; else TOWLINE_GOOGLE_CLIENT_ID.")
    ] = None,
    project: Annotated[
        str | None, typer.Option(help="Google Cloud project; else GOOGLE_CLOUD_PROJECT.")
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser on this machine.")
    ] = True,
) -> None:
    """Sign in at a provider instead of setting a key."""
    from towline.cli.login import LoginOptions
    from towline.cli.login import login as sign_in

    options = LoginOptions(token=token, client_id=client_id, project=project, browser=browser)
    _run(sign_in(provider, options, Console()))


@users.command("list")
def list_users() -> None:
    """Show who may come in."""
    from towline.cli.users import list_users as show

    _run(show(Console()))


@users.command("add")
def add_user(
    name: _User,
    admin: Annotated[bool, typer.Option("--admin", help="May add and remove users too.")] = False,
    restore: Annotated[
        bool, typer.Option("--restore", help="Give a removed user back, with the old sessions.")
    ] = False,
) -> None:
    """Let somebody in; the password is read hidden, or from standard input."""
    from towline.cli.users import add_user as add

    _run(add(name, Console(), admin=admin, restore=restore))


@users.command("remove")
def remove_user(name: _User) -> None:
    """Let a user in no more, on any device. Their sessions stay stored, and nobody reaches them."""
    from towline.cli.users import remove_user as remove

    _run(remove(name, Console()))


@users.command("password")
def change_password(
    name: _User = "owner",
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Let their devices and programs go as well.")
    ] = False,
) -> None:
    """Set a password, read hidden or from standard input. It ends the user's logins."""
    from towline.cli.users import change_password as change

    _run(change(name, Console(), everywhere=everywhere))


@devices.command("list")
def list_devices() -> None:
    """Show what is let in as you: paired devices, logins, tokens of programs."""
    from towline.cli.devices import list_devices as show

    _run(show(Console()))


@devices.command("revoke")
def revoke_device(
    device: Annotated[str, typer.Argument(metavar="ID", help="As `towline devices list` shows.")],
) -> None:
    """Let a device in no more."""
    from towline.cli.devices import revoke_device as revoke

    _run(revoke(device, Console()))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"towline {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    del version


def _run(work: Coroutine[Any, Any, int]) -> None:
    _end(asyncio.run(work))


def _end(code: int) -> None:
    if code:
        raise typer.Exit(code)
