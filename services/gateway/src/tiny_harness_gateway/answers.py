"""Mends what the SDK's routes answer: statuses that only HTTP can say, and the media type of REST.

Works around the A2A SDK 1.3: an error that is an HTTP status (503, 507) comes out of its dispatchers as an internal
error, and REST answers are `application/a2a+json` whatever the client accepts.
"""

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tiny_harness.errors import HarnessError
from tiny_harness_gateway.errors import REFUSAL, http_response

A2A_JSON: Final = "application/a2a+json"


class Answers:
    """Replaces an answer whose scope holds a refusal; gives REST the media type that the client accepts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        refusals: list[HarnessError] = []
        scope[REFUSAL] = refusals
        accepts = A2A_JSON in Headers(scope=scope).get("accept", "")

        async def mended(message: Message) -> None:
            if refusals:
                return
            if message["type"] == "http.response.start" and not accepts:
                headers = MutableHeaders(scope=message)
                if headers.get("content-type") == A2A_JSON:
                    headers["content-type"] = "application/json"
            await send(message)

        await self._app(scope, receive, mended)
        if refusals:
            await http_response(refusals[0])(scope, receive, send)
        return None
