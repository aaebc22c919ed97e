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


def test_hidden_paths_go_last_unless_they_are_typed_and_what_was_changed_last_goes_first() -> None:
    changed = {".ci/": 0, ".ci/run.yml": 9, "src/": 0, "src/app.py": 5, "a.md": 7}
    ranked = rank_paths(changed, "", 9, changed.__getitem__)
    assert ranked == ("a.md", "src/app.py", "src/", ".ci/run.yml", ".ci/")
    assert rank_paths(changed, "r", 9, changed.__getitem__) == (
        ".ci/run.yml",
        "src/",
        "src/app.py",
    )
    assert rank_paths(changed, ".c", 9, changed.__getitem__)[0] == ".ci/"
