"""`AckTask`, the method of the `supervision` extension: the asker has what it needed. It closes nothing."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tiny_harness.contracts import Sender
from tiny_harness.errors import InvalidInput
from tiny_harness_gateway import requests
from tiny_harness_gateway.auth import CALLER
from tiny_harness_gateway.bindings import REST, refusal
from tiny_harness_gateway.conversations import Conversations
from tiny_harness_gateway.views import Json

ACK_METHOD: Final = "AckTask"
NO_HISTORY: Final = 0


class Acknowledging:
    """The method on both bindings; answers the task."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations

    async def rpc(self, request: Request, body: Json) -> Response:
        """Answer a JSON-RPC call with the params `{"id": …}`. Its errors are for the caller of this to tell."""
        params: Any = body.get("params")
        requests.refuse_tenant(params.get("tenant", "") if isinstance(params, dict) else "")
        task_id = params.get("id") if isinstance(params, dict) else None
        view = await self._acknowledge(request.scope[CALLER], task_id)
        return JSONResponse({"jsonrpc": "2.0", "id": body.get("id"), "result": view})

    async def rest(self, request: Request) -> Response:
        """Answer a POST to `/tasks/{id}:ack`."""
        try:
            requests.check_version(request)
            return JSONResponse(await self._acknowledge(request.scope[CALLER], request.path_params["id"]))
        except Exception as error:  # noqa: BLE001 - the edge: told as an answer of the binding, logged if unforeseen
            return refusal(REST, error)

    async def _acknowledge(self, caller: Sender, task_id: Any) -> Json:
        if not isinstance(task_id, str) or not task_id:
            raise InvalidInput("invalid_params", "id", "is missing")
        await self._conversations.acknowledge(caller, task_id)
        return await self._conversations.view(caller, task_id, NO_HISTORY)
