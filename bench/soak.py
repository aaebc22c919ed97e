"""A bounded soak: 200 people who talk, stop, decide, go and come back, on a real server.

Each has a session of a few turns, deletes it and begins another, so a server that keeps nothing
it need not stays as it is. What its process holds is sampled all the while; the verdict is over the
slope after the warm-up, and over what is left when all have gone.
"""

import argparse
import asyncio
import socket
import statistics
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

from server.process import ask, taking_orders
from server.soak_client import Crowd
from server.soak_server import run_soak_server

SAMPLE_S: Final = 10.0
WARM: Final = 0.3
"""The part of the time until pools, caches and SQLite's pages have their size."""
LEAST: Final = 4
"""Samples that a slope is made of."""
SLOPE_GOAL: Final = 0.05
"""How much of its memory the server may gain over the time that is looked at."""
LEAVE_S: Final = 20.0
"""In which all that belongs to those who have gone must be given back."""


class Sample(NamedTuple):
    """What the server's process holds."""

    at_s: float
    rss_mib: float
    tasks: int
    files: int
    sessions: int
    readers: int


def sample(pipe: Connection, began: float) -> Sample:
    found = Sample(time.monotonic() - began, *ask(pipe, "count"))
    cells = (f"{found.at_s:6.0f}", f"{found.rss_mib:9.1f}", *(f"{n:9}" for n in found[2:]))
    print("".join(cells), flush=True)
    return found


def slope(samples: list[Sample]) -> float:
    """How much of its memory the server gains over these samples, by a line through all."""
    times, sizes = [one.at_s for one in samples], [one.rss_mib for one in samples]
    per_s, begin = statistics.linear_regression(times, sizes)
    at_first = begin + per_s * times[0]
    return per_s * (times[-1] - times[0]) / at_first


async def watch(pipe: Connection, crowd: Crowd, seconds: float) -> tuple[list[Sample], Sample]:
    """Samples while they are there, and one when they have gone."""
    began = time.monotonic()
    samples: list[Sample] = []
    living = asyncio.create_task(crowd.run(seconds))
    loop = asyncio.get_running_loop()
    while not living.done():
        await asyncio.wait({living}, timeout=SAMPLE_S)
        if not living.done():
            samples.append(await loop.run_in_executor(None, sample, pipe, began))
    await living
    print("all have gone:")
    until = time.monotonic() + LEAVE_S
    while True:
        left = await loop.run_in_executor(None, sample, pipe, began)
        if (left.sessions == 0 and left.readers == 0) or time.monotonic() > until:
            return [one for one in samples if one.at_s <= seconds], left
        await asyncio.sleep(2)


def judge(before: Sample, samples: list[Sample], left: Sample, crowd: Crowd) -> bool:
    """Print the verdict."""
    print(f"\nturns: {dict(sorted(crowd.done.items()))}")
    warm = samples[int(len(samples) * WARM) :]
    if len(warm) < LEAST:
        raise SystemExit(f"{len(warm)} samples after the warm-up say nothing: run it longer.")
    gain = slope(warm)
    failed = sum(count for name, count in crowd.done.items() if name.startswith("FAILED"))
    verdicts = {
        f"memory gains {gain:+.1%} over {len(warm)} samples after the warm-up, at most "
        f"{SLOPE_GOAL:.0%}": gain <= SLOPE_GOAL,
        f"tasks {before.tasks} before, {left.tasks} after": left.tasks <= before.tasks,
        f"descriptors {before.files} before, {left.files} after": left.files <= before.files,
        f"sessions in memory afterwards: {left.sessions}": left.sessions == 0,
        f"readers afterwards: {left.readers}": left.readers == 0,
        f"what failed: {failed}": failed == 0,
    }
    for words, met in verdicts.items():
        print(f"{words}: {'met' if met else 'MISSED'}")
    return all(verdicts.values())


def main() -> None:
    parser = argparse.ArgumentParser(description="A bounded soak of the server.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    parser.add_argument("--sessions", type=int, default=200, help="how many people (200)")
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    with (
        tempfile.TemporaryDirectory() as folder,
        listener,
        taking_orders(run_soak_server, listener, Path(folder)) as pipe,
    ):
        token = ask(pipe)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        print(f"{options.sessions} sessions, {options.minutes:g} minutes")
        print("     s       MiB    tasks    files sessions  readers")
        before = sample(pipe, time.monotonic())
        crowd = Crowd(url, token, options.sessions)
        samples, left = asyncio.run(watch(pipe, crowd, options.minutes * 60))
    raise SystemExit(0 if judge(before, samples, left, crowd) else 1)


if __name__ == "__main__":
    main()
