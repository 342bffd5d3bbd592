"""A reader that takes nothing holds nobody up: neither the other readers nor the harness."""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx

from tests.served import Served, http_client
from tests.wire import Frame, Frames, call, send, subscribed, user_message
from tiny_harness.ext.stream import KEY

READERS = 50
TURNS = 5
PROMPT_S = 5.0
"""What a turn may take until all have it, on a busy machine. A reader that held others up would do so for 20 s."""
WEIGHT_CHARS = 700_000
MAX_WEIGHTS = 30
PATIENCE_S = 90


@asynccontextmanager
async def stalled_reader(served: Served, task_id: str) -> AsyncGenerator[socket.socket]:
    """Subscribe to a task from its beginning and never read a byte."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", served.port))
        headers = [
            f"GET /rest/tasks/{task_id}:subscribe HTTP/1.1",
            f"Host: 127.0.0.1:{served.port}",
            f"Authorization: Bearer {served.token}",
            "A2A-Version: 1.0",
            "Last-Event-ID: 0",
        ]
        await asyncio.get_running_loop().sock_sendall(sock, "\r\n".join([*headers, "", ""]).encode())
        yield sock


def unsent_bytes(reader: socket.socket) -> int:
    """How much the kernel holds that the harness has written for a reader and the reader has not taken."""
    ours = f"{reader.getsockname()[1]:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[2].endswith(f":{ours}"):
            return int(fields[4].partition(":")[0], 16)
    return 0


async def clog(ann: httpx.AsyncClient, task_id: str, reader: socket.socket) -> int:
    """Send heavy messages until the harness can write no more to a reader; how many characters they have."""
    held = -1
    for count in range(1, MAX_WEIGHTS + 1):
        await send(ann, user_message("a weight of " + "x" * WEIGHT_CHARS, task_id))
        before, held = held, unsent_bytes(reader)
        if before == held > 0:
            return count * WEIGHT_CHARS
    raise AssertionError("the reader took everything")


async def head_of(ann: httpx.AsyncClient, task_id: str) -> int:
    answer = await call(ann, "GetTask", id=task_id, historyLength=0)
    return int(answer["result"]["metadata"][KEY]["seq"])


async def turn_of(frames: Frames) -> list[Frame]:
    return [await anext(frames), await anext(frames)]


async def test_a_stalled_reader_among_50_holds_nobody_up(served: Served) -> None:
    async with http_client(served) as ann, AsyncExitStack() as stack, asyncio.timeout(PATIENCE_S):
        task_id = (await send(ann, user_message("hello")))["id"]
        stalled = await stack.enter_async_context(stalled_reader(served, task_id))
        weight = await clog(ann, task_id, stalled)
        head = await head_of(ann, task_id)
        many = await stack.enter_async_context(http_client(served))
        readers = [await stack.enter_async_context(subscribed(many, task_id, head)) for _ in range(READERS - 1)]
        for turn in range(TURNS):
            started = time.monotonic()
            text = f"turn {turn}"
            received = asyncio.gather(*map(turn_of, readers))
            task = await send(ann, user_message(text, task_id))
            seen = await received
            assert time.monotonic() - started < PROMPT_S
            assert all(frames == seen[0] for frames in seen)
            assert [frame.seq for frame in seen[0]] == [head + 1, head + 2]
            assert seen[0][1].words == task["status"]["message"]["parts"][0]["text"]
            assert seen[0][1].words.endswith(text)
            head += 2
        # It did stall: a whole message and more still wait inside the harness.
        assert 0 < unsent_bytes(stalled) < weight - WEIGHT_CHARS
        # Another conversation does not notice either.
        started = time.monotonic()
        await send(ann, user_message("somebody else"))
        assert time.monotonic() - started < PROMPT_S


async def test_a_reader_that_stalled_gets_everything_when_it_comes_back(served: Served) -> None:
    async with http_client(served) as ann, asyncio.timeout(PATIENCE_S):
        task_id = (await send(ann, user_message("hello")))["id"]
        async with stalled_reader(served, task_id) as stalled:
            await clog(ann, task_id, stalled)
        head = await head_of(ann, task_id)
        await call(ann, "CancelTask", id=task_id)
        async with subscribed(ann, task_id, 0) as frames:
            assert [frame.seq async for frame in frames] == list(range(1, head + 2))
