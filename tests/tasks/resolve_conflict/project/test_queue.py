import unittest
from pathlib import Path

from queue_of_jobs import Waiting


class WaitingTest(unittest.TestCase):
    def test_by_priority_then_age(self):
        waiting = Waiting()
        for job, priority in [("b", 1), ("z", 0), ("a", 1), ("c", 0)]:
            waiting.put(job, priority)
        self.assertEqual([waiting.get() for _ in range(5)], ["z", "c", "b", "a", None])

    def test_jobs_that_cannot_be_compared(self):
        waiting = Waiting()
        first, second = object(), object()
        waiting.put(first)
        waiting.put(second)
        self.assertIs(waiting.get(), first)

    def test_the_limit(self):
        waiting = Waiting(limit=1)
        waiting.put("a")
        with self.assertRaises(OverflowError):
            waiting.put("b")

    def test_cancel(self):
        waiting = Waiting()
        for job in "abc":
            waiting.put(job)
        waiting.cancel("b")
        self.assertEqual([waiting.get(), waiting.get(), waiting.get()], ["a", "c", None])

    def test_no_marks_are_left(self):
        text = (Path(__file__).parent / "queue_of_jobs.py").read_text()
        for mark in ("<" * 7, "=" * 7, ">" * 7):
            self.assertNotIn(mark, text)


if __name__ == "__main__":
    unittest.main()
