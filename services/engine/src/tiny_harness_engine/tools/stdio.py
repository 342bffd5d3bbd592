"""MCP over a process's standard input and output.

Unlike the SDK's own transport it bounds what arrives, and knows whether a request has left.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final, Self

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from tiny_harness.background import in_background
from tiny_harness.plugins.servers import Launch
from tiny_harness_engine.tools.attempt import ATTEMPT, Attempt
from tiny_harness_engine.tools.child import Child, running
from tiny_harness_engine.tools.line import Lines
from tiny_harness_engine.tools.words import one_line

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
MAX_GARBAGE: Final = 1_000
"""Lines in a row that are no messages, before we take it that there will be none."""
MAX_LOG_LINE_BYTES: Final = 1_000
LOG_LINES_A_MINUTE: Final = 100
LAST_WORDS_CHARS: Final = 300
EXIT_S: Final = 0.5
"""From the end of its output to that of the process."""

Incoming = SessionMessage | Exception

log = logging.getLogger(__name__)


class StdioLink:
    """A connection to a server's process."""

    def __init__(self, name: str, child: Child, incoming: MemoryObjectSendStream[Incoming]) -> None:
        self._name = name
        self._child = child
        self._incoming = incoming
        self._outgoing = asyncio.Queue[tuple[bytes, Attempt | None]]()
        self._last_words = ""
        self.ended = asyncio.Event()
        self.reason = ""
        """Why it ended."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """The end of the stream; the process is ended by whoever started it."""

    async def aclose(self) -> None:
        """The same."""

    async def send(self, item: SessionMessage, /) -> None:
        """Queue a message. It never waits: a server that does not read must not hold up who gives up on it.

        Raises:
            ClosedResourceError: The connection has ended.
        """
        if self.ended.is_set():
            raise anyio.ClosedResourceError
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        self._outgoing.put_nowait((line, ATTEMPT.get()))

    async def write(self) -> None:
        """Write queued messages, until the process stops reading."""
        try:
            while True:
                line, attempt = await self._outgoing.get()
                if attempt is not None:
                    if attempt.is_abandoned and not attempt.is_sent:
                        continue  # neither the request nor the notice that it was given up
                    attempt.is_sent = True
                self._child.stdin.write(line)
                await self._child.stdin.drain()
        except (OSError, RuntimeError):  # a broken pipe; a transport that is closed
            await self._end("it closed its input")

    async def read(self) -> None:
        """Read messages, until there can be no more."""
        lines, garbage = Lines(MAX_MESSAGE_BYTES), 0
        try:
            while chunk := await self._child.stdout.read(64 * 1024):
                for line in lines.feed(chunk):
                    message = _message(line)
                    garbage = 0 if message is not None else garbage + 1
                    if message is not None:
                        await self._incoming.send(message)
                if lines.is_over:
                    return await self._end(f"it sent a message of more than {MAX_MESSAGE_BYTES} bytes")
                if garbage > MAX_GARBAGE:
                    return await self._end("what it writes is not MCP")
            await self._end(await self._exit())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._end("the connection was closed")

    async def _exit(self) -> str:
        """Find out how the process ended; it may only have closed its output."""
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_S):
                return await self._child.wait()
        return "it closed its output"

    async def listen(self) -> None:
        """Put what it says on standard error into the log, so much a minute."""
        lines, minute, said = Lines(MAX_LOG_LINE_BYTES, keeps_long=True), time.monotonic(), 0
        while chunk := await self._child.stderr.read(16 * 1024):
            for line in lines.feed(chunk):
                if time.monotonic() - minute >= 60:
                    if said > LOG_LINES_A_MINUTE:
                        log.info("tool server %s: %d more lines", self._name, said - LOG_LINES_A_MINUTE)
                    minute, said = time.monotonic(), 0
                words = one_line(line.decode(errors="replace"), MAX_LOG_LINE_BYTES)
                self._last_words = words or self._last_words
                said += 1
                if words and said <= LOG_LINES_A_MINUTE:
                    log.info("tool server %s: %s", self._name, words)

    async def _end(self, reason: str) -> None:
        if not self.ended.is_set():
            words = self._last_words[:LAST_WORDS_CHARS]
            self.reason = f"{reason}; its last words: {words}" if words else reason
            self.ended.set()
        await self._incoming.aclose()  # MCP's client then fails every call that runs


@asynccontextmanager
async def open_stdio(
    name: str, launch: Launch, command: str, environ: Mapping[str, str]
) -> AsyncGenerator[tuple[StdioLink, MemoryObjectReceiveStream[Incoming]]]:
    """Start a server's process, and end it with the block.

    Args:
        name: `<plugin>/<server>`.
        launch: How.
        command: The full path of what to run.
        environ: All of its environment.

    Raises:
        OSError: It cannot be started.
    """
    async with AsyncExitStack() as stack:
        child = await stack.enter_async_context(running((command, *launch.args), environ, launch.cwd))
        sender, receiver = anyio.create_memory_object_stream[Incoming](100)
        stack.callback(sender.close)
        stack.callback(receiver.close)
        link = StdioLink(name, child, sender)
        for work in (link.read(), link.write(), link.listen()):
            await stack.enter_async_context(in_background(work))
        yield link, receiver


def _message(line: bytes) -> SessionMessage | None:
    """Read a line; `None`: it is no message. Many servers greet, or log, on their standard output."""
    try:
        message: Any = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return None
    return SessionMessage(message)
