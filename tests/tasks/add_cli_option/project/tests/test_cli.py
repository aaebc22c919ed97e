import contextlib
import io
import unittest
from unittest import mock

from tally.__main__ import main

TEXT = "the cat and the dog and the bird"


def run(*argv):
    out = io.StringIO()
    with mock.patch("sys.stdin", io.StringIO(TEXT)), contextlib.redirect_stdout(out):
        main(list(argv))
    return [line.split() for line in out.getvalue().splitlines()]


class CliTest(unittest.TestCase):
    def test_all_words(self):
        self.assertEqual(run()[:2], [["3", "the"], ["2", "and"]])
        self.assertEqual(len(run()), 5)

    def test_capitals(self):
        self.assertEqual(run("--upper")[0], ["3", "THE"])


if __name__ == "__main__":
    unittest.main()
