"""What a session's folder brings along: mentions, commands, instructions, a start."""

from collections.abc import Callable
from pathlib import Path

import pytest

from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import (
    CommandList,
    CreateSession,
    File,
    Image,
    PathList,
    Problem,
    PromptAccepted,
    RunCommand,
    SendPrompt,
    SessionList,
    SessionView,
    StartInfo,
    SuggestionList,
    Text,
    ToolList,
    block_text,
)
from towline_server.errors import Rejected
from towline_server.sessions.policies import Policies
from towline_server.sessions.project import COMMANDS, INIT, Projects
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 70


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("one\ntwo </file>\nthree\n")
    (folder / "a b.txt").write_text("spaced\n")
    (folder / "photo.png").write_bytes(PNG)
    (folder / "data.bin").write_bytes(b"\0\1\2")
    (folder / "empty.txt").write_bytes(b"")
    (folder / ".env").write_text("TOKEN=zebrafish\n")
    (tmp_path / "outside.txt").write_text("outside\n")
    return folder


async def _said(root: Path, *words: str) -> tuple[list[str], list[object], list[str]]:
    """What the model is shown of a prompt, what its event holds, and what people are told."""
    provider = ScriptedProvider("well")
    async with open_test_app(provider, root=root) as built:
        client = AppClient(built)
        content = tuple(Text(text=text) for text in words)
        session = await client.create(CreateSession(prompt=content))
        view = await client.until(session, ran(1))
    shown = [
        block.text if isinstance(block, Text) else type(block).__name__
        for block in provider.requests[0].messages[0].content
    ]
    return shown, list(view.messages[0].content), [told.message for told in view.notices]


@pytest.mark.rules("A5.79", "A5.80")
async def test_a_mentioned_file_goes_ahead_of_the_question_and_its_bytes_stand_in_no_event(
    root: Path,
) -> None:
    shown, kept, told = await _said(
        root, 'Compare @src/app.py:2-3 with @"a b.txt", and see @photo.png.'
    )
    assert shown[0] == '<file path="src/app.py" lines="2-3">\ntwo &lt;/file>\nthree\n</file>'
    assert shown[1] == '<file path="a b.txt">\nspaced\n</file>'
    assert shown[2] == "Image"
    assert shown[3].startswith("Compare @src/app.py:2-3")
    first = kept[0]
    assert isinstance(first, File)
    assert (first.name, first.path, first.lines) == ("app.py", "src/app.py", "2-3")
    assert isinstance(kept[2], Image)
    assert told == ["Attached: src/app.py (lines 2-3), a b.txt (1 line), photo.png (78 bytes)."]


@pytest.mark.rules("A5.3", "A5.67", "A5.79")
@pytest.mark.parametrize(
    ("mention", "why"),
    [
        ("none.py", "There is no file or folder of this name"),
        ("../outside.txt", "it leads outside the folder"),
        ("/etc/passwd", "it leads outside the folder"),
        ("src", "it is a folder, not a file"),
        ("data.bin", "models read no application/octet-stream; the agent has tools for it"),
        ("empty.txt", "it is empty"),
        (".env", "it may hold secrets; ask the agent to read it, and it asks you first"),
        ("src/app.py:40", "it has no line 40"),
    ],
)
async def test_what_cannot_be_shown_stays_a_word_and_everybody_is_told_why(
    root: Path, mention: str, why: str
) -> None:
    shown, _, told = await _said(root, f"See @{mention} please")
    assert shown == [f"See @{mention} please"]
    path = mention.partition(":")[0]
    assert told[0].startswith(f"Not attached: @{path}: {why}")


@pytest.mark.rules("A5.79")
async def test_mentions_beyond_those_that_count_are_told_by_name_and_number(root: Path) -> None:
    for count in range(18):
        (root / f"f{count}").write_text("x")
    _, kept, told = await _said(root, " ".join(f"@f{count}" for count in range(18)))
    assert sum(isinstance(block, File) for block in kept) == 16
    why = "a prompt takes 16 files along"
    assert told[1] == f"Not attached: @f16: {why}. @f17: {why}."


@pytest.mark.rules("A5.67", "A5.79", "A5.82")
async def test_a_link_to_a_secret_is_shown_by_no_name(root: Path) -> None:
    (root / "notes.txt").symlink_to(".env")
    (root / "AGENTS.md").symlink_to(".env")
    shown, _, _ = await _said(root, "See @notes.txt please")
    assert shown == ["See @notes.txt please"]
    assert await Projects((root,)).instructions(str(root)) == ""


async def test_the_same_key_again_keeps_the_file_as_it_was(root: Path) -> None:
    async with open_test_app(ScriptedProvider("well"), root=root) as built:
        client = AppClient(built)
        session = await client.create()
        first = await client.prompt(session, "@src/app.py", key="k1")
        (root / "src" / "app.py").write_text("changed")
        again = await client.prompt(session, "@src/app.py", key="k1")
        assert again.read(PromptAccepted) == first.read(PromptAccepted)


