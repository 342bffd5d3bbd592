"""What the SDKs of both vendors have in common: they are made by one generator. Imported by them only.

Retries are off here; they are the workflow's.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from tiny_harness.errors import ModelError
from tiny_harness.settings import HostedModels
from tiny_harness_engine.models.failure import read_failure
from tiny_harness_engine.models.reason import GARBAGE

MAX_CONNECT_S: Final = 10.0
"""A server that answers at all accepts a connection in less."""
NO_KEY: Final = "none"
"""The SDKs want a key; without one of ours the header is left out of each request."""

log = logging.getLogger(__name__)


class SdkSession:
    """An SDK client with our errors."""

    def __init__(self, sdk: Any, client: Any, settings: HostedModels, key: str | None) -> None:
        """Make a client.

        Args:
            sdk: The vendor's module.
            client: Its class of asynchronous clients.
            settings: The provider's section.
            key: `None`: no header of authorization is sent.
        """
        self._sdk = sdk
        self._settings = settings
        self._headers: dict[str, Any] = {} if key else {"Authorization": sdk.Omit()}
        self._client = client(
            api_key=key or NO_KEY,
            base_url=settings.url,
            timeout=httpx2.Timeout(settings.timeout, connect=min(settings.timeout, MAX_CONNECT_S)),
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
        create = attrgetter(path)(self._client).create
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
        except self._sdk.APIError as error:
            raise self._translate(error) from error
        except httpx2.HTTPError as error:  # a stream that breaks
            raise self._disconnected(error) from error
        except (ValueError, RecursionError) as error:  # of a stream's JSON and Unicode, however deep it is nested
            raise ModelError(GARBAGE, transient=True) from error
        except Exception as error:  # the SDK is somebody else's code, and the step has to end in words
            log.exception("the SDK of %s failed in a way that it does not name", self._settings.vendor)
            words = f"the library of {self._settings.vendor} failed ({type(error).__name__})"
            raise ModelError(words, transient=True) from error

    def _translate(self, error: Any) -> ModelError:
        sdk = self._sdk
        if isinstance(error, sdk.APIConnectionError):
            return self._disconnected(error.__cause__ or error)
        if isinstance(error, sdk.APIResponseValidationError):
            return ModelError(GARBAGE, transient=True)
        failure = read_failure(error.body)
        if isinstance(error, sdk.APIStatusError) and error.status_code >= 400:
            return failure.of_status(error.status_code, error.response.headers, error.message)
        return failure.in_stream()

    def _disconnected(self, error: BaseException) -> ModelError:
        if isinstance(error, httpx2.TimeoutException | self._sdk.APITimeoutError):
            return ModelError(f"it was silent for {self._settings.timeout:g} s", transient=True)
        host = urlsplit(self._settings.url).hostname
        return ModelError(f"the connection to {host} failed ({type(error).__name__})", transient=True)
