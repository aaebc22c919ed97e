"""The docs site: what its pages are, what they show and what the reference names."""

import asyncio
import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from towline_agent import TextPiece, tool
from towline_agent.testing import ScriptedProvider, call
from towline_client import Client
from towline_protocol import Envelope, PermissionRequested
from towline_server.testing import open_test_server

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FACES = {
    "towline_agent": "agent.md",
    "towline_agent.testing": "agent-testing.md",
    "towline_client": "client.md",
    "towline_client.blocking": "client.md",
    "towline_client.testing": "client-testing.md",
    "towline_server.embed": "embed.md",
}
"""A public face to the page of the reference that has all of it."""
PARTS = {"events": "events.md", "outgoing": "view.md", "presentation": "view.md"} | {
    "reducer": "view.md",
    "view": "view.md",
}
"""A module of the protocol to the page that has all that is public of it."""

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())


def pages_of(nav: list[Any]) -> list[str]:
    """The pages that a navigation leads to, in order."""
    found: list[str] = []
    for entry in nav:
        (place,) = entry.values()
        found += [place] if isinstance(place, str) else pages_of(place)
    return found


def test_the_navigation_leads_to_each_page_once() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    assert sorted(pages_of(nav)) == [page.relative_to(DOCS).as_posix() for page in PAGES]


@by_page
def test_a_page_has_one_title_and_leads_to_nothing_outside_of_the_site(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    assert len(re.findall(r"^# .", text, re.MULTILINE)) == 1
    places = [
        (page.parent / link).resolve() for link in re.findall(r"\]\((?!https?:)([^)#]+)", text)
    ]
    assert [place for place in places if not place.is_relative_to(DOCS)] == []


@by_page
def test_a_page_shows_python_only_as_a_program_that_is_run(page: Path) -> None:
    programs = {
        path.read_text("utf-8")
        for folder in ("docs_src", "examples")
        for path in (ROOT / folder).glob("*.py")
    }
    shown = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert [program for program in shown if program not in programs] == []


def named(page: str) -> list[str]:
    """What a page of the reference is made from."""
    text = (DOCS / "reference" / page).read_text("utf-8")
    return re.findall(r"^::: (\S+)$", text, re.MULTILINE)


@pytest.mark.parametrize("face", FACES)
def test_the_reference_has_all_that_a_face_shows(face: str) -> None:
    module = importlib.import_module(face)
    told = {name.rpartition(".")[2] for name in named(FACES[face])}
    assert [name for name in module.__all__ if name not in told] == []


@pytest.mark.parametrize("part", PARTS)
def test_the_reference_has_all_events_and_all_of_the_view(part: str) -> None:
    protocol = importlib.import_module("towline_protocol")
    told = {name.rpartition(".")[2] for name in named(PARTS[part])}
    of_part = [
        name
        for name in protocol.__all__
        if f"{getattr(getattr(protocol, name), '__module__', '')}.".startswith(
            f"towline_protocol.{part}."
        )
    ]
    assert of_part
    assert [name for name in of_part if name not in told] == []


@pytest.mark.parametrize("page", sorted({*FACES.values(), *PARTS.values()}))
def test_the_reference_names_nothing_that_is_not_there(page: str) -> None:
    for name in named(page):
        module, _, own = name.rpartition(".")
        assert own in importlib.import_module(module).__all__, name


def test_the_generator_is_the_one_that_was_looked_at() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    assert "zensical==0.0.73" in groups["docs"]
    assert "make docs" in (ROOT / ".ci" / "run").read_text("utf-8")


@tool(effect="write")
def note() -> str:
    """Note something."""
    return "noted"


def allow(request: PermissionRequested) -> str:
    assert request.tool == "note"
    return "allow_once"


async def test_the_log_of_a_turn_is_as_the_concepts_show_it(tmp_path: Path) -> None:
    page = (DOCS / "concepts.md").read_text("utf-8")
    log = page.split("```text\n")[1].split("```")[0]
    shown = re.findall(r"^ *(\d*) +([a-z_]+)", log, re.MULTILINE)
    provider = ScriptedProvider(call("note"), [TextPiece(0, "Noted.")])
    seen: list[tuple[str, str]] = []
    async with (
        asyncio.timeout(60),
        open_test_server(provider, root=tmp_path, tools=[note], mode="ask") as built,
        Client(built.url, built.token) as client,
    ):
        client.on_permission(allow)
        session = await client.open()
        await session.prompt("Note 4747.")
        async for happened in session.events:
            if isinstance(happened, Envelope):
                seen.append((str(happened.seq or ""), str(happened.event.__struct_config__.tag)))
                if seen[-1][1] == "turn_completed":
                    break
    assert seen == shown
