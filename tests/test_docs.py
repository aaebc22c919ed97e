"""The pages, held against the code they speak of."""

import re
from pathlib import Path

import msgspec
import pytest

import towline_agent
from towline_agent import Agent, AgentResult, Model, ProviderError, StepFailed, testing
from towline_agent.providers.error_signals import KINDS, NETWORK
from towline_agent.providers.keys import Bench
from towline_agent.providers.vendors import VENDORS, Vendor
from towline_agent.testing import FakeClock, ScriptedProvider
from towline_protocol import (
    CONTROL_FRAMES,
    FAULT_CODES,
    OPERATIONS,
    Delta,
    StoredEvent,
    TowlineError,
    Unknown,
)
from towline_server.config import CONFIG_KEYS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONTRACT = (DOCS / "contract.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table under a heading, by the word in their first cell."""
    part = re.split(rf"^#+ {heading}$", CONTRACT, maxsplit=1, flags=re.MULTILINE)[1]
    part = re.split(r"^#+ ", part, maxsplit=1, flags=re.MULTILINE)[0]
    found: dict[str, list[str]] = {}
    for line in part.splitlines():
        first = re.match(r"\| `([\w]+)`", line)
        if first is not None:
            found[first.group(1)] = [cell.strip() for cell in line.strip("|").split("|")]
    return found


def fields(info: msgspec.inspect.StructType) -> str:
    names = (f.encode_name + ("" if f.required else "?") for f in info.fields)
    return ", ".join(f"`{name}`" for name in names)


@pytest.mark.parametrize(("heading", "union"), [("Stored", StoredEvent), ("Not stored", Delta)])
def test_every_event_has_a_row_with_its_fields(heading: str, union: object) -> None:
    infos = msgspec.inspect.multi_type_info(getattr(union, "__args__"))  # noqa: B009 - a union has it
    found = {
        str(info.tag): fields(info)
        for info in infos
        if isinstance(info, msgspec.inspect.StructType) and info.cls is not Unknown
    }
    assert {name: cells[1] for name, cells in rows(heading).items()} == found


def test_every_control_frame_has_a_row_with_its_fields() -> None:
    infos = {name: msgspec.inspect.type_info(kind) for name, kind in CONTROL_FRAMES.items()}
    found = {
        name: fields(info)
        for name, info in infos.items()
        if isinstance(info, msgspec.inspect.StructType)
    }
    assert {name: cells[1] for name, cells in rows("The stream").items()} == found


def test_every_operation_has_a_row_that_says_what_it_is() -> None:
    found = {
        row.name: [
            f"`{row.name}`{'*' if row.idempotent else ''}",
            f"`{row.method} {row.path}`",
            row.summary,
            ", ".join([str(row.status), *(f"`{code}`" for code in row.faults)]),
        ]
        for row in OPERATIONS.values()
    }
    assert rows("Operations") == found


def test_every_fault_has_a_row_with_its_status_and_retry() -> None:
    found = {row.code: [str(row.status), f"`{row.retry}`"] for row in FAULT_CODES.values()}
    assert {name: cells[1:3] for name, cells in rows("Faults").items()} == found


def test_every_setting_has_a_row() -> None:
    page = (DOCS / "getting-started.md").read_text(encoding="utf-8")
    keys = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)
    assert sorted(keys) == list(CONFIG_KEYS)


def test_every_variable_of_the_environment_is_told() -> None:
    page = (DOCS / "getting-started.md").read_text(encoding="utf-8")
    used: set[str] = set()
    for path in ROOT.glob("packages/*/src/**/*.py"):
        if path.stem != "testing" and path.parent.stem != "testing":
            used |= set(re.findall(r'"(TOWLINE_[A-Z_]+[A-Z])"', path.read_text(encoding="utf-8")))
    used -= {f"TOWLINE_{key.upper()}" for key in CONFIG_KEYS}
    assert used == set(re.findall(r"^\| `(TOWLINE_[A-Z_]+)`", page, re.MULTILINE))


def test_the_files_that_the_architecture_names_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`(towline\w*(?:/\w+)+(?:\.py|/))`", text)
    assert len(named) > 5
    missing = [name for name in named if not list(ROOT.glob(f"packages/*/src/{name}"))]
    assert missing == []


