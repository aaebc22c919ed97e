"""Who serves does not pay for what examines and mends."""

import subprocess
import sys

_LOOK = """
import sys
import towline_server
loaded = [name for name in sys.modules if name.startswith("towline_server.doctor")]
towline_server.examine_store
sys.exit(loaded != [] or "towline_server.doctor.examine" not in sys.modules)
"""


def test_a_server_imports_nothing_of_the_doctor_until_it_is_asked_for() -> None:
    assert subprocess.run([sys.executable, "-c", _LOOK], check=False, timeout=60).returncode == 0
