"""A service that speaks JSON-RPC 2.0 over HTTP: one POST per call, signed, bounded both ways."""

import json
import ssl
from collections.abc import Mapping
from typing import Any, Literal, Self

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import from_json

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
from tiny_harness.hooks.wire import ABORTED, HEALTH_METHOD, MAX_BODY_BYTES, MEDIA_TYPE, UNKNOWN_METHOD
from tiny_harness.ids import new_id


class ReplyError(BaseModel):
    """The error in a JSON-RPC 2.0 response."""

    model_config = ConfigDict(strict=True)

    code: int
    message: str
    data: Any = None


class Reply(BaseModel):
    """A JSON-RPC 2.0 response: a result, which may be null, or an error."""

    model_config = ConfigDict(extra="forbid", strict=True)

    jsonrpc: Literal["2.0"]
    id: str | int | None
    result: dict[str, Any] | None = None
    error: ReplyError | None = None

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if ("result" in self.model_fields_set) == (self.error is not None):
            raise ValueError("must hold either `result` or `error`")
        return self


class _Command(BaseModel):
    name: str


class _Health(BaseModel):
    points: frozenset[str]
    commands: tuple[_Command, ...] = ()


def open_client(trust: ssl.SSLContext | None = None) -> httpx.AsyncClient:
    """Open a client for any number of services. Deadlines are the caller's; loopback never goes through a proxy."""
    return httpx.AsyncClient(
        verify=trust or True,
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
        limits=httpx.Limits(max_connections=100, max_keepalive_connections=50, keepalive_expiry=KEEP_ALIVE_S),
        mounts=dict.fromkeys(LOOPBACK),
        headers={
            "Accept": MEDIA_TYPE,
            "Accept-Encoding": "identity",  # a bound on what arrives is worth nothing if it may be unpacked
            "Content-Type": MEDIA_TYPE,
            "User-Agent": f"tiny-harness/{__version__}",
        },
    )


class JsonRpcService:
    """A service at a URL."""

    def __init__(self, client: httpx.AsyncClient, url: str, signer: Signs) -> None:
        self._client = client
        self._url = httpx.URL(url)
        self._signer = signer

    async def call(self, delivery: Delivery) -> Mapping[str, Any] | None:
        """Call an executor, as `Service` says."""
        params = {"context": delivery.context}
        reply = await self._ask(delivery.point, params, delivery.delivery_id, delivery.attempt)
        if reply.error is None:
            return reply.result
        if reply.error.code == ABORTED:
            raise HookAbort(_abort_reason(reply.error))
        raise ExecutorFault(_failure_reason(reply.error))

    async def offer(self) -> Offer:
        """Ask what it has, as `Service` says."""
        reply = await self._ask(HEALTH_METHOD, {}, new_id(), 1)
        if reply.error is not None:
            raise ServiceFault(f"it does not tell its health: {_failure_reason(reply.error)}")
        try:
            health = _Health.model_validate(reply.result)
        except ValidationError as error:
            raise ServiceFault(f"its health is malformed {_place(error)}") from None
        return Offer(health.points, frozenset(command.name for command in health.commands))

    async def _ask(self, method: str, params: Mapping[str, Any], delivery_id: str, attempt: int) -> Reply:
        request = {"jsonrpc": "2.0", "id": delivery_id, "method": method, "params": params}
        body = json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode()
        if len(body) > MAX_BODY_BYTES:
            raise ExecutorFault(f"not called: its context takes {len(body)} bytes, more than {MAX_BODY_BYTES}")
        path = self._url.raw_path.decode("ascii")
        headers = self._signer.headers("POST", path, body, delivery_id, attempt)
        return parse_reply(await self._post(body, headers), delivery_id)

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                answer = await _read(response)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            reason = f"it cannot be connected to: {clean(str(error)) or 'no answer in time'}"
            raise ServiceFault(reason, is_unsent=True, is_passing=True) from error
        except httpx.HTTPError as error:
            reason = f"the connection broke: {type(error).__name__} {clean(str(error))}".rstrip()
            raise ServiceFault(reason, is_passing=True) from error
        if response.status_code != 200:
            raise ServiceFault(_status_reason(response, answer), is_passing=response.status_code >= 500)
        return answer


async def _read(response: httpx.Response) -> bytes:
    """Read an answer as it is on the wire, up to the bound."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ServiceFault("its answer is compressed, which nobody asked for")
    answer = bytearray()
    async for chunk in response.aiter_raw():
        answer += chunk
        if len(answer) > MAX_BODY_BYTES:
            raise ServiceFault(f"its answer has more than {MAX_BODY_BYTES} bytes")
    return bytes(answer)


def parse_reply(answer: bytes, delivery_id: str) -> Reply:
    """Read the answer to a call. An error's id may be null: that of a call that was not understood.

    Raises:
        ServiceFault: It is none.
    """
    try:
        reply = Reply.model_validate(from_json(answer, allow_inf_nan=False))
    except ValidationError as error:
        raise ServiceFault(f"its answer is not a JSON-RPC response {_place(error)}") from None
    except ValueError:
        raise ServiceFault("its answer is not JSON") from None
    if reply.id != delivery_id and not (reply.id is None and reply.error is not None):
        raise ServiceFault("its answer belongs to another call: the id differs")
    return reply


def _place(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = clean(".".join(map(str, first["loc"]))) or "the top"
    return f"(at {place}: {clean(first['msg'])})"


def _status_reason(response: httpx.Response, answer: bytes) -> str:
    reason = f"it answered HTTP {response.status_code}"
    if response.is_redirect:
        return f"{reason}: redirects are never followed"
    try:
        words = from_json(answer)["error"]["message"]
    except (ValueError, LookupError, TypeError):
        return reason
    return f"{reason}: {clean(words)}" if isinstance(words, str) else reason


def _abort_reason(error: ReplyError) -> str:
    reason: Any = error.data.get("reason") if isinstance(error.data, dict) else None
    return clean(reason if isinstance(reason, str) else error.message, MAX_ABORT_CHARS) or "no reason given"


def _failure_reason(error: ReplyError) -> str:
    if error.code == UNKNOWN_METHOD:
        return "the service has no such executor"
    number: Any = error.data.get("correlation_id") if isinstance(error.data, dict) else None
    told = f" (its correlation id: {clean(number, 64)})" if isinstance(number, str) else ""
    return f"{clean(error.message) or 'the executor failed'} [{error.code}]{told}"
