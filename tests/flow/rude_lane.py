"""A server in a process of its own and the wires to it, each seen from the server's kernel.

A descriptor counts as held when the server's process has the very socket open: an end that the
kernel only keeps to send what is left belongs to nobody and costs nothing.
"""

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

__all__ = [
    "HELLO",
    "LIMIT_S",
    "RudeLane",
    "cut_line",
    "has_networks",
    "open_far_reader",
    "open_rude_lane",
    "pause",
    "until",
]

LIMIT_S: Final = 30.0
"""What the contract gives a dead peer (C3.8)."""
PATIENCE_S: Final = 60.0
HELLO: Final = b"event: hello"
"""What stands at the begin of each stream."""

_SERVER: Final = Path(__file__).with_name("rude_server.py")
_SMALL: Final = 4096  # the least that a kernel gives a reader
_NEAR: Final = "10.79.0.1"
_FAR: Final = "10.79.0.2"
_NOBODY: Final = "02:00:00:00:00:99"  # a station that is not there
_NEAR_END: Final = f"""
ip link set lo up && ip link add near type veth peer name far &&
ip addr add {_NEAR}/24 dev near && ip link set near up && exec "$@"
"""
_FAR_END: Final = f"ip link set lo up && ip addr add {_FAR}/24 dev far && ip link set far up"
_FAR_READER: Final = """
import socket, sys
request = bytes.fromhex(sys.stdin.readline())
client = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
client.sendall(request)
data = b""
while b"event: hello" not in data:
    data += client.recv(65536)
print(client.getsockname()[1], flush=True)
sys.stdin.read()
"""


class RudeLane:
    """A server, and what its process holds."""

    def __init__(self, process: asyncio.subprocess.Process, ready: dict[str, Any]) -> None:
        self._process = process
        self.pid: int = ready["pid"]
        """Its process."""
        self.address: tuple[str, int] = (ready["host"], ready["port"])
        """Where it listens."""
        self._ready = ready

    async def order(self, word: str = "count") -> dict[str, int]:
        """Have it do something; gives what it holds then."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(word.encode() + b"\n")
        async with asyncio.timeout(PATIENCE_S):
            return msgspec.json.decode(await self._process.stdout.readline())

    def request(self, path: str | None = None, query: str = "") -> bytes:
        """A whole request for a stream; of its session, if no path is given."""
        path = path or f"/api/sessions/{self._ready['session']}/events"
        return (
            f"GET {path}?{query} HTTP/1.1\r\nhost: {self.address[0]}\r\n"
            f"authorization: Bearer {self._ready['token']}\r\n\r\n"
        ).encode()

    @property
    def session(self) -> str:
        """The one session."""
        return self._ready["session"]

    async def connect(self, request: bytes, *, small: bool = True) -> socket.socket:
        """A reader that has been greeted; the caller closes it."""
        loop = asyncio.get_running_loop()
        client = socket.socket()
        client.setblocking(False)
        if small:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
        async with asyncio.timeout(PATIENCE_S):
            await loop.sock_connect(client, self.address)
            await loop.sock_sendall(client, request)
            data = b""
            while HELLO not in data:
                piece = await loop.sock_recv(client, 1024)
                assert piece, data
                data += piece
        return client

    def holds(self, port: int) -> bool:
        """Whether the server has a descriptor for the connection from this port."""
        inode = self._inode(port)
        return inode is not None and f"socket:[{inode}]" in self._descriptors()

    def _descriptors(self) -> set[str]:
        found: set[str] = set()
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                found.add(str(entry.readlink()))
        return found

    def _inode(self, port: int) -> str | None:
        here, there = f":{self.address[1]:04X}", f":{port:04X}"
        for line in Path(f"/proc/{self.pid}/net/tcp").read_text().splitlines():
            fields = line.split()
            if fields[1].endswith(here) and fields[2].endswith(there):
                return fields[9]
        return None

    async def seconds_held(self, ports: dict[str, int], limit_s: float) -> dict[str, float]:
        """After how many seconds the server let go of each; at most a little over the limit."""
        began = time.monotonic()
        held: dict[str, float] = {}
        while (now := time.monotonic() - began) < limit_s and len(held) < len(ports):
            for name, port in ports.items():
                if name not in held and not self.holds(port):
                    held[name] = now
            await pause(0.1)
        return {name: held.get(name, float("inf")) for name in ports}


@asynccontextmanager
async def open_rude_lane(folder: Path, *, apart: bool = False) -> AsyncGenerator[RudeLane]:
    """A server; with `apart` it stands in a network of its own, at one end of a cable."""
    command = [sys.executable, str(_SERVER), str(folder), _NEAR if apart else "127.0.0.1"]
    if apart:
        own = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", _NEAR_END, "sh"]
        command = [*own, *command]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            line = await process.stdout.readline()
        assert line, "the server did not start"
        yield RudeLane(process, msgspec.json.decode(line))
    finally:
        process.stdin.close()
        await _end(process)


@asynccontextmanager
async def open_far_reader(lane: RudeLane, request: bytes) -> AsyncGenerator[int]:
    """A reader at the other end of the cable that takes all it gets; gives its port."""
    pipe = asyncio.subprocess.PIPE
    host, port = lane.address
    far = await asyncio.create_subprocess_exec(
        *_inside(lane.pid), "unshare", "--net", sys.executable, "-c", _FAR_READER, host, str(port),
        stdin=pipe, stdout=pipe,
    )  # fmt: skip
    assert far.stdin is not None
    assert far.stdout is not None
    try:
        await until(lambda: _network(far.pid) not in {_network(lane.pid), _network(os.getpid())})
        await _run(*_inside(lane.pid), "ip", "link", "set", "far", "netns", str(far.pid))
        await _run(*_inside(far.pid), "sh", "-c", _FAR_END)
        far.stdin.write(request.hex().encode() + b"\n")
        async with asyncio.timeout(PATIENCE_S):
            yield int(await far.stdout.readline())
    finally:
        far.stdin.close()
        await _end(far)


async def cut_line(lane: RudeLane) -> None:
    """From now on what the server sends reaches nobody, and nothing says so."""
    gone = ["lladdr", _NOBODY, "dev", "near", "nud", "permanent"]
    await _run(*_inside(lane.pid), "ip", "neigh", "replace", _FAR, *gone)


async def pause(seconds: float) -> None:
    """Let time pass: what is watched here is the clock and the kernel, which set no event."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


async def until(met: Callable[[], bool]) -> None:
    """Wait for a state of the kernel, which sets no event."""
    async with asyncio.timeout(PATIENCE_S):
        while not met():
            await pause(0.01)


def _network(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def _inside(pid: int) -> Sequence[str]:
    return ("nsenter", "--target", str(pid), "--user", "--net", "--preserve-credentials")


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode == 0, (command, said)


async def _end(process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        raise


async def has_networks() -> bool:
    """Whether this machine lets us make networks of our own."""
    if not all(shutil.which(name) for name in ("unshare", "nsenter", "ip")):
        return False
    process = await asyncio.create_subprocess_exec(
        "unshare", "--user", "--map-root-user", "--net", "sh", "-c",
        "ip link add near type veth peer name far",
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    return await process.wait() == 0
