import ast
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[1]


class GaugeTest(unittest.TestCase):
    def test_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "values"
            file.write_text("1\n2\n\n2\n")
            out = subprocess.check_output([sys.executable, "-m", "gauge", str(file)], text=True, cwd=ROOT)
        self.assertEqual(out, "1.67\n")

    def test_every_function_is_used(self):
        trees = {path.name: ast.parse(path.read_text()) for path in (ROOT / "gauge").glob("*.py")}
        used = {
            name
            for tree in trees.values()
            for node in ast.walk(tree)
            for name in [getattr(node, "id", None), getattr(node, "attr", None)]
        }
        unused = [
            f"{file}: {node.name}"
            for file, tree in sorted(trees.items())
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name not in used and not node.name.startswith("on_")
        ]
        self.assertEqual(unused, [])

    def test_every_import_is_used(self):
        for path in (ROOT / "gauge").glob("*.py"):
            tree = ast.parse(path.read_text())
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            for node in ast.walk(tree):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    for alias in node.names:
                        self.assertIn(alias.name, names, path.name)

    def test_what_is_left_is_there(self):
        self.assertEqual({p.name for p in (ROOT / "gauge").glob("*.py")}, {"__init__.py", "__main__.py", "numbers.py", "plugins.py"})
        self.assertIn("def on_result_round", (ROOT / "gauge" / "plugins.py").read_text())


if __name__ == "__main__":
    unittest.main()
