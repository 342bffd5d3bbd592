"""The fast baseline: the A2A SDK's own server, with nothing that lasts."""

from typing import Any

from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from starlette.applications import Starlette

from tiny_harness.settings import Settings
from tiny_harness_gateway.card import build_card


class Echo(AgentExecutor):
    """Answers at once and waits for the next message."""

    async def execute(self, context: Any, event_queue: Any) -> None:
        task = context.current_task or new_task_from_user_message(context.message)
        if not context.current_task:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await updater.requires_input(new_text_message("re: " + context.get_user_input()))

    async def cancel(self, context: Any, event_queue: Any) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def in_memory_app(settings: Settings) -> Starlette:
    """The SDK's server with nothing that lasts."""
    handler = DefaultRequestHandler(
        agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=build_card(settings)
    )
    return Starlette(routes=[*create_jsonrpc_routes(handler, "/rpc")])