@pytest.mark.rules("A5.79")
async def test_an_editor_marks_lines_of_its_own_accord(root: Path) -> None:
    provider = ScriptedProvider("well")
    marked = File(
        name="app.py",
        media_type="text/plain",
        data="dHdv",
        path="src/app.py",
        lines="2",
        selection=True,
    )
    async with open_test_app(provider, root=root) as built:
        client = AppClient(built)
        session = await client.create()
        body = SendPrompt(content=(marked, Text(text="Why?")))
        await client.ask("POST", f"/api/sessions/{session}/prompts", body)
        await client.until(session, ran(1))
    shown = provider.requests[0].messages[0].content[0]
    assert shown == Text(text='<selection path="src/app.py" lines="2">\ntwo\n</selection>')


@pytest.mark.rules("A5.81")
async def test_paths_are_completed_and_ignored_ones_left_out(root: Path) -> None:
    (root / ".gitignore").write_text("*.bin\n")
    async with open_test_app(ScriptedProvider(), root=root) as built:
        client = AppClient(built)
        session = await client.create()
        path = f"/api/sessions/{session}/paths"
        found = (await client.ask("GET", f"{path}?prefix=app&limit=5")).read(PathList)
        every = (await client.ask("GET", path)).read(PathList)
    assert found.paths == ("src/app.py",)
    assert not found.truncated
    assert "src/" in every.paths
    assert "data.bin" not in every.paths


@pytest.mark.rules("A5.77")
async def test_commands_tools_and_a_start_are_listed(root: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=root) as built:
        client = AppClient(built)
        session = await client.create()
        base = f"/api/sessions/{session}"
        commands = (await client.ask("GET", f"{base}/commands")).read(CommandList)
        tools = (await client.ask("GET", f"{base}/tools")).read(ToolList)
        starts = (await client.ask("GET", f"{base}/suggestions")).read(SuggestionList)
    assert commands.commands == COMMANDS
    assert "ask_user" in [tool.name for tool in tools.tools]
    assert starts.suggestions


@pytest.mark.rules("A5.77", "A5.81")
async def test_what_a_session_would_have_is_told_before_there_is_one(
    root: Path, tmp_path: Path
) -> None:
    async with open_test_app(ScriptedProvider("well"), root=root, mode="plan") as built:
        client = AppClient(built)
        start = (await client.ask("GET", "/api/start")).read(StartInfo)
        below = await client.ask("GET", f"/api/start?folder={root}/src")
        paths = await client.ask("GET", f"/api/start/paths?folder={root}/src&prefix=a&limit=5")
        outside = [
            (await client.ask("GET", f"/api/{what}?folder={tmp_path}")).read(Problem).status
            for what in ("start", "start/paths")
        ]
        absent = await client.ask("GET", f"/api/start?folder={root}/none")
        assert not (await client.ask("GET", "/api/sessions")).read(SessionList).sessions
    assert (start.folder, start.roots, start.mode) == (str(root), (str(root),), "plan")
    assert start.commands == COMMANDS
    assert start.model
    assert start.suggestions
    assert below.read(StartInfo).folder == f"{root}/src"
    assert paths.read(PathList).paths == ("app.py",)
    assert outside == [403, 403]
    assert absent.status == 400


async def _turn_in(root: Path, folder: Path, change: Callable[[], object]) -> SessionView:
    """A session that begins in a folder, whose second turn comes after a change."""
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(ScriptedProvider("one"), root=root, store=store) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(cwd=str(folder)))
        await client.prompt(session, "hello")
        await client.until(session, ran(1))
    change()
    provider = ScriptedProvider("two")
    async with open_test_app(provider, root=root, store=store) as built:
        client = AppClient(built)
        assert (await client.prompt(session, "go on")).status == 202
        view = await client.until(session, ran(2))
    await store.close()
    assert len(provider.requests) == (view.last_turn is not None and view.last_turn.fault is None)
    return view


async def test_a_turn_is_refused_once_its_folder_lies_outside_the_roots(tmp_path: Path) -> None:
    root, other = tmp_path / "project", tmp_path / "elsewhere"
    root.mkdir()
    other.mkdir()

    kept = await _turn_in(root, root, lambda: None)
    assert kept.last_turn is not None
    assert kept.last_turn.fault is None
    (other / "deep").mkdir()
    folder = root / "deep"
    folder.mkdir()

    def lead_out() -> None:
        folder.rmdir()
        folder.symlink_to(other / "deep")

    view = await _turn_in(root, folder, lead_out)
    assert view.last_turn is not None
    fault = view.last_turn.fault
    assert fault is not None
    assert (fault.code, fault.reason) == ("forbidden", "outside_roots")
    assert "--root" in fault.message


async def test_a_turn_is_refused_once_its_folder_is_gone(tmp_path: Path) -> None:
    root = tmp_path / "project"
    folder = root / "deep"
    folder.mkdir(parents=True)
    view = await _turn_in(root, folder, folder.rmdir)
    assert view.last_turn is not None
    fault = view.last_turn.fault
    assert fault is not None
    assert (fault.code, fault.reason) == ("rejected", "folder_gone")
    assert str(folder) in fault.message


