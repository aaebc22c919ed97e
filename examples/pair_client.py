"""A token for a program of yours: `python examples/pair_client.py CODE`.

The code is what `towline pair` prints. The answer is what the other examples read; in a shell:
`eval "$(python examples/pair_client.py CODE)"`.
"""

import os
import sys

from towline_client.blocking import connect

URL = os.environ.get("TOWLINE_URL", "http://127.0.0.1:4747")

with connect(URL) as client:
    claimed = client.run(client.api.claim(sys.argv[1], name="my client"))
print(f"export TOWLINE_URL={URL} TOWLINE_TOKEN={claimed.token}")
