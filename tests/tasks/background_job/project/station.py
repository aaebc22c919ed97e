"""Serves what values.csv holds."""

import csv
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

HERE = Path(__file__).parent


def newest():
    """The last row."""
    with open(HERE / "values.csv", newline="") as file:
        return list(csv.DictReader(file))[0]


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(newest()).encode()
        self.send_response(200 if self.path == "/now" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    server = HTTPServer(("127.0.0.1", 0), Answer)
    (HERE / "port.txt").write_text(str(server.server_port))
    print(f"listening on {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
