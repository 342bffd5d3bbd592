"""A model that is asked over the network through its provider's SDK. Importing this imports no SDK."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, Protocol

from tiny_harness.errors import ModelError
from tiny_harness.settings import HostedModels
from tiny_harness_engine.models.ordering import in_order
from tiny_harness_engine.models.port import ModelReply, ModelRequest, ToolCall
from tiny_harness_engine.models.reading import Api, Reading
from tiny_harness_engine.models.reason import GARBAGE, plain_reason
from tiny_harness_engine.models.sendable import sendable
from tiny_harness_engine.models.wire_names import WireNames

TRAILER_S: Final = 2.0
"""How long a stream may stay open after a whole answer: for the usage, and so that its connection can be used again."""


class Session(Protocol):
    """An SDK's client, behind our errors."""

    def events(self, path: str, body: dict[str, Any]) -> AsyncGenerator[object]:
        """Ask, and give the events of the answer as they come; ends the request when it is closed.

        Raises:
            ModelError: The provider failed. Its words are not bounded here and may hold the key.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class HostedModel:
    """Answers through an SDK, which it imports with the first question."""

    def __init__(self, settings: HostedModels, key: str | None, api: Api, sdk: str) -> None:
        """Open nothing yet.

        Args:
            settings: The provider's section.
            key: `None`: it is asked without one.
            api: What is spoken.
            sdk: Names the session's class as `module:Class`; it is made from (settings, key).
        """
        self._settings = settings
        self._key = key
        self._api = api
        self._sdk = sdk
        self._opening = asyncio.Lock()
        self._session: Session | None = None

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """Answer a request."""
        names = WireNames(request)
        reading = self._api.open_reading()
        body = sendable(self._api.body(replace(request, messages=in_order(request.messages)), names))
        try:
            await self._read(body, reading, on_text)
            reply = reading.reply()
        except ModelError as error:
            raise replace(error, reason=plain_reason(error.reason, self._key)) from error
        return replace(reply, tool_calls=_calls(reply, request, names))

    async def close(self) -> None:
        """Close connections."""
        if self._session is not None:
            await self._session.close()

    async def _read(self, body: dict[str, Any], reading: Reading, on_text: Callable[[str], None]) -> None:
        """Read the stream to its end; what goes wrong after a whole answer does not matter."""
        session = await self._open()
        events = session.events(self._api.path, body)
        try:
            async with asyncio.timeout(None) as limit, aclosing(events):
                async for event in events:
                    if piece := _take(reading, event):
                        on_text(piece)
                    if reading.is_complete and limit.when() is None:
                        limit.reschedule(asyncio.get_running_loop().time() + TRAILER_S)
        except (ModelError, TimeoutError):
            if not reading.is_complete:
                raise

    async def _open(self) -> Session:
        async with self._opening:  # against a second first question, which would open a second client
            if self._session is None:
                module, _, kind = self._sdk.partition(":")
                sdk = await asyncio.to_thread(import_module, module)
                opened: Session = getattr(sdk, kind)(self._settings, self._key)
                self._session = opened
            return self._session


def _take(reading: Reading, event: object) -> str:
    try:
        return reading.take(event)
    except (ValueError, RecursionError) as error:
        raise ModelError(GARBAGE, transient=True) from error


def _calls(reply: ModelReply, request: ModelRequest, names: WireNames) -> tuple[ToolCall, ...]:
    """Give the calls by our names, each with an id of its own: some servers give none, or one for all."""
    times = Counter(call.call_id for call in reply.tool_calls)
    return tuple(
        replace(
            call,
            name=names.ours(call.name),
            call_id=call.call_id if call.call_id and times[call.call_id] == 1 else _made_up(request, number),
            arguments=call.arguments or "{}",
        )
        for number, call in enumerate(reply.tool_calls, start=1)
    )


def _made_up(request: ModelRequest, number: int) -> str:
    return f"call-{request.turn}-{request.step}-{number}"
