import re
import unittest
from pathlib import Path

from shelf.pages import page_name

ROOT = Path(__file__).parents[1]


class PageTest(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(page_name("The Sea"), "the-sea.html")

    def test_signs(self):
        self.assertEqual(page_name("Straße & Söhne: Łódź?"), "strasse-sohne-lodz.html")

    def test_long_titles_are_cut_at_a_word(self):
        self.assertEqual(page_name("one two three four five six seven eight nine ten"), "one-two-three-four-five-six-seven-eight.html")


class ManifestTest(unittest.TestCase):
    def test_the_package_is_a_dependency_with_a_lower_bound(self):
        text = (ROOT / "pyproject.toml").read_text()
        found = re.search(r'dependencies\s*=\s*\[\s*"slugline\s*>=\s*2[.\d]*(,\s*<\s*3[.\d]*)?",?\s*\]', text)
        self.assertIsNotNone(found, text)

    def test_the_package_is_used_and_not_copied(self):
        text = (ROOT / "shelf" / "pages.py").read_text()
        self.assertIn("slugline", text)
        self.assertNotIn("unicodedata", text)


if __name__ == "__main__":
    unittest.main()
