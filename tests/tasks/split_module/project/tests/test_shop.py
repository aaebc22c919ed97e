import ast
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[1]


def defined(name):
    """The classes and functions that a module defines itself."""
    tree = ast.parse((ROOT / "shop" / name).read_text())
    return {one.name for one in tree.body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}


class PartsTest(unittest.TestCase):
    def test_each_has_its_module(self):
        self.assertEqual(defined("prices.py"), {"with_vat", "discount"})
        self.assertEqual(defined("stock.py"), {"Stock"})
        self.assertEqual(defined("core.py"), {"sell"})

    def test_the_rates_moved_with_the_prices(self):
        from shop import prices

        self.assertEqual(prices.VAT, {"book": 7, "lamp": 19})
        self.assertNotIn("VAT =", (ROOT / "shop" / "core.py").read_text())


class ShopTest(unittest.TestCase):
    def test_old_imports_work(self):
        from shop.core import VAT, Stock, discount, sell, with_vat

        stock = Stock()
        stock.put("lamp", 2)
        self.assertEqual(sell(stock, "lamp", 1, 500), 595)
        self.assertEqual((discount(100, 10), with_vat(100, "book"), VAT["lamp"]), (900, 107, 19))
        with self.assertRaises(LookupError):
            sell(stock, "lamp", 2, 500)

    def test_the_program(self):
        out = subprocess.check_output([sys.executable, str(ROOT / "main.py")], text=True)
        self.assertEqual(out, "9630 2\n")


if __name__ == "__main__":
    unittest.main()
