"""The A2A operations that we use, one attempt each: JSON in, views and events out, our errors raised."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, cast

from a2a.client import Client, ClientCallContext
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
)
from google.protobuf import json_format

from tiny_harness.client.decode import decode_event, decode_offers, decode_task
from tiny_harness.client.events import TaskEvent
from tiny_harness.client.refusals import translated
from tiny_harness.client.views import TaskList, TaskView
from tiny_harness.errors import ServerRefused, SignInRefused
from tiny_harness.ext import commands, status, stream, task
from tiny_harness.ext.commands import CommandOffer
from tiny_harness.states import TaskState

STREAM_SILENCE_S: Final = 20.0
"""A stream that says nothing for so long is dead: the server pings every 3 s."""

CALL_TIMEOUT_S: Final = 60.0
"""Longer than any deadline of the server's (10 s)."""

_EXTENSIONS: Final = [stream.URI, status.URI, task.URI, commands.URI]


class Calls:
    """One participant's calls over one connection."""

    def __init__(self, client: Client, card: Callable[[], Awaitable[AgentCard]]) -> None:
        self._client = client
        self._card = card

    async def send(self, message: dict[str, Any]) -> AsyncGenerator[TaskEvent]:
        """Send a message and yield what follows, until the server ends the stream."""
        request = json_format.ParseDict({"message": message}, SendMessageRequest())
        with translated(message.get("taskId", "")):
            async with aclosing(
                _closable(self._client.send_message(request, context=_stream_context(None)))
            ) as stream_:
                async for response in stream_:
                    if event := _event(response):
                        yield event

    async def subscribe(self, task_id: str, cursor: int | None) -> AsyncGenerator[TaskEvent]:
        """Yield a task's events after a cursor, or the task first without one."""
        request = SubscribeToTaskRequest(id=task_id)
        with translated(task_id):
            async with aclosing(_closable(self._client.subscribe(request, context=_stream_context(cursor)))) as stream_:
                async for response in stream_:
                    if event := _event(response):
                        yield event

    async def task(self, task_id: str, history_length: int | None) -> TaskView:
        """Get a task."""
        request = GetTaskRequest(id=task_id, history_length=history_length)
        with translated(task_id):
            return _view(await self._client.get_task(request, context=_call_context()))

    async def tasks(self, limit: int, after: str | None, state: TaskState | None) -> TaskList:
        """List tasks, newest change first, without their messages."""
        request = ListTasksRequest(page_size=limit, page_token=after, status=state, history_length=0)
        with translated():
            answer = await self._client.list_tasks(request, context=_call_context())
        views = tuple(view for found in answer.tasks if (view := _view_or_none(found)))
        return TaskList(views, answer.next_page_token or None, answer.total_size)

    async def cancel(self, task_id: str) -> TaskView:
        """Cancel a task."""
        with translated(task_id):
            return _view(await self._client.cancel_task(CancelTaskRequest(id=task_id), context=_call_context()))

    async def sign_in(self) -> str | None:
        """Show the credentials to the harness.

        Returns:
            Who it says that we are; `None`: it does not say it.

        Raises:
            SignInRefused: It does not let us in.
        """
        try:
            with translated():
                card = await self._client.get_extended_agent_card(
                    GetExtendedAgentCardRequest(), context=_call_context()
                )
        except SignInRefused:
            raise
        except ServerRefused:  # another agent's card may promise what it does not keep
            return None
        return caller_of(card)

    async def offers(self) -> tuple[CommandOffer, ...]:
        """Read the commands from the card."""
        return offers_of(await self._card())


def caller_of(card: AgentCard) -> str | None:
    """Name whom an extended card is for, if it says it."""
    for extension in card.capabilities.extensions:
        if extension.uri == task.URI:
            caller: Any = json_format.MessageToDict(extension.params).get("caller")
            return str(caller["id"]) if isinstance(caller, dict) and "id" in caller else None
    return None


def offers_of(card: AgentCard) -> tuple[CommandOffer, ...]:
    """List the commands that a card offers."""
    found = [extension.params for extension in card.capabilities.extensions if extension.uri == commands.URI]
    return decode_offers(json_format.MessageToDict(found[0])) if found else ()


def _closable(events: AsyncIterator[StreamResponse]) -> Any:
    # Typed as iterators by the A2A client; they are generators, and an abandoned one keeps its connection open.
    return cast(Any, events)


def _event(response: StreamResponse) -> TaskEvent | None:
    return decode_event(json_format.MessageToDict(response))


def _view_or_none(found: Task) -> TaskView | None:
    return decode_task(json_format.MessageToDict(found))


def _view(found: Task) -> TaskView:
    view = _view_or_none(found)
    if view is None:
        raise ServerRefused("the server answered a task in a state that this client does not know")
    return view


def _call_context() -> ClientCallContext:
    parameters = ServiceParametersFactory.create([with_a2a_extensions(_EXTENSIONS)])
    return ClientCallContext(service_parameters=parameters, timeout=CALL_TIMEOUT_S)


def _stream_context(cursor: int | None) -> ClientCallContext:
    parameters = ServiceParametersFactory.create([with_a2a_extensions(_EXTENSIONS)])
    if cursor is not None:
        parameters["Last-Event-ID"] = str(cursor)
    return ClientCallContext(service_parameters=parameters, timeout=STREAM_SILENCE_S)
