"""OpenAI, or any server that speaks its API at `[openai] base_url`. Importing this does not import the SDK."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from tiny_harness.errors import ConfigError, ModelError
from tiny_harness.settings import OpenAISettings, Settings
from tiny_harness_engine.models import openai_chat, openai_responses
from tiny_harness_engine.models.openai_reading import Api, Reading
from tiny_harness_engine.models.port import ModelReply, ModelRequest
from tiny_harness_engine.models.reason import GARBAGE, plain_reason

if TYPE_CHECKING:
    from tiny_harness_engine.models.openai_sdk import OpenAISession

KEY_VARIABLE: Final = "OPENAI_API_KEY"
APIS: Final[Mapping[str, Api]] = {
    "responses": cast(Api, openai_responses),
    "chat_completions": cast(Api, openai_chat),
}
TRAILER_S: Final = 2.0
"""How long a stream may stay open after a whole answer: for the usage, and so that its connection can be used again."""


def open_openai(settings: Settings, environ: Mapping[str, str]) -> "OpenAIModel":
    """Check what can be checked without the network.

    Raises:
        ConfigError: No key, and no `base_url` of a server that may need none; or a bad key or address.
    """
    key = environ.get(KEY_VARIABLE, "").strip()
    if not key and settings.openai.base_url is None:
        raise ConfigError(
            f"the variable {KEY_VARIABLE} is not set; set it, or set base_url in section [openai] to a server that "
            "needs no key, or try `tiny-harness demo`"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the variable {KEY_VARIABLE} holds characters that no key has")
    if settings.openai.base_url is not None:
        _check_url(settings.openai.base_url)
    return OpenAIModel(settings.openai, key or None)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        is_good = False
    if not is_good:
        raise ConfigError("is no http:// or https:// address", key="openai.base_url")


class OpenAIModel:
    """Answers through the SDK, which it imports with the first question."""

    def __init__(self, settings: OpenAISettings, key: str | None) -> None:
        self._settings = settings
        self._key = key
        self._api = APIS[settings.api]
        self._opening = asyncio.Lock()
        self._session: OpenAISession | None = None

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """Answer a request."""
        reading = self._api.open_reading()
        try:
            await self._read(request, reading, on_text)
            return reading.reply()
        except ModelError as error:
            raise ModelError(plain_reason(error.reason, self._key), error.transient) from error

    async def close(self) -> None:
        """Close connections."""
        if self._session is not None:
            await self._session.close()

    async def _read(self, request: ModelRequest, reading: Reading, on_text: Callable[[str], None]) -> None:
        """Read the stream to its end; what goes wrong after a whole answer does not matter."""
        session = await self._open()
        events = session.events(self._api.PATH, self._api.body(self._settings, request))
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

    async def _open(self) -> "OpenAISession":
        async with self._opening:  # against a second first question, which would open a second client
            if self._session is None:
                sdk = await asyncio.to_thread(import_module, "tiny_harness_engine.models.openai_sdk")
                opened: OpenAISession = sdk.OpenAISession(self._settings, self._key)
                self._session = opened
            return self._session


def _take(reading: Reading, event: object) -> str:
    try:
        return reading.take(event)
    except ValueError as error:
        raise ModelError(GARBAGE, transient=True) from error
