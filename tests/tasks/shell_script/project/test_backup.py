import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("backup.sh")


def backup(*words):
    run = subprocess.run(["sh", str(SCRIPT), *map(str, words)], capture_output=True, text=True)
    return run.returncode, sorted(run.stdout.splitlines())


class BackupTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.source = Path(holder.name) / "my files"
        self.target = Path(holder.name) / "the copies"
        self.source.mkdir()

    def test_names_with_spaces_and_stars(self):
        for name in ("a.txt", "two words.txt", "*"):
            (self.source / name).write_text(name)
        self.assertEqual(backup(self.source, self.target), (0, ["*", "a.txt", "two words.txt"]))
        self.assertEqual((self.target / "two words.txt").read_text(), "two words.txt")

    def test_only_newer_ones(self):
        (self.source / "a b").write_text("1")
        backup(self.source, self.target)
        self.assertEqual(backup(self.source, self.target), (0, []))
        (self.source / "a b").write_text("2")
        later = (self.target / "a b").stat().st_mtime + 5
        os.utime(self.source / "a b", (later, later))
        self.assertEqual(backup(self.source, self.target), (0, ["a b"]))

    def test_an_empty_folder(self):
        self.assertEqual(backup(self.source, self.target), (0, []))

    def test_a_folder_that_is_not_there(self):
        self.assertEqual(backup(self.source / "no", self.target), (1, []))
        self.assertFalse(self.target.exists())


if __name__ == "__main__":
    unittest.main()
