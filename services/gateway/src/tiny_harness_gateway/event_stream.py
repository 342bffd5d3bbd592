"""An HTTP answer that streams events and never holds anybody else up."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tiny_harness.errors import Unavailable

PING_INTERVAL_S: Final = 3.0
"""The official Python client gives a silent stream up after 5 s."""
SEND_TIMEOUT_S: Final = 20.0
"""A reader that takes nothing for so long is closed alone; it resumes from its cursor."""
RETRY_MS: Final = (500, 5_000)
"""Between these a client waits before it reconnects, so that not all come back at once."""

log = logging.getLogger(__name__)


class EventStream(Response):
    """Server-sent events made of finished chunks, with comment pings in between.

    Ends with the chunks, with the client, or when the client takes nothing any more.
    """

    def __init__(self, chunks: AsyncGenerator[bytes], on_end: Callable[[], None]) -> None:
        """`on_end` is called once, when the stream is over."""
        super().__init__(
            media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        del self.headers["content-length"]
        self._chunks = chunks
        self._on_end = on_end
        self._turn = asyncio.Lock()  # pings and chunks are whole each, against one another

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            is_alive = await self._run(receive, send)
        finally:
            try:
                await self._chunks.aclose()
            finally:
                self._on_end()
        if is_alive:
            with suppress(OSError, TimeoutError):
                await self._write(send, b"", more=False)

    async def _run(self, receive: Receive, send: Send) -> bool:
        """Stream until the first of chunks, pings and client ends; false if the client takes no more."""
        pump = asyncio.create_task(self._pump(send))
        tasks = [pump, asyncio.create_task(self._ping(send)), asyncio.create_task(_until_gone(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        return not any(isinstance(result, (OSError, TimeoutError)) for result in results)

    async def _pump(self, send: Send) -> None:
        retry = f"retry: {random.randint(*RETRY_MS)}\n".encode()
        try:
            async for chunk in self._chunks:
                await self._write(send, retry + chunk)
                retry = b""
        except TimeoutError:
            log.info("a reader took nothing for %s s; its stream is closed", SEND_TIMEOUT_S)
            raise
        except Unavailable as error:
            log.warning("a stream ends: %s", error.reason)
        except Exception:  # the answer has begun: it can only end, and the client resumes from its cursor
            log.exception("a stream broke")

    async def _ping(self, send: Send) -> None:
        while True:
            await asyncio.sleep(PING_INTERVAL_S)
            await self._write(send, b": ping\n\n")

    async def _write(self, send: Send, chunk: bytes, *, more: bool = True) -> None:
        async with self._turn, asyncio.timeout(SEND_TIMEOUT_S):
            await send({"type": "http.response.body", "body": chunk, "more_body": more})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
