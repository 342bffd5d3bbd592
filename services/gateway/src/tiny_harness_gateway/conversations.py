"""What the gateway does with a task on behalf of a caller, whatever the binding: send, follow, show, list, cancel."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from pydantic import ValidationError

from tiny_harness import access
from tiny_harness.bus import Frame
from tiny_harness.contracts import Cancel, Delivery, NewTask, Receipt, Sender, Supervision, TaskSnapshot
from tiny_harness.errors import (
    DiskFull,
    InvalidInput,
    TaskEnded,
    TaskNotCancelable,
    TaskNotFound,
    Unavailable,
    UnsupportedContent,
)
from tiny_harness.events import Event
from tiny_harness.ext import stream
from tiny_harness.ext.task import Lifecycle
from tiny_harness.ids import new_id
from tiny_harness.intake import Intake, authorise, fingerprint, message_cause, read_message
from tiny_harness.settings import Settings
from tiny_harness.store import Reading, Store, TaskPage, TaskQuery, TaskRecord
from tiny_harness_gateway.engine_client import EngineClient
from tiny_harness_gateway.subscriptions import Subscriptions
from tiny_harness_gateway.views import SPOKEN, Json, ends_turn_of, is_reply_to, is_terminal, needs_somebody, task_view

MIN_FREE_BYTES: Final = 100_000_000
MAX_DELIVERY_BYTES: Final = 950_000
"""Temporal takes 2 MB in an argument and 4 MB in a call, which holds a first message twice."""
TURN_PATIENCE_S: Final = 600.0
"""How long a blocking send waits for its turn; then it answers the task as it stands."""
CANCEL_PATIENCE_S: Final = 10.0
MAX_REFERENCES: Final = 100
MIN_PAGE: Final = 100
"""Events to read at least when messages are looked for further back: between them may stand many without words."""

Items = AsyncGenerator[Event | Frame]


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that is in."""

    task_id: str
    message_id: str
    receipt: Receipt
    is_settled: bool
    """Whether there is nothing to wait for: a control, data alone, or words of a supervised task's worker."""
    is_supervised: bool = False
    """Whether somebody else works on the task, so that its end is waited for and not a turn's."""

    def is_last(self, event: Event) -> bool:
        """Whether nothing is to be waited for after an event."""
        if self.is_supervised:
            return event.seq > self.receipt.seq and needs_somebody(event)
        return ends_turn_of(event, self.message_id)


