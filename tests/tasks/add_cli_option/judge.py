"""The option works, its tests pass with it and fail without it."""

import subprocess
import sys
from pathlib import Path

TEXT = "b a c a b a d"

DEAF = """

_whole = main


def main(argv=None):
    words = " ".join(sys.argv[1:] if argv is None else argv)
    return _whole(__import__("re").sub(r"--top[= ]\\d+", "", words).split())
"""
"""What makes the command line ignore the option."""


def tally(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tally", *argv]
    return subprocess.run(command, input=TEXT, capture_output=True, text=True, check=False)


def tests() -> int:
    command = [sys.executable, "-m", "unittest", "-q"]
    return subprocess.run(command, capture_output=True, check=False).returncode


def main() -> str:
    two = tally("--top", "2")
    if two.stdout.split() != ["3", "a", "2", "b"]:
        return f"--top 2 printed {two.stdout!r} {two.stderr[-300:]!r}"
    if len(tally().stdout.splitlines()) != 4:
        return "without --top all words should be printed"
    if tally("--top", "9").stdout != tally().stdout:
        return "--top 9 of four words should print all"
    if "--top" not in Path("README.md").read_text(encoding="utf-8"):
        return "the README does not tell of --top"
    if tests() != 0:
        return "the project's tests fail"
    code = Path("tally/__main__.py")
    before = code.read_text(encoding="utf-8")
    code.write_text(before + DEAF, encoding="utf-8")
    try:
        return "" if tests() != 0 else "no test fails when --top does nothing"
    finally:
        code.write_text(before, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main() or 0)
