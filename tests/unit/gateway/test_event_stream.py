"""An answer that streams events, when what it streams from goes away."""

import asyncio
import logging
from collections.abc import AsyncGenerator

import pytest
from starlette.types import Message

from tiny_harness.errors import Unavailable
from tiny_harness_gateway.event_stream import EventStream

PATIENCE_S = 30


async def streamed(error: Exception) -> list[Message]:
    """Stream one event, then fail; what a client is sent."""
    sent: list[Message] = []
    is_released = asyncio.Event()

    async def chunks() -> AsyncGenerator[bytes]:
        yield b"data: 1\n\n"
        raise error

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    async with asyncio.timeout(PATIENCE_S):
        await EventStream(chunks(), is_released.set)({"type": "http"}, receive, send)
    assert is_released.is_set()
    return sent


@pytest.mark.parametrize(
    ("error", "level"),
    [(Unavailable("the store cannot answer now"), logging.WARNING), (RuntimeError("a bug"), logging.ERROR)],
)
async def test_a_stream_that_breaks_ends_cleanly_and_only_a_bug_is_an_error(
    error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    sent = await streamed(error)
    assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}
    assert b"data: 1" in sent[1]["body"]
    [record] = [record for record in caplog.records if record.name == "tiny_harness_gateway.event_stream"]
    assert record.levelno == level
    assert (record.exc_info is None) == isinstance(error, Unavailable)