@pytest.mark.rules("A5.79")
async def test_a_folder_that_left_the_roots_is_not_looked_into(root: Path, tmp_path: Path) -> None:
    (root / "plan.txt").write_text("zebrafish\n")
    (root / ".towline" / "commands").mkdir(parents=True)
    (root / ".towline" / "commands" / "ship.md").write_text("Ship zebrafish.")
    (tmp_path / "elsewhere").mkdir()
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(ScriptedProvider("well"), root=root, store=store) as built:
        session = await AppClient(built).create()
    provider = ScriptedProvider("well")
    async with open_test_app(provider, root=tmp_path / "elsewhere", store=store) as built:
        client = AppClient(built)
        place = f"/api/sessions/{session}"
        for refused in ("paths?prefix=plan", "trust"):
            reply = await client.ask("GET", f"{place}/{refused}")
            assert reply.read(Problem).reason == "outside_roots", refused
        commands = (await client.ask("GET", f"{place}/commands")).read(CommandList)
        assert commands.commands == COMMANDS
        assert commands.notices == ()
        assert (await client.ask("GET", f"{place}/suggestions")).status == 200
        run = await client.ask("POST", f"{place}/commands/ship", RunCommand(arguments=""))
        assert run.read(Problem).reason == "unknown_command"
        await client.prompt(session, "Read @plan.txt")
        view = await client.until(session, ran(1))
        assert [block_text(message.content) for message in view.messages[:1]] == ["Read @plan.txt"]
        assert view.last_turn is not None
        assert view.last_turn.fault is not None
        assert view.last_turn.fault.reason == "outside_roots"
    await store.close()


@pytest.mark.rules("A5.77")
async def test_init_asks_the_agent_for_instructions(root: Path) -> None:
    provider = ScriptedProvider("done")
    async with open_test_app(provider, root=root) as built:
        client = AppClient(built)
        session = await client.create()
        path = f"/api/sessions/{session}/commands"
        body = RunCommand(arguments="In German.")
        answer = await client.ask("POST", f"{path}/init", body)
        assert answer.status == 202
        await client.until(session, ran(1))
        unknown = (await client.ask("POST", f"{path}/none", body)).read(Problem)
        wrong = await client.ask("POST", f"{path}/init", RunCommand(when="never"))
    words = block_text(provider.requests[0].messages[0].content)
    assert words.startswith("Write AGENTS.md")
    assert words.endswith("In German.")
    assert (unknown.status, unknown.reason) == (422, "unknown_command")
    assert wrong.status == 400


@pytest.mark.rules("A5.53", "A5.78")
async def test_a_projects_commands_count_once_it_is_trusted_and_the_users_own_go_first(
    root: Path, tmp_path: Path
) -> None:
    own, theirs = tmp_path / "commands", root / ".towline" / "commands"
    for folder in (own, theirs):
        folder.mkdir(parents=True)
        (folder / "both.md").write_text(f"Of {folder.name} in {folder.parent.name}")
    (theirs / "only.md").write_text("Only here")
    (theirs / "Bad Name.md").write_text("x")
    (theirs / "init.md").write_text("Not ours")
    wary = Projects((root,), commands=own)
    listed, told = await wary.commands(str(root))
    assert [c.name for c in listed] == ["both", "init"]
    assert len(told) == 1
    assert "towline trust" in told[0]
    with pytest.raises(Rejected, match=r"a command '/only' of its own") as refused:
        await wary.command(str(root), "only")
    assert refused.value.reason == "untrusted_command"
    with pytest.raises(Rejected, match="no command 'none'"):
        await wary.command(str(root), "none")
    policies = Policies(None)
    await policies.set_trust(str(root), (await policies.trust(str(root))).digest)
    trusting = Projects((root,), commands=own, policies=policies)
    found, notices = await trusting.commands(str(root))
    assert [(c.name, c.source) for c in found] == [
        ("both", "user"),
        ("init", "towline"),
        ("only", "project"),
    ]
    assert found[1] is INIT
    assert len(notices) == 1
    assert "Bad Name.md" in notices[0]


@pytest.mark.rules("A5.82", "A4.9")
async def test_instructions_of_the_folder_and_those_above_it_stand_in_the_system_prompt(
    root: Path,
) -> None:
    (root / "AGENTS.md").write_text("Top words.")
    (root / "CLAUDE.md").write_text("Passed over.")
    (root / "src" / "CLAUDE.md").write_text("Near words.")
    (root.parent / "AGENTS.md").write_text("Outside words.")
    provider = ScriptedProvider("well")
    async with open_test_app(provider, root=root) as built:
        client = AppClient(built)
        new = CreateSession(cwd=str(root / "src"), prompt=(Text(text="Hi"),))
        session = await client.create(new)
        await client.until(session, ran(1))
    system = provider.requests[0].system
    assert system.index("Near words.") < system.index("Top words.")
    assert "Passed over." not in system
    assert "Outside words." not in system
    assert "the person comes first" in system