class Conversations:
    """The operations on tasks. Callers are authenticated; who may do what is decided here."""

    def __init__(self, settings: Settings, store: Store, engine: EngineClient, subscriptions: Subscriptions) -> None:
        self._lifecycle: Lifecycle = settings.tasks.default_lifecycle
        self._workers = settings.supervision.workers
        self._store = store
        self._engine = engine
        self._subscriptions = subscriptions

    async def record(self, caller: Sender, task_id: str, act: access.Act = "read the task") -> TaskRecord:
        """Load a task for somebody who may do this to it."""
        return _readable(await self._store.task_of(caller.id, task_id), caller, task_id, act)

    async def send(self, caller: Sender, message: Json) -> Sent:
        """Take a message to its task, or start one with it."""
        task_id = message.get("taskId")
        record = await self.record(caller, task_id) if task_id else None
        intake = _understood(message, record, caller)
        await self._check_references(caller, message.get("referenceTaskIds", ()))
        free = self._store.free_bytes()
        if free is not None and free < MIN_FREE_BYTES:
            raise DiskFull(free)
        if record is not None:
            return await self._send_to(caller, record, message, intake)
        return await self._send_first(caller, message, intake)

    @asynccontextmanager
    async def follow(self, task_id: str, after: int, *, deltas: bool = False) -> AsyncGenerator[Items]:
        """Follow a task that the caller may read: events with `seq > after`, and deltas if wanted."""
        async with self._subscriptions.follow(task_id, after, deltas=deltas) as feed, aclosing(feed.items()) as items:
            yield items

    async def wait_for_turn(self, sent: Sent) -> None:
        """Wait until the turn that reads a message has ended, ten minutes at most, or this gateway stops.

        On a supervised task, until that has finished or needs something (adr-042).
        """
        if sent.is_settled or sent.receipt.is_answered:
            return
        try:
            async with asyncio.timeout(TURN_PATIENCE_S):
                await self._until(sent.task_id, sent.receipt.seq - 1, sent.is_last)
        except TimeoutError:
            return

    async def view(self, caller: Sender, task_id: str, history_length: int, at: int | None = None) -> Json:
        """Show a task to somebody who may read it, as it is or as it was at an event."""

        def look(reading: Reading) -> Json:
            record = _readable(reading.task_of(caller.id, task_id), caller, task_id)
            events = _last_events(reading, task_id, history_length, None if at is None else at + 1)
            return task_view(record, events, history_length, reading.acknowledged([task_id]).get(task_id, ()))

        return await self._store.read(look)

    async def list_views(self, query: TaskQuery, history_length: int) -> tuple[list[Json], int, TaskRecord | None]:
        """List a participant's tasks: the views, how many there are, and the last record if there are more."""

        def look(reading: Reading) -> tuple[TaskPage, list[Json]]:
            page = reading.list_tasks(replace(query, limit=query.limit + 1))
            shown = page.tasks[: query.limit]
            acknowledged = reading.acknowledged([record.snapshot.task_id for record in shown])
            return page, [_listed(reading, record, history_length, acknowledged) for record in shown]

        page, views = await self._store.read(look)
        return views, page.total, page.tasks[query.limit - 1] if len(page.tasks) > query.limit else None

    async def acknowledge(self, caller: Sender, task_id: str) -> None:
        """Record that somebody has what they needed of a task, ended or not. It closes nothing (adr-042)."""
        await self.record(caller, task_id, "acknowledge")
        await self._store.acknowledge(task_id, caller.id)

    async def cancel(self, caller: Sender, task_id: str) -> None:
        """End a task as CANCELED; returns once it is, whatever it was doing."""
        record = await self.record(caller, task_id, "control the task")
        if record.snapshot.state.is_terminal:
            raise TaskNotCancelable(task_id, record.snapshot.state.word)
        await self._store.request_cancel(task_id, caller.id)
        try:
            async with asyncio.timeout(CANCEL_PATIENCE_S):
                await self._engine.cancel(task_id, Cancel(requested_by=caller.id))
                if await self._until(task_id, record.snapshot.head, is_terminal) is None:
                    raise _stopping()
        except (TimeoutError, Unavailable) as error:
            raise Unavailable("the task has not answered the cancel yet; the cancel stands") from error
        ended = await self.record(caller, task_id)
        if ended.snapshot.state.word != "CANCELED":
            raise TaskNotCancelable(task_id, ended.snapshot.state.word)

    async def _send_to(self, caller: Sender, record: TaskRecord, message: Json, intake: Intake) -> Sent:
        snapshot = record.snapshot
        if message.get("contextId") not in (None, "", snapshot.context_id):
            raise InvalidInput("invalid_params", "message.contextId", "is not the task's")
        authorise(snapshot.task_id, snapshot.participants, caller.id, intake)
        if intake.control == "acknowledge":
            await self._store.acknowledge(snapshot.task_id, caller.id)
            receipt = Receipt(seq=snapshot.head, received_as="control")
        elif snapshot.state.is_terminal:
            receipt = await self._repeat(caller, record, intake)
        else:
            delivery = _delivery(caller, message, snapshot.task_id, snapshot.context_id)
            receipt = await self._deliver(snapshot, delivery, intake)
        return _sent(snapshot.task_id, intake, receipt, snapshot.supervision, caller)

    async def _deliver(self, task: TaskSnapshot, delivery: Delivery, intake: Intake) -> Receipt:
        """Deliver a message. A command's reply is out some time before Temporal says so: whichever is first counts."""
        if intake.command is None:
            return await self._engine.deliver(task.task_id, delivery)
        told = asyncio.ensure_future(self._engine.deliver(task.task_id, delivery))
        seen = asyncio.ensure_future(self._answered(task, intake.message_id))
        try:
            await asyncio.wait((told, seen), return_when=asyncio.FIRST_COMPLETED)
            return await (seen if seen.done() and not seen.exception() else told)
        finally:
            told.cancel()
            seen.cancel()
            await asyncio.gather(told, seen, return_exceptions=True)

    async def _answered(self, task: TaskSnapshot, message_id: str) -> Receipt:
        """Wait for a command's reply, which stands behind the command in the log."""
        reply = await self._until(task.task_id, task.head, lambda event: is_reply_to(event, message_id))
        if reply is None:
            raise _stopping()
        return Receipt(seq=reply.seq - 1, received_as="command", is_answered=True)

    async def _repeat(self, caller: Sender, record: TaskRecord, intake: Intake) -> Receipt:
        """A message to an ended task is refused, but for one that it has already."""
        task_id = record.snapshot.task_id
        written = await self._store.written(task_id, message_cause(intake.message_id))
        if written is None:
            supervision = record.snapshot.supervision
            is_expired = supervision is not None and supervision.is_expired
            raise TaskEnded(task_id, record.snapshot.state.word, is_expired)
        if written.digest not in (None, fingerprint(caller.id, intake)):
            raise InvalidInput("reused_message_id", "message.messageId", "was used for other content before")
        return Receipt(seq=written.seq, received_as="repeat")

    async def _send_first(self, caller: Sender, message: Json, intake: Intake) -> Sent:
        if intake.kind == "control":
            raise InvalidInput("invalid_params", "message.taskId", "a control names its task")
        task_id = new_id()
        key = _idempotency_key(message)
        if key is not None:
            task_id = await self._store.reserve_task(caller.id, key, task_id)
            record = await self._store.task(task_id)
            if record is not None:
                return await self._send_to(caller, record, {**message, "contextId": ""}, intake)
        context_id = await self._context(caller, message.get("contextId", ""))
        new = self._new_task(caller, context_id, intake)
        delivery = _delivery(caller, message, task_id, context_id, new)
        receipt = await self._engine.deliver(task_id, delivery)
        supervision = Supervision(worker=new.worker) if new.worker else None
        return _sent(task_id, intake, receipt, supervision, caller)

    def _new_task(self, caller: Sender, context_id: str, intake: Intake) -> NewTask:
        """Say what a first message starts: an envelope that names a worker, a supervised task."""
        worker = intake.patch.worker if intake.patch else None
        if worker is not None:
            record = self._workers.get(worker)
            kind = record.kind if record else "agent"
            return NewTask(context_id=context_id, lifecycle="supervised", worker=worker, worker_kind=kind)
        lifecycle: Lifecycle = "delegated" if caller.kind == "agent" else self._lifecycle
        return NewTask(context_id=context_id, lifecycle=lifecycle)

    async def _context(self, caller: Sender, given: str) -> str:
        """A context that the caller is on no task of is treated as new: it grants nothing and tells nothing."""
        if given and await self._store.on_any_task(caller.id, given):
            return given
        return new_id()

    async def _check_references(self, caller: Sender, task_ids: Sequence[str]) -> None:
        if len(task_ids) > MAX_REFERENCES:
            raise InvalidInput("invalid_params", "message.referenceTaskIds", f"at most {MAX_REFERENCES} are allowed")
        for task_id in task_ids:
            await self.record(caller, task_id)

    async def _until(self, task_id: str, after: int, is_last: Callable[[Event], bool]) -> Event | None:
        """Wait for an event; `None` if this gateway stops before there is one."""
        async with (
            self._subscriptions.follow(task_id, after, is_patient=True) as feed,
            aclosing(feed.items()) as items,
        ):
            async for item in items:
                if isinstance(item, Event) and is_last(item):
                    return item
        return None


