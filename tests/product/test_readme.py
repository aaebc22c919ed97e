"""The ten lines of Python in the README, run as they stand, against the real local model."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from product.running import Product

pytestmark = [pytest.mark.model, pytest.mark.slow]

TEN_LINES = Path(__file__).parents[2] / "docs_src" / "readme_ten_lines.py"


def test_the_ten_lines_of_the_readme_print_an_answer(product: Product) -> None:
    done = subprocess.run(
        [sys.executable, str(TEN_LINES)],
        cwd=product.root,
        env=product.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(datetime.now(UTC).year) in done.stdout, done.stdout
