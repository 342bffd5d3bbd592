"""A service that speaks MCP over streamable HTTP: each executor is a tool. One session per call, over kept connections.

A session of its own for each call costs a round trip or two, and leaves nothing that a dead peer could break.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import httpx2
from mcp import Client, ClientSession, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from tiny_harness._version import __version__
from tiny_harness.errors import HookAbort
from tiny_harness.hooks.delivery import (
    CONNECT_TIMEOUT_S,
    KEEP_ALIVE_S,
    LOOPBACK,
    MAX_ABORT_CHARS,
    Delivery,
    ExecutorFault,
    Offer,
    ServiceFault,
    Signs,
    clean,
)
from tiny_harness.hooks.wire import MAX_BODY_BYTES, TOOL_PREFIX, tool_name
from tiny_harness.ids import new_id

CLOSE_S: Final = 0.5
"""How long the end of a session may take."""


class _Abort(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    reason: str


class _Answer(BaseModel):
    """The structured content of an executor's tool."""

    model_config = ConfigDict(extra="forbid", strict=True)

    patch: dict[str, Any] | None = None
    abort: _Abort | None = None

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if ("patch" in self.model_fields_set) == (self.abort is not None):
            raise ValueError("must hold either `patch` or `abort`")
        return self


def open_client(trust: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    """Open a client for any number of services. Deadlines are the caller's; loopback never goes through a proxy."""
    return httpx2.AsyncClient(
        verify=trust or True,
        follow_redirects=False,
        timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
        limits=httpx2.Limits(max_connections=100, max_keepalive_connections=50, keepalive_expiry=KEEP_ALIVE_S),
        mounts=dict.fromkeys(LOOPBACK),
    )


class McpService:
    """A service at a URL."""

    def __init__(self, client: httpx2.AsyncClient, url: str, signer: Signs) -> None:
        self._client = client
        self._url = url
        self._signer = signer

    async def call(self, delivery: Delivery) -> Mapping[str, Any] | None:
        """Call an executor, as `Service` says."""
        params = types.CallToolRequestParams(
            name=tool_name(delivery.point), arguments={"context": dict(delivery.context)}
        )
        async with self._session(delivery) as session:
            # Not `Client.call_tool`: it asks for the list of tools first, to check what is checked below.
            result = await session.send_request(types.CallToolRequest(params=params), types.CallToolResult)
        if result.is_error:
            raise ExecutorFault(_failure_reason(result))
        try:
            answer = _Answer.model_validate(result.structured_content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise ServiceFault(f"its tool's structured content is malformed: {clean(first['msg'])}") from None
        if answer.abort is not None:
            raise HookAbort(clean(answer.abort.reason, MAX_ABORT_CHARS) or "no reason given")
        return answer.patch

    async def offer(self) -> Offer:
        """Ask what it has, as `Service` says; a list of tools does not tell which commands."""
        async with self._session(None) as session:
            tools = (await session.list_tools()).tools
        names = (tool.name for tool in tools if tool.name.startswith(TOOL_PREFIX))
        return Offer(frozenset(name.removeprefix(TOOL_PREFIX) for name in names))

    @asynccontextmanager
    async def _session(self, delivery: Delivery | None) -> AsyncGenerator[ClientSession]:
        gate = _Gate(self._client, self._signer, delivery)
        http = httpx2.AsyncClient(transport=gate, trust_env=False)
        try:
            async with http, Client(streamable_http_client(self._url, http_client=http), cache=None) as client:
                yield client.session
        except Exception as error:  # MCP's client raises groups, errors of its own and httpx2's
            raise gate.explain(error) from error


class _Gate(httpx2.AsyncBaseTransport):
    """All requests of one session: signed, their answers bounded, redirects refused, and what went wrong kept."""

    def __init__(self, client: httpx2.AsyncClient, signer: Signs, delivery: Delivery | None) -> None:
        self._client = client
        self._signer = signer
        self._delivery = delivery
        self._is_sent = False
        self._fault: ServiceFault | ExecutorFault | None = None
        self._status = 200

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request of MCP's client."""
        try:
            return await self._send(request)
        except (ServiceFault, ExecutorFault) as fault:
            self._fault = fault
            raise httpx2.ReadError(fault.reason) from fault
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            reason = f"it cannot be connected to: {clean(str(error)) or 'no answer in time'}"
            self._fault = ServiceFault(reason, is_unsent=not self._is_sent, is_passing=True)
            raise
        except httpx2.TransportError as error:
            reason = f"the connection broke: {type(error).__name__} {clean(str(error))}".rstrip()
            self._fault = ServiceFault(reason, is_passing=True)
            raise

    def explain(self, error: BaseException) -> ServiceFault | ExecutorFault:
        """Say what made a session fail."""
        if self._fault is not None:
            return self._fault
        if self._status >= 400:
            return ServiceFault(f"it answered HTTP {self._status}", is_passing=self._status >= 500)
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, ServiceFault):
            return error
        return ServiceFault(f"it does not speak MCP as expected: {type(error).__name__} {clean(str(error))}".rstrip())

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        body = request.content
        if len(body) > MAX_BODY_BYTES:
            raise ExecutorFault(f"not called: its context takes {len(body)} bytes, more than {MAX_BODY_BYTES}")
        self._sign(request, body)
        # The end of a session comes after the answer, which must not be lost by waiting for it.
        async with asyncio.timeout(CLOSE_S if request.method == "DELETE" else None):
            response = await self._client.send(request, stream=True, follow_redirects=False)
        self._status = response.status_code
        if response.is_redirect:
            await response.aclose()
            raise ServiceFault(f"it answered HTTP {response.status_code}: redirects are never followed")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise ServiceFault("its answer is compressed, which nobody asked for")
        stream = _Bounded(response, self)
        return httpx2.Response(response.status_code, headers=response.headers, stream=stream, request=request)

    def _sign(self, request: httpx2.Request, body: bytes) -> None:
        delivery_id, attempt = new_id(), 1
        if self._delivery is not None and _method(body) == "tools/call":
            self._is_sent = True
            delivery_id, attempt = self._delivery.delivery_id, self._delivery.attempt
        path = request.url.raw_path.decode("ascii")
        request.headers.update(self._signer.headers(request.method, path, body, delivery_id, attempt))
        request.headers["Accept-Encoding"] = "identity"  # a bound is worth nothing if the answer may be unpacked
        request.headers["User-Agent"] = f"tiny-harness/{__version__}"

    def broke(self, fault: ServiceFault) -> None:
        """Keep what happened while an answer was read."""
        self._fault = self._fault or fault


class _Bounded(httpx2.AsyncByteStream):
    """An answer's body, cut at the bound."""

    def __init__(self, response: httpx2.Response, gate: _Gate) -> None:
        self._response = response
        self._gate = gate

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._response.aiter_raw():
                size += len(chunk)
                if size > MAX_BODY_BYTES:
                    self._gate.broke(ServiceFault(f"its answer has more than {MAX_BODY_BYTES} bytes"))
                    raise httpx2.ReadError("too long")
                yield chunk
        except httpx2.TransportError as error:
            reason = f"the connection broke: {type(error).__name__} {clean(str(error))}".rstrip()
            self._gate.broke(ServiceFault(reason, is_passing=True))
            raise

    async def aclose(self) -> None:
        await self._response.aclose()


def _method(body: bytes) -> str | None:
    try:
        return json.loads(body).get("method")
    except (ValueError, AttributeError):
        return None


def _failure_reason(result: types.CallToolResult) -> str:
    words = [part.text for part in result.content if isinstance(part, types.TextContent)]
    return clean(" ".join(words)) or "the executor failed"
