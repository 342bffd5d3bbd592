"""An HTTP answer that streams events and never holds anybody else up."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PING_INTERVAL_S: Final = 3.0
"""The official Python client gives a silent stream up after 5 s."""
SEND_TIMEOUT_S: Final = 20.0
"""A reader that takes nothing for so long is closed alone; it resumes from its cursor."""

log = logging.getLogger(__name__)


class EventStream(Response):
    """Server-sent events made of finished chunks, with comment pings in between.

    Ends with the chunks, with the client, or when the client takes nothing any more.
    """

    def __init__(self, chunks: AsyncGenerator[bytes]) -> None:
        super().__init__(
            media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        del self.headers["content-length"]
        self._chunks = chunks
        self._turn = asyncio.Lock()  # pings and chunks are whole each, against one another

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        tasks = [asyncio.create_task(work) for work in (self._pump(send), self._ping(send), _until_gone(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._chunks.aclose()
        with suppress(OSError, TimeoutError):
            await self._write(send, b"", more=False)

    async def _pump(self, send: Send) -> None:
        await self._write(send, f"retry: {random.randint(500, 5000)}\n\n".encode())
        try:
            async for chunk in self._chunks:
                await self._write(send, chunk)
        except TimeoutError:
            log.info("a reader took nothing for %s s; its stream is closed", SEND_TIMEOUT_S)
        except Exception:
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
