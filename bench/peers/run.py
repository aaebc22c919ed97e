"""Measures one case of one peer in this process and prints it: `run.py PEER CASE URL`.

The figure is CPU seconds of one repeat, the median of some. For the case `start` it is all that
this process has used: start of Python, import, agent, one short run.
"""

import asyncio
import gc
import importlib
import sys
import time

from work import CASES, Case, Peer

MODULES = {
    "us": "by_towline",
    "bare": "by_hand",
    "openai": "by_openai",
    "agents": "by_agents",
    "pydantic": "by_pydantic",
}
WARM_UPS = 2
BUDGET_S = 1.0
"""CPU seconds after which no further repeat begins: some peers are slow."""


async def work(peer: Peer, case: Case, histories: list[object]) -> None:
    texts = await asyncio.gather(*(peer.run(history) for history in histories))
    for text in texts:
        if text != "word " * case.words:
            raise SystemExit(f"A run ended with {text[:60]!r}: the work was not done.")


def histories(peer: Peer, case: Case) -> list[object]:
    return [peer.history() if case.long else [] for _ in range(case.at_once)]


async def once(module: str, case: Case, url: str) -> float:
    peer: Peer = importlib.import_module(module).make(url, case.model)
    await work(peer, case, [[]])
    await peer.aclose()
    return time.process_time()


async def often(module: str, case: Case, url: str) -> float:
    make = importlib.import_module(module).make
    warm: Peer = make(url, case.warm or case.model)
    for _ in range(WARM_UPS if case.at_once == 1 else 1):
        await work(warm, case, histories(warm, case))
    peer = warm
    if case.warm:
        await warm.aclose()
        peer = make(url, case.model)
    gc.collect()
    took_s: list[float] = []
    while len(took_s) < case.repeats and sum(took_s) < BUDGET_S:
        ready = histories(peer, case)
        began = time.process_time()
        await work(peer, case, ready)
        took_s.append(time.process_time() - began)
    await peer.aclose()
    return sorted(took_s)[len(took_s) // 2]


def main() -> None:
    peer, name, url = sys.argv[1:]
    measure = once if name == "start" else often
    print(asyncio.run(measure(MODULES[peer], CASES[name], url)))


if __name__ == "__main__":
    main()
