"""Readers that are dead or rude, by real sockets against a server in a process of its own."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from flow.rude_lane import (
    HELLO,
    LIMIT_S,
    RudeLane,
    cut_line,
    has_networks,
    open_far_reader,
    open_rude_lane,
    pause,
    until,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="NO /proc, by which descriptors are seen."),
]

MARGIN_S: Final = 10.0
"""What a machine that does much else may be late by, in waiting; what is asserted is the limit."""
ROUNDS: Final = 1008
AT_ONCE: Final = 12
"""Readers at the same time; a session has places for 16."""


async def _drip(client: socket.socket) -> None:
    """Take a byte now and then."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while await loop.sock_recv(client, 1):
            await pause(1)


async def _take_all(client: socket.socket, mark: bytes) -> int:
    """How many bytes come up to a mark."""
    loop = asyncio.get_running_loop()
    size, rest = 0, b""
    while mark not in rest:
        piece = await loop.sock_recv(client, 1 << 18)
        assert piece, "the server cut a reader that takes all"
        size += len(piece)
        rest = rest[-len(mark) :] + piece
    return size


@pytest.mark.rules("C3.8", "S07")
async def test_readers_that_take_nothing_are_gone_with_their_descriptors(tmp_path: Path) -> None:
    async with open_rude_lane(tmp_path) as lane, contextlib.AsyncExitStack() as ending:
        session = lane.request()
        requests = {
            "reads nothing": session,
            "reads a byte now and then": session,
            "is half closed and reads nothing": session,
            "reads nothing of session and feed": lane.request(
                "/api/events", f"session={lane.session}"
            ),
        }
        clients = {name: await lane.connect(request) for name, request in requests.items()}
        for client in clients.values():
            ending.callback(client.close)
        good = await lane.connect(session, small=False)
        ending.callback(good.close)
        ports = {name: client.getsockname()[1] for name, client in clients.items()}
        assert all(map(lane.holds, ports.values()))
        taking = asyncio.create_task(_take_all(good, b"turn_completed"))
        dripping = asyncio.create_task(_drip(clients["reads a byte now and then"]))
        await lane.order("flood")
        clients["is half closed and reads nothing"].shutdown(socket.SHUT_WR)
        held = await lane.seconds_held(ports, LIMIT_S + MARGIN_S)
        dripping.cancel()
        await asyncio.wait({dripping})
        assert max(held.values()) < LIMIT_S, held
        async with asyncio.timeout(LIMIT_S):
            assert await taking > 1_500_000  # its neighbours cost it nothing
        assert (await lane.order())["readers"] == 1
        assert lane.holds(good.getsockname()[1])


@pytest.mark.rules("C3.8", "S07")
async def test_a_reader_whose_cable_is_cut_is_gone_though_nothing_happens(tmp_path: Path) -> None:
    if not await has_networks():
        pytest.skip("NO NETWORK NAMESPACES for this user: a cable cannot be cut here.")
    async with (
        open_rude_lane(tmp_path, apart=True) as lane,
        open_far_reader(lane, lane.request()) as port,
    ):
        assert lane.holds(port)
        assert (await lane.order())["readers"] == 1
        await cut_line(lane)
        held = await lane.seconds_held({"cut off": port}, LIMIT_S + MARGIN_S)
        assert held["cut off"] < LIMIT_S, held
        assert (await lane.order())["readers"] == 0


@pytest.mark.rules("C3.8")
async def test_a_half_closed_reader_is_gone_at_once(tmp_path: Path) -> None:
    async with open_rude_lane(tmp_path) as lane:
        client = await lane.connect(lane.request())
        with client:
            client.shutdown(socket.SHUT_WR)
            await until(lambda: not lane.holds(client.getsockname()[1]))
        assert (await lane.order())["readers"] == 0


@pytest.mark.rules("C3.9", "S08")
async def test_a_reader_that_comes_again_and_again_and_never_leaves_holds_one_place(
    tmp_path: Path,
) -> None:
    async with open_rude_lane(tmp_path) as lane, contextlib.AsyncExitStack() as ending:
        before = await lane.order()
        clients: list[socket.socket] = []
        for _ in range(200):
            client = await lane.connect(lane.request(query="reader=phone"))
            ending.callback(client.close)
            clients.append(client)
        after = await lane.order()
        assert after["readers"] == 1
        old = {f"{client.getsockname()[1]}": client.getsockname()[1] for client in clients[:-1]}
        held = await lane.seconds_held(old, LIMIT_S + MARGIN_S)
        assert max(held.values()) < LIMIT_S, max(held.values())
        after = await lane.order()
        assert after["files"] == before["files"] + 1
        assert lane.holds(clients[-1].getsockname()[1])


@pytest.mark.rules("C3.9", "S08", "C6")
async def test_nameless_readers_beyond_the_limit_are_refused_and_leave_nothing(
    tmp_path: Path,
) -> None:
    async with open_rude_lane(tmp_path) as lane:
        before = await lane.order()
        async with contextlib.AsyncExitStack() as ending:
            for _ in range(16):
                ending.callback((await lane.connect(lane.request())).close)
            for _ in range(100):
                answer = await _refused(lane)
                assert answer.startswith(b"HTTP/1.1 429 ")
                assert b"reader_limit" in answer
            assert (await lane.order())["readers"] == 16
        await _back_to(lane, before)


async def _back_to(lane: RudeLane, before: dict[str, int]) -> None:
    """Wait until the server holds no more than before; raises `TimeoutError` if it goes on to."""
    kept = ("readers", "feeds", "tasks", "files")
    async with asyncio.timeout(LIMIT_S):
        now = await lane.order()
        while any(now[name] > before[name] for name in kept):
            now = await lane.order()


async def _refused(lane: RudeLane) -> bytes:
    """What a reader hears that is not let in; it leaves without a word."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setblocking(False)
        async with asyncio.timeout(LIMIT_S):
            await loop.sock_connect(client, lane.address)
            await loop.sock_sendall(client, lane.request())
            data = b""
            while b"}" not in data:
                data += await loop.sock_recv(client, 65536)
                assert HELLO not in data
        return data


@asynccontextmanager
async def _visit(lane: RudeLane, request: bytes) -> AsyncGenerator[None]:
    client = await lane.connect(request, small=False)
    with client:
        yield


@pytest.mark.rules("C3.9", "S08")
async def test_a_thousand_readers_of_all_kinds_that_come_and_go_leave_nothing(
    tmp_path: Path,
) -> None:
    async with open_rude_lane(tmp_path) as lane:
        kinds = (
            lane.request(),
            lane.request("/api/events"),
            lane.request("/api/events", f"session={lane.session}"),
        )

        async def visit(rounds: int) -> dict[str, int]:
            """Come and go; gives what the server holds when it holds no more than before."""
            for _ in range(rounds // AT_ONCE):
                async with contextlib.AsyncExitStack() as guests:
                    for place in range(AT_ONCE):
                        request = kinds[place % len(kinds)]
                        await guests.enter_async_context(_visit(lane, request))
            await _back_to(lane, idle)
            return await lane.order()

        idle = await lane.order()
        before = await visit(ROUNDS // 2)  # until pools and caches have their size
        after = await visit(ROUNDS)
        assert after["pages"] < before["pages"] * 1.03, (before, after)
