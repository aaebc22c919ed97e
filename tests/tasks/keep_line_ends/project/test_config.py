import unittest
from pathlib import Path

CONFIG = Path(__file__).parent / "config"


class ConfigTest(unittest.TestCase):
    def setUp(self):
        self.ini = (CONFIG / "printer.ini").read_bytes()
        self.csv = (CONFIG / "names.csv").read_bytes()

    def test_all_lines_end_as_on_windows(self):
        for data in (self.ini, self.csv):
            self.assertEqual(data.count(b"\r\n"), data.count(b"\n"))
            self.assertEqual(data.count(b"\r\n"), data.count(b"\r"))

    def test_the_settings(self):
        lines = self.ini.decode("cp1252").split("\r\n")
        self.assertEqual(lines[3:6], ["papier = A4", "farbe = nein", "kopien = 2"])
        self.assertEqual(lines[8], "gruß = Schöne Grüße aus Köln")
        self.assertEqual(lines[9], "preis = 12 €")
        self.assertEqual(len(lines), 11)

    def test_the_names(self):
        self.assertEqual(self.csv[:3], b"\xef\xbb\xbf")
        lines = self.csv[3:].decode("utf-8").split("\r\n")
        self.assertEqual(lines, ["id;name", "1;Zoë", "2;Jürgen", "3;Anaïs", "4;Øyvind", ""])


if __name__ == "__main__":
    unittest.main()
