"""Stands before the SDK's endpoints: checks what they let through, and keeps the streaming methods from them."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.types import SendMessageRequest, TaskPushNotificationConfig
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from tiny_harness_gateway import requests
from tiny_harness_gateway.acknowledging import ACK_METHOD, Acknowledging
from tiny_harness_gateway.bindings import REST, JsonRpc, refusal
from tiny_harness_gateway.limits import replay
from tiny_harness_gateway.streams import Streams

Endpoint = Callable[[Request], Awaitable[Response]]

STREAMING_METHODS: Final = frozenset({"SendStreamingMessage", "SubscribeToTask"})

REST_BODIES: Final[dict[str, type[Message]]] = {
    "/message:send": SendMessageRequest,
    "/tasks/{id}/pushNotificationConfigs": TaskPushNotificationConfig,
}
"""What a REST route's body must be readable as."""


def rpc_endpoint(streams: Streams, acknowledging: Acknowledging, sdk: Endpoint) -> Endpoint:
    """Serve the JSON-RPC path: streaming methods and those of extensions ourselves, all others by the SDK."""

    async def endpoint(request: Request) -> Response:
        binding = JsonRpc(None)
        try:
            body = requests.read_json(await request.body())
            if not _is_call(body):
                return await sdk(request)
            binding = JsonRpc(body.get("id"))
            if body.get("method") in STREAMING_METHODS:
                return await streams.rpc(request, body)
            requests.check_version(request)
            if body.get("method") == ACK_METHOD:
                return await acknowledging.rpc(request, body)
            _check_params(body)
            return await sdk(await _with_version(request))
        except Exception as error:  # noqa: BLE001 - the edge: told as an answer of the binding, logged if unforeseen
            return refusal(binding, error)

    return endpoint


def rest_endpoint(path: str, sdk: Endpoint) -> Endpoint:
    """Serve a REST path by the SDK, after a look at the request.

    Args:
        path: The route's path, without the prefix.
        sdk: The SDK's endpoint.
    """
    body_type = REST_BODIES.get(path)

    async def endpoint(request: Request) -> Response:
        try:
            requests.check_version(request)
            requests.check_status_filter(request.query_params.get("status"))
            if body_type is not None and request.method == "POST":
                requests.parse(requests.read_json(await request.body()), body_type())
            return await sdk(await _with_version(request))
        except Exception as error:  # noqa: BLE001 - the edge: told as an answer of the binding, logged if unforeseen
            return refusal(REST, error)

    return endpoint


def _is_call(body: Any) -> bool:
    """Whether a body is a JSON-RPC call at all; the SDK has the words for what is not."""
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0" or not isinstance(body.get("method"), str):
        return False
    request_id = body.get("id")
    return isinstance(request_id, str | int | None) and not isinstance(request_id, bool)


def _check_params(body: dict[str, Any]) -> None:
    """Read a call's parameters as the SDK will: what it cannot read it tells in an exception's words."""
    method, params = body.get("method"), body.get("params", {})
    if method in JsonRpcDispatcher.METHOD_TO_MODEL:
        requests.parse(params, JsonRpcDispatcher.METHOD_TO_MODEL[method]())
    if method == "ListTasks":
        requests.check_status_filter(params.get("status"))


async def _with_version(request: Request) -> Request:
    """Tell the SDK in a header what the query may have said: it reads only that."""
    if "a2a-version" in request.headers:
        return request
    headers = [*request.scope["headers"], (b"a2a-version", requests.VERSION.encode())]
    return Request({**request.scope, "headers": headers}, replay(await request.body(), request.receive))
