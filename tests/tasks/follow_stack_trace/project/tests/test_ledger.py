import unittest

from ledger.money import format_cents
from ledger.read import parse_amount, read_rows
from ledger.report import render


class AmountTest(unittest.TestCase):
    def test_plain(self):
        self.assertEqual([parse_amount("12.05"), parse_amount("-3.50"), parse_amount("7")], [1205, -350, 700])

    def test_thousands_are_exact_cents(self):
        for text, cents in [("1,250.00", 125000), ("1,234.56", 123456), ("-1,001.10", -100110), ("2,000", 200000)]:
            self.assertEqual(parse_amount(text), cents)
            self.assertIs(type(parse_amount(text)), int)

    def test_format_takes_whole_cents_alone(self):
        self.assertEqual(format_cents(-1205), "-12.05")
        with self.assertRaises(ValueError):
            format_cents(12.5)


class ReportTest(unittest.TestCase):
    def test_the_row_of_the_log(self):
        rows = read_rows('2026-02-27,rent,"1,250.00"\n2026-02-28,tea,3.20\n')
        self.assertEqual(render(rows), "rent            1250.00\ntea                3.20")


if __name__ == "__main__":
    unittest.main()
