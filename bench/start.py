"""Start time, idle memory and import times, against an empty Python process."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5
ENVIRON = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
"""Ours, but modules are compiled once: a start that compiles measures the compiler."""


def run_time(code: str) -> float:
    """Median wall seconds of a Python process that runs this code."""
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=ENVIRON, check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def start_server() -> tuple[float, float]:
    """Seconds from the command to an answering server, and its memory when idle."""
    with tempfile.TemporaryDirectory() as home:
        environ = {**ENVIRON, "TOWLINE_HOME": home, "OPENAI_API_KEY": "sk-unused"}
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "towline", "up", "--background", "--model", "openai/none"],
            env=environ,
            cwd=home,
            stdout=subprocess.DEVNULL,
        )
        run_file = Path(home) / "run.json"
        while not (run_file.exists() and json.loads(run_file.read_text() or "{}")):
            time.sleep(0.005)
        took = time.perf_counter() - began
        time.sleep(1)
        memory = resident_mib(process.pid)
        process.terminate()
        process.wait()
    return took, memory


def main() -> None:
    empty = run_time("pass")
    print(f"empty Python            {empty * 1000:7.0f} ms")
    for name in ("towline_protocol", "towline_agent", "towline_client", "towline_server"):
        took = run_time(f"import {name}")
        print(f"import {name:16} {took * 1000:7.0f} ms   {took / empty:5.1f} x empty")
    probe = subprocess.run(
        [sys.executable, "-c", "import sys, towline_agent; print('aiohttp' in sys.modules)"],
        env=ENVIRON,
        check=True,
        capture_output=True,
        text=True,
    )
    print(f"towline_agent imports aiohttp at import time: {probe.stdout.strip()}")
    starts = [start_server() for _ in range(ROUNDS)]
    ready = statistics.median(took for took, _ in starts)
    memory = statistics.median(mib for _, mib in starts)
    print(f"`towline up` to ready   {ready * 1000:7.0f} ms   {ready / empty:5.1f} x empty")
    print(f"idle server             {memory:7.1f} MiB resident")


if __name__ == "__main__":
    main()
