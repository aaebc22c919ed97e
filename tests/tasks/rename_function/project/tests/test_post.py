import subprocess
import sys
import unittest
from pathlib import Path

import post
from post import labels, orders, prices

ROOT = Path(__file__).parents[1]


class PriceTest(unittest.TestCase):
    def test_one_parcel(self):
        self.assertEqual(post.parcel_price(2.5, zone=3), 12.38)

    def test_the_old_name_is_gone(self):
        self.assertFalse(hasattr(post, "calc"))
        self.assertFalse(hasattr(prices, "calc"))

    def test_other_names_stay(self):
        self.assertEqual(prices.recalc([1.0, 2.0], 10), [1.1, 2.2])

    def test_a_label(self):
        self.assertEqual(labels.label("Ada", 1, 1), "Ada: 1 kg, 4.30 EUR")

    def test_an_order(self):
        self.assertEqual(orders.total([(1, 1), (1, 2)]), 10.75)

    def test_the_script(self):
        argv = [sys.executable, str(ROOT / "scripts" / "quote.py"), "1", "1"]
        self.assertEqual(subprocess.check_output(argv, text=True), "4.3\n")

    def test_the_readme_tells_the_new_name(self):
        text = (ROOT / "README.md").read_text()
        self.assertEqual(text.count("parcel_price"), 2)
        self.assertNotIn("calc", text)


if __name__ == "__main__":
    unittest.main()
