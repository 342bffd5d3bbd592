"""The A2A operations that answer once, behind the SDK's routes. The two that stream are in `streams`."""

import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Any

from a2a import types as a2a
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import RequestHandler
from a2a.server.routes import DefaultServerCallContextBuilder
from a2a.utils import errors
from google.protobuf.json_format import ParseDict
from starlette.requests import Request

from tiny_harness.contracts import Sender
from tiny_harness.errors import HarnessError
from tiny_harness_gateway import requests
from tiny_harness_gateway.auth import CALLER
from tiny_harness_gateway.card import Cards
from tiny_harness_gateway.conversations import Conversations
from tiny_harness_gateway.errors import refuse_in, to_a2a
from tiny_harness_gateway.push_configs import PushConfigs
from tiny_harness_gateway.views import Json

log = logging.getLogger(__name__)

_SCOPE = "tiny_harness.scope"


class CallContextBuilder(DefaultServerCallContextBuilder):
    """Hands the authenticated caller to the handler."""

    def build(self, request: Request) -> ServerCallContext:
        """Build the context of one call."""
        context = super().build(request)
        context.state[CALLER] = request.scope[CALLER]
        context.state[_SCOPE] = request.scope
        return context


@contextmanager
def translated(params: Any, context: ServerCallContext) -> Generator[Sender]:
    """Run an operation for its caller; let only A2A errors out of it, and no exception's own words."""
    try:
        requests.refuse_tenant(context.tenant or getattr(params, "tenant", ""))
        yield context.state[CALLER]
    except errors.A2AError:
        raise
    except HarnessError as error:
        refuse_in(context.state[_SCOPE], error)
        raise to_a2a(error) from error
    except Exception as error:
        log.exception("%s failed", type(params).__name__)
        raise to_a2a(HarnessError()) from error


class GatewayHandler(RequestHandler):
    """Maps A2A operations to `Conversations`."""

    def __init__(self, conversations: Conversations, pushes: PushConfigs, cards: Cards) -> None:
        self._conversations = conversations
        self._pushes = pushes
        self._cards = cards

    async def on_message_send(self, params: a2a.SendMessageRequest, context: ServerCallContext) -> a2a.Task:
        """SendMessage (A2A 1.0 §3.1.1): follows the turn that reads the message, unless told to return at once."""
        with translated(params, context) as caller:
            shown = requests.history_length(params.configuration)
            sent = await self._pushes.send(caller, params)
            if not params.configuration.return_immediately:
                await self._conversations.wait_for_turn(sent)
            return _proto(await self._conversations.view(caller, sent.task_id, shown))

    async def on_get_task(self, params: a2a.GetTaskRequest, context: ServerCallContext) -> a2a.Task | None:
        """GetTask (A2A 1.0 §3.1.3)."""
        with translated(params, context) as caller:
            return _proto(await self._conversations.view(caller, params.id, requests.history_length(params)))

    async def on_list_tasks(self, params: a2a.ListTasksRequest, context: ServerCallContext) -> a2a.ListTasksResponse:
        """ListTasks (A2A 1.0 §3.1.4): the caller's tasks, newest change first, without history unless asked."""
        with translated(params, context) as caller:
            query = requests.task_query(params, caller.id)
            shown = requests.history_length(params, default=0)
            views, total, more = await self._conversations.list_views(query, shown)
            return a2a.ListTasksResponse(
                tasks=[_proto(view) for view in views],
                next_page_token=requests.page_token(more.updated_at, more.snapshot.task_id) if more else "",
                page_size=query.limit,
                total_size=total,
            )

    async def on_cancel_task(self, params: a2a.CancelTaskRequest, context: ServerCallContext) -> a2a.Task | None:
        """CancelTask (A2A 1.0 §3.1.5): answers CANCELED or not cancelable, never WORKING."""
        with translated(params, context) as caller:
            await self._conversations.cancel(caller, params.id)
            return _proto(await self._conversations.view(caller, params.id, requests.DEFAULT_HISTORY))

    async def on_message_send_stream(
        self, params: a2a.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Any]:
        """Never reached: the routes in `streams` stand before the SDK's."""
        raise errors.UnsupportedOperationError
        yield

    async def on_subscribe_to_task(
        self, params: a2a.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Any]:
        """Never reached: the routes in `streams` stand before the SDK's."""
        raise errors.UnsupportedOperationError
        yield

    async def on_create_task_push_notification_config(
        self, params: a2a.TaskPushNotificationConfig, context: ServerCallContext
    ) -> a2a.TaskPushNotificationConfig:
        """CreateTaskPushNotificationConfig (A2A 1.0 §3.1.7)."""
        with translated(params, context) as caller:
            return await self._pushes.create(caller, params)

    async def on_get_task_push_notification_config(
        self, params: a2a.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> a2a.TaskPushNotificationConfig:
        """GetTaskPushNotificationConfig (A2A 1.0 §3.1.8): one of the caller's own."""
        with translated(params, context) as caller:
            return await self._pushes.get(caller, params.task_id, params.id)

    async def on_list_task_push_notification_configs(
        self, params: a2a.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> a2a.ListTaskPushNotificationConfigsResponse:
        """ListTaskPushNotificationConfigs (A2A 1.0 §3.1.9): the caller's own, all of them, for they are few."""
        with translated(params, context) as caller:
            configs = await self._pushes.all_of(caller, params.task_id)
            return a2a.ListTaskPushNotificationConfigsResponse(configs=configs)

    async def on_delete_task_push_notification_config(
        self, params: a2a.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """DeleteTaskPushNotificationConfig (A2A 1.0 §3.1.10): one of the caller's own; again does no harm."""
        with translated(params, context) as caller:
            await self._pushes.delete(caller, params.task_id, params.id)

    async def on_get_extended_agent_card(
        self, params: a2a.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> a2a.AgentCard:
        """GetExtendedAgentCard (A2A 1.0 §3.1.11): the card, and who the caller is here."""
        with translated(params, context) as caller:
            return await self._cards.extended(caller)


def _proto(view: Json) -> a2a.Task:
    return ParseDict(view, a2a.Task(), ignore_unknown_fields=True)
