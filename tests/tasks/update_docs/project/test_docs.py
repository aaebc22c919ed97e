import re
import subprocess
import sys
import unittest
from pathlib import Path

from inkwell import wrap

HERE = Path(__file__).parent


class DocsTest(unittest.TestCase):
    def setUp(self):
        self.readme = (HERE / "README.md").read_text()

    def test_the_readme_prints_what_it_says(self):
        code = re.search(r"```python\n(.*?)```", self.readme, re.S)[1]
        says = re.search(r"```text\n(.*?)```", self.readme, re.S)[1]
        out = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=HERE)
        self.assertEqual(out, says)
        self.assertIn("wrap(", code)

    def test_the_readme_tells_of_the_indent_and_not_of_the_flag(self):
        self.assertNotIn("True", self.readme)
        self.assertRegex(self.readme, r"wrap\([^)]*width=[^)]*indent=")

    def test_the_example_runs_and_prints_the_same_as_ever(self):
        out = subprocess.check_output([sys.executable, str(HERE / "examples" / "poem.py")], text=True)
        self.assertEqual(out, "the sea is\n  never\n  still and\n  yet it\n  stays\n")

    def test_the_code_is_as_it_was(self):
        self.assertEqual(wrap("a b c", width=3, indent="> "), "a b\n> c")


if __name__ == "__main__":
    unittest.main()
