import unittest

from fleet import mail, planner, upload


class AttemptsTest(unittest.TestCase):
    def test_uploads(self):
        found = [upload.attempts(place) for place in ("oslo", "bergen", "porto", "nowhere")]
        self.assertEqual(found, [11, 11, 7, 3])

    def test_all_else_is_as_it_was(self):
        self.assertEqual([mail.attempts("oslo"), mail.attempts("porto")], [9, 5])
        self.assertEqual(planner.attempts("oslo"), 2)


if __name__ == "__main__":
    unittest.main()
