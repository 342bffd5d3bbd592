"""One remote agent, spoken to with the official A2A client: what a stand-in does there, one call each."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final, cast

import httpx
from a2a.client import Client, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
)
from a2a.utils.errors import MethodNotFoundError, TaskNotCancelableError, UnsupportedOperationError
from google.protobuf import json_format

from tiny_harness.redact import Redactor, configured_secrets
from tiny_harness.settings import AgentSettings
from tiny_harness_engine.agents.brief import Brief, brief_message
from tiny_harness_engine.agents.card import BINDINGS, CardBook, CheckedCard
from tiny_harness_engine.agents.fault import AgentFault, translated
from tiny_harness_engine.agents.http import AgentTransport
from tiny_harness_engine.agents.reading import read_event, read_message, read_task
from tiny_harness_engine.core.remote import Seen

STREAM_SILENCE_S: Final = 60.0
"""A stream that says nothing for so long is dead: servers ping every 15 s by default."""
HISTORY: Final = 10
"""Messages to ask for with a task: the agent's last words may stand there alone."""


class RemoteAgent:
    """An agent of the configuration. Opens connections when it is first used.

    Every call raises `AgentFault` if there is no answer that can be used.
    """

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._transport = AgentTransport(settings.url)
        self._http = httpx.AsyncClient(transport=self._transport, timeout=settings.timeout)
        self._cards = CardBook(settings, self._http)
        self.mask = _mask(settings)
        """Takes our secrets out of what the agent says: it knows one, and may say it."""
        self._checked: CheckedCard | None = None
        self._clients: tuple[Client, Client] | None = None

    async def send(self, child_id: str, brief: Brief, *, is_again: bool) -> Seen:
        """Give the agent a piece of work, once: a brief that may have arrived before is looked for first.

        Args:
            child_id: Our id of the sub-task.
            brief: The work.
            is_again: Whether an earlier attempt may have arrived.
        """
        async with self._called() as (client, checked):
            if is_again and not checked.is_idempotent:
                found = await self._find(client, child_id)
                if found is not None:
                    return found
            message = brief_message(child_id, brief, is_harness=checked.is_harness)
            request = SendMessageRequest()  # the client asks to be answered at once: it polls
            json_format.ParseDict(message, request.message)
            async with aclosing(_closable(client.send_message(request, context=self._context()))) as answers:
                async for answer in answers:
                    return read_message(answer.message) if answer.HasField("message") else read_task(answer.task)
        raise AgentFault("doubtful", "it answered with nothing")

    async def look(self, remote_id: str) -> Seen:
        """See how a task is."""
        async with self._called() as (client, _):
            request = GetTaskRequest(id=remote_id, history_length=HISTORY)
            return _same(remote_id, read_task(await client.get_task(request, context=self._context())))

    async def follow(self, remote_id: str, is_news: Callable[[Seen], bool]) -> Seen | None:
        """Follow a task until there is news; `None` if the stream ended before, as streams do."""
        async with self._called(streams=True) as (client, _):
            request = SubscribeToTaskRequest(id=remote_id)
            context = self._context(STREAM_SILENCE_S)
            async with aclosing(_closable(client.subscribe(request, context=context))) as events:
                async for event in events:
                    seen = read_event(event)
                    if seen is not None and is_news(_same(remote_id, seen)):
                        return seen
        return None

    async def cancel(self, remote_id: str) -> Seen:
        """Cancel a task; the answer is how it is then, which may be ended in another way."""
        async with self._called() as (client, _):
            with suppress(TaskNotCancelableError):
                request = CancelTaskRequest(id=remote_id)
                return _same(remote_id, read_task(await client.cancel_task(request, context=self._context())))
        return await self.look(remote_id)

    async def find(self, child_id: str) -> Seen | None:
        """Look for the task that a brief may have started.

        Raises:
            AgentFault: Also if the agent cannot tell.
        """
        async with self._called() as (client, _):
            return await self._find(client, child_id)

    async def streams(self) -> bool:
        """Whether the agent says that its tasks can be followed."""
        with translated():
            return (await self._cards.card()).streams

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _find(self, client: Client, child_id: str) -> Seen | None:
        request = ListTasksRequest(context_id=child_id, page_size=10, history_length=HISTORY)
        try:
            listed = await client.list_tasks(request, context=self._context())
        except (MethodNotFoundError, UnsupportedOperationError) as error:
            reason = "it may have been given the work, and cannot tell: it lists no tasks"
            raise AgentFault("final", reason) from error
        found = [task for task in listed.tasks if task.context_id == child_id]
        return read_task(found[-1]) if found else None  # newest first: the first that was made

    @asynccontextmanager
    async def _called(self, *, streams: bool = False) -> AsyncGenerator[tuple[Client, CheckedCard]]:
        """Give the client that fits the agent's card; whatever goes wrong in the block is an `AgentFault`."""
        try:
            with translated():
                checked = await self._cards.card()
                single, streaming = self._clients_for(checked)
                async with asyncio.timeout(None if streams else self._settings.timeout):
                    yield streaming if streams else single, checked
        except AgentFault as fault:
            if fault.kind in ("final", "doubtful"):
                self._cards.forget()  # it may be another agent by now
            raise

    def _clients_for(self, checked: CheckedCard) -> tuple[Client, Client]:
        """Make the clients for a card: for single calls, and for streams. The library sends by stream where it can."""
        if self._clients is None or self._checked is not checked:
            self._transport.headers = checked.headers
            single, streaming = (
                ClientConfig(
                    httpx_client=self._http,
                    supported_protocol_bindings=list(BINDINGS),
                    streaming=streams,
                    polling=not streams,
                )
                for streams in (False, True)
            )
            self._clients = ClientFactory(single).create(checked.card), ClientFactory(streaming).create(checked.card)
            self._checked = checked
        return self._clients

    def _context(self, timeout_s: float | None = None) -> ClientCallContext:
        extensions = self._checked.extensions if self._checked else ()
        parameters = ServiceParametersFactory.create([with_a2a_extensions(list(extensions))] if extensions else [])
        return ClientCallContext(service_parameters=parameters, timeout=timeout_s or self._settings.timeout)


def _mask(settings: AgentSettings) -> Callable[[Any], Any]:
    own = os.environ.get(settings.token_env or "", "").strip()
    return Redactor((*configured_secrets(os.environ), own, own.partition(":")[2])).by_value


def _same(remote_id: str, seen: Seen) -> Seen:
    if seen.remote_id != remote_id:
        raise AgentFault("doubtful", "it answered with another task")
    return seen


def _closable(events: Any) -> AsyncGenerator[StreamResponse]:
    # Typed as iterators by the A2A client; they are generators, and an abandoned one keeps its connection open.
    return cast("AsyncGenerator[StreamResponse]", events)
