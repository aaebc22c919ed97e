"""A token for a program of yours: `python examples/pair_client.py CODE`.

The code is what `towline pair` prints. The answer is what the other examples read; in a shell:
`eval "$(python examples/pair_client.py CODE)"`.
"""

import os
import sys

from towline_client import TowlineError
from towline_client.blocking import connect

URL = os.environ.get("TOWLINE_URL", "http://127.0.0.1:4747")
CODE = sys.argv[1] if sys.argv[1:] else sys.exit("Give the code that `towline pair` prints.")

try:
    with connect(URL) as client:
        claimed = client.run(client.api.claim(CODE, name="my client"))
except TowlineError as error:
    sys.exit(error.message)  # one line, such as that the code is used up
print(f"export TOWLINE_URL={URL} TOWLINE_TOKEN={claimed.token}")