def _stopping() -> Unavailable:
    return Unavailable("this gateway is stopping")


def _sent(task_id: str, intake: Intake, receipt: Receipt, supervision: Supervision | None, caller: Sender) -> Sent:
    """Say what there is to wait for. A task that is given by its data alone is worked on all the same."""
    if supervision is None or intake.command is not None:
        return Sent(task_id, intake.message_id, receipt, intake.kind != "message")
    is_settled = supervision.worker == caller.id or intake.kind not in ("message", "data")
    return Sent(task_id, intake.message_id, receipt, is_settled, is_supervised=True)


def _readable(record: TaskRecord | None, caller: Sender, task_id: str, act: access.Act = "read the task") -> TaskRecord:
    """Let a record pass for somebody who may do this to its task."""
    if record is None:
        raise TaskNotFound(task_id)
    access.check(task_id, record.snapshot.participants, caller.id, act)
    return record


def _listed(
    reading: Reading, record: TaskRecord, history_length: int, acknowledged: Mapping[str, Sequence[str]]
) -> Json:
    """Show a task of a list."""
    task_id = record.snapshot.task_id
    return task_view(
        record, _last_events(reading, task_id, history_length), history_length, acknowledged.get(task_id, ())
    )


def _last_events(reading: Reading, task_id: str, message_count: int, before: int | None = None) -> list[Event]:
    """Read back until so many messages are found, or the task's start; at least the last event."""
    found: list[Event] = []
    missing, size = message_count, max(1, message_count)
    while True:
        page = reading.words(task_id, size, before)
        found = [*page, *found]
        missing -= sum(event.kind in SPOKEN for event in page)
        if not found:
            raise TaskNotFound(task_id)  # a failover took all that there was up to then
        if missing <= 0 or not page or page[0].seq == 1:
            return found
        before, size = page[0].seq, max(missing, MIN_PAGE)


def _understood(message: Json, record: TaskRecord | None, caller: Sender) -> Intake:
    """Read a message. What it needs is checked later: a command passes for everybody on the task."""
    try:
        return read_message(message)
    except (InvalidInput, UnsupportedContent):
        if record is not None:  # it is no command: who may not write at all is told that, and not what is wrong with it
            access.check(record.snapshot.task_id, record.snapshot.participants, caller.id, "send a message")
        raise


def _delivery(
    caller: Sender, message: Json, task_id: str, context_id: str, new_task: NewTask | None = None
) -> Delivery:
    filled = {**message, "taskId": task_id, "contextId": context_id}
    delivery = Delivery(sender=caller, message=json.dumps(filled, ensure_ascii=False), new_task=new_task)
    size = len(delivery.model_dump_json())
    if size > MAX_DELIVERY_BYTES:
        raise InvalidInput(
            "invalid_params", "message", f"has {size} bytes on its way, {MAX_DELIVERY_BYTES} are possible"
        )
    return delivery


def _idempotency_key(message: Json) -> str | None:
    try:
        return stream.read(message.get("metadata")).idempotency_key
    except ValidationError as error:
        field = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise InvalidInput("invalid_params", f"message.metadata.{stream.KEY}.{field}", "is malformed") from None
