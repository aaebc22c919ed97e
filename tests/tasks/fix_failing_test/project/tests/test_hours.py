import unittest

from bookings.hours import free, merge


class MergeTest(unittest.TestCase):
    def test_apart(self):
        self.assertEqual(merge([(14, 15), (9, 10)]), [(9, 10), (14, 15)])

    def test_overlap(self):
        self.assertEqual(merge([(9, 11), (10, 12)]), [(9, 12)])

    def test_touch(self):
        self.assertEqual(merge([(9, 10), (10, 11)]), [(9, 11)])

    def test_one_inside_the_other(self):
        self.assertEqual(merge([(9, 17), (12, 13)]), [(9, 17)])


class FreeTest(unittest.TestCase):
    def test_between(self):
        self.assertEqual(free([(12, 13), (9, 10)], 8, 18), [(8, 9), (10, 12), (13, 18)])

    def test_whole_day_taken(self):
        self.assertEqual(free([(8, 18), (9, 10)], 8, 18), [])


if __name__ == "__main__":
    unittest.main()
