import unittest

from romans.reading import from_roman
from romans.writing import to_roman


class RomansTest(unittest.TestCase):
    def test_there_and_back(self):
        for number in (1, 4, 9, 14, 40, 90, 400, 1994, 3999):
            self.assertEqual(from_roman(to_roman(number)), number)

    def test_known(self):
        self.assertEqual((to_roman(1994), from_roman("MMXXVI")), ("MCMXCIV", 2026))

    def test_refused(self):
        for text in ("", "IIII", "IC", "x"):
            with self.assertRaises(ValueError):
                from_roman(text)
        with self.assertRaises(ValueError):
            to_roman(4000)


if __name__ == "__main__":
    unittest.main()