def first_cells(page: str, heading: str) -> list[str]:
    """The first cells of the tables under a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    part = re.split(rf"^#+ {heading}$", text, maxsplit=1, flags=re.MULTILINE)[1]
    part = re.split(r"^#+ ", part, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^\| (`.+?) \|", part, re.MULTILINE)


def vendor_row(vendor: Vendor) -> str:
    def ticks(*names: str | None) -> str:
        return ", ".join(f"`{name}`" for name in names if name)

    keys = ticks(*vendor.key_settings) or "none"
    address = vendor.base_url.partition("://")[2].removesuffix("/chat/completions")
    nameless = "the first it offers" if vendor.local or vendor.key_optional else "name one"
    cells = (
        ticks(vendor.name),
        vendor.title,
        f"{keys}, or none" if vendor.key_optional else keys,
        ticks(address, vendor.url_setting),
        ticks(vendor.dialect, *vendor.other_urls),
        ticks(vendor.default_model) or nameless,
    )
    return f"| {' | '.join(cells)} |"


def test_every_vendor_of_the_catalog_has_its_row() -> None:
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    table = page.split("## Providers\n")[1].split("## Dialects\n")[0]
    assert [line for line in table.splitlines() if line.startswith("| `")] == [
        vendor_row(vendor) for vendor in VENDORS.values()
    ]


def reasons() -> dict[str, str]:
    """The reasons of failures, each with what the page says is done by itself."""
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    table = page.split("## When it refuses\n")[1].split("## Waiting\n")[0]
    found = re.findall(r"^\| (`.+?) \| .+? \| ?(.*?) ?\|$", table, re.MULTILINE)
    return {name: done for names, done in found for name in re.findall(r"`(\w+)`", names)}


def test_every_reason_of_a_failure_has_a_row() -> None:
    own = {name for name, kind in NETWORK.items() if kind not in KINDS.values()}
    assert reasons().keys() == KINDS.keys() | own | {"cut"}


async def meet(name: str) -> tuple[str, list[float]]:
    """Who answers in the end when a model fails so each time, and what was waited for."""
    kind = KINDS.get(name) or NETWORK[name]
    retryable = False if name == "too_long" else None
    failed = StepFailed(error=kind.error("No.", reason=name, retryable=retryable))
    clock = FakeClock()
    agent = Agent(ScriptedProvider(*[failed] * 8), fallbacks=[ScriptedProvider("B.")], clock=clock)
    try:
        return (await agent.run("Hi")).final_message, clock.sleeps
    except ProviderError as error:
        return type(error).__name__, clock.sleeps


@pytest.mark.parametrize("name", [*reasons()])
async def test_what_the_page_says_is_done_by_itself_is_done(name: str) -> None:
    done = reasons()[name].split(", ")
    answered, waited = await meet(name)
    assert (answered == "B.") == ("next model" in done)
    assert (len(waited) == 3) == ("again" in done)
    assert (waited == [30.0] * 6) == ("wait" in done)
    kind = KINDS.get(name) or NETWORK[name]
    benched = Bench(FakeClock()).add(Model(provider="p", id="m"), "key", kind.error("No."))
    if name != "missing_key":  # a ring has no such key
        assert (benched is not None) == ("next key" in done)


def test_every_exception_that_leaves_a_run_has_a_row() -> None:
    named = [cell.strip("`") for cell in first_cells("library.md", "What is raised")]
    kinds = [getattr(towline_agent, name, None) for name in towline_agent.__all__]
    raised = {
        kind.__name__
        for kind in kinds
        if isinstance(kind, type)
        and issubclass(kind, TowlineError)
        and not issubclass(kind, towline_agent.ToolError | towline_agent.TransportFailed)
    }
    assert {*named} == raised - {"ProviderError"} | {"UsageError"}


def test_every_fake_is_told_of() -> None:
    page = (DOCS / "library.md").read_text(encoding="utf-8")
    part = page.split("## Tests of your own\n")[1].split("\n## ")[0]
    assert [name for name in testing.__all__ if f"`{name}`" not in part] == []


def test_every_part_of_a_result_has_a_row() -> None:
    cells = first_cells("library.md", "The first run")
    told = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert told == [*AgentResult.__annotations__]


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


LINKING = [
    ROOT / "README.md",
    ROOT / "examples" / "README.md",
    *DOCS.rglob("*.md"),
    *ROOT.glob("packages/*/README.md"),
]


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_each_link_leads_to_a_heading_that_is_there(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", text):
        place = page.parent / target if target else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), f"{target}#{anchor}"


def test_across_packages_names_come_from_the_face() -> None:
    wrong: list[str] = []
    for path in ROOT.glob("packages/*/src/*/**/*.py"):
        own = path.as_posix().split("/src/")[1].split("/")[0]
        text = path.read_text(encoding="utf-8")
        for face, inner in re.findall(
            r"^\s*(?:from|import) (towline\w*)\.(\w+)", text, re.MULTILINE
        ):
            between_fakes = path.name == "testing.py" and inner == "testing"
            if face != own and not between_fakes:
                wrong.append(f"{path.name}: {face}.{inner}")
    assert wrong == []
