"""Asks the station: ask.py PATH"""

import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

PORT = Path(__file__).parent / "port.txt"


def ask(path):
    """The answer; waits some seconds for a station that is about to start."""
    for _ in range(100):
        try:
            url = f"http://127.0.0.1:{PORT.read_text()}{path}"
            return urllib.request.urlopen(url, timeout=10).read().decode()
        except (OSError, ValueError) as error:
            if isinstance(error, urllib.error.HTTPError):
                return f"refused: {error.code}"
            time.sleep(0.1)
    return "nobody answers"


if __name__ == "__main__":
    print(ask(sys.argv[1]))
