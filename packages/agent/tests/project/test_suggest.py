"""What to begin with, and paths for `@`."""

from towline_agent.project.suggest import rank_paths, suggest_starts


def test_there_is_always_something_to_begin_with() -> None:
    assert suggest_starts(())
    assert "/init" in suggest_starts(("pyproject.toml", "tests"))
    assert "/init" not in suggest_starts(("pyproject.toml", "tests", "AGENTS.md"))
    assert len(suggest_starts(("pyproject.toml", "tests", ".git", "README.md"))) == 4


def test_the_path_that_begins_so_is_first_then_the_name_that_does() -> None:
    paths = ("src/", "src/app.py", "docs/src.md", "a/b/xsrc", "s/r/c", "README.md")
    assert rank_paths(paths, "src", 9) == (
        "src/",
        "src/app.py",
        "docs/src.md",
        "a/b/xsrc",
        "s/r/c",
    )
    assert rank_paths(paths, "SRC/A", 9) == ("src/app.py",)
    assert rank_paths(paths, "", 2) == ("src/", "s/r/c")
    assert rank_paths(paths, "nothing", 9) == ()
