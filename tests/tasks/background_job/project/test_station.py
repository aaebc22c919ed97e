import json
import threading
import unittest
import urllib.request
from http.server import HTTPServer
from pathlib import Path

import station

HERE = Path(__file__).parent


class StationTest(unittest.TestCase):
    def test_it_tells_the_newest_value(self):
        server = HTTPServer(("127.0.0.1", 0), station.Answer)
        station.Answer.log_message = lambda *_: None
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/now"
            said = json.load(urllib.request.urlopen(url, timeout=10))
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        self.assertEqual(said, {"hour": "08", "degrees": "6.5"})

    def test_what_it_said_was_noted(self):
        self.assertEqual(json.loads((HERE / "answer.json").read_text()), {"hour": "08", "degrees": "6.5"})


if __name__ == "__main__":
    unittest.main()
