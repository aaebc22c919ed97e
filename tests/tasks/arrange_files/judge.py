"""All is where it should be, the tests are the same and pass, and the code is tidy."""

import subprocess
import sys
from pathlib import Path

GONE = ("converter.py", "conv_util.py", "test_romans.py")
BEFORE = Path(__file__).with_name("project")


def main() -> str:
    left = [name for name in GONE if Path(name).exists()]
    if left:
        return f"still there: {', '.join(left)}"
    tests = Path("tests/test_romans.py")
    if not tests.exists() or tests.read_bytes() != (BEFORE / "test_romans.py").read_bytes():
        return "tests/test_romans.py is not what test_romans.py was"
    code = Path("romans/writing.py").read_text(encoding="utf-8")
    if "( " in code or ";" in code:
        return "romans/writing.py is not formatted"
    readme = Path("README.md").read_text(encoding="utf-8")
    if "romans/writing.py" not in readme or "conv_util" in readme or "converter.py" in readme:
        return "the README tells of files that are not there"
    command = [sys.executable, "-m", "unittest", "-q", "tests/test_romans.py"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if run.returncode == 0 else run.stderr


if __name__ == "__main__":
    sys.exit(main() or 0)
