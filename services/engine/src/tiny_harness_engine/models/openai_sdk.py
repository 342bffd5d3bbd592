"""The only file that imports the SDK of OpenAI: 1.6 s, so it is imported when the first question is asked.

Retries are off here; they are the workflow's.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import Any, Final
from urllib.parse import urlsplit

import openai

from tiny_harness.errors import ModelError
from tiny_harness.settings import OpenAISettings
from tiny_harness_engine.models.openai_reading import StreamError
from tiny_harness_engine.models.reason import GARBAGE

OPENAI_URL: Final = "https://api.openai.com/v1"
MAX_CONNECT_S: Final = 10.0
"""A server that answers at all accepts a connection in less."""
NO_KEY: Final = "none"
"""The SDK wants a key; without one of ours the header is left out of each request."""
PASSING_STATUSES: Final = frozenset({408, 409, 429})
"""Refusals that another attempt can help against, beside all of 500 and above."""
NO_MONEY: Final = "insufficient_quota"
"""Comes with 429, but stays."""


class OpenAISession:
    """An SDK client with our errors."""

    def __init__(self, settings: OpenAISettings, key: str | None) -> None:
        self._url = settings.base_url or OPENAI_URL
        self._timeout_s = settings.timeout
        self._headers: dict[str, Any] = {} if key else {"Authorization": openai.Omit()}
        self._client = openai.AsyncOpenAI(
            api_key=key or NO_KEY,
            base_url=self._url,
            timeout=openai.Timeout(settings.timeout, connect=min(settings.timeout, MAX_CONNECT_S)),
            max_retries=0,
        )

    async def events(self, path: str, body: dict[str, Any]) -> AsyncGenerator[object]:
        """Ask, and give the events of the answer as they come; ends the request when it is closed.

        Args:
            path: The SDK's resource, such as `chat.completions`.
            body: The request.

        Raises:
            ModelError: The provider failed. Its words are not bounded here and may hold the key.
        """
        create: Any = attrgetter(path)(self._client).create
        async with self._our_errors(), await create(**body, extra_headers=self._headers) as stream:
            async for event in stream:
                yield event

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()

    @asynccontextmanager
    async def _our_errors(self) -> AsyncGenerator[None]:
        try:
            yield
        except openai.APIError as error:
            raise self._translate(error) from error
        except ValueError as error:  # the SDK lets JSON and Unicode errors of a stream through
            raise ModelError(GARBAGE, transient=True) from error

    def _translate(self, error: openai.APIError) -> ModelError:
        match error:
            case openai.APITimeoutError():
                return ModelError(f"it was silent for {self._timeout_s:g} s", transient=True)
            case openai.APIConnectionError():
                cause = type(error.__cause__ or error).__name__
                return ModelError(f"the connection to {urlsplit(self._url).hostname} failed ({cause})", transient=True)
            case openai.APIStatusError():
                return ModelError(f"status {error.status_code}: {_words(error)}", _passes(error))
            case openai.APIResponseValidationError():
                return ModelError(GARBAGE, transient=True)
            case _:
                return StreamError(code=error.code, message=error.message).as_model_error()


def _passes(error: openai.APIStatusError) -> bool:
    return (error.status_code >= 500 or error.status_code in PASSING_STATUSES) and error.code != NO_MONEY


def _words(error: openai.APIStatusError) -> str:
    """Find the provider's sentence in an error's body."""
    body: Any = error.body
    said = body.get("message") if isinstance(body, dict) else None
    return said if isinstance(said, str) else error.message
