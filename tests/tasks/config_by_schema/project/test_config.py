import json
import unittest
from pathlib import Path

from validate import faults

HERE = Path(__file__).parent


class ConfigTest(unittest.TestCase):
    def setUp(self):
        self.config = json.loads((HERE / "gateway.json").read_text())

    def test_it_is_valid(self):
        self.assertEqual(faults(self.config, json.loads((HERE / "schema.json").read_text())), [])

    def test_it_means_the_same_as_before(self):
        self.assertEqual(
            self.config,
            {
                "name": "gateway",
                "listen": {"host": "127.0.0.1", "port": 8080},
                "log_level": "warning",
                "retries": 2,
                "upstreams": [
                    {"url": "http://a.example:9000", "timeout_s": 2.5, "weight": 3},
                    {"url": "http://b.example:9000", "timeout_s": 0.8},
                ],
            },
        )


if __name__ == "__main__":
    unittest.main()
