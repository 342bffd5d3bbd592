"""The client that programs, the CLI and the TUI use."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from tiny_harness.client import outgoing
from tiny_harness.client.answering import Answering
from tiny_harness.client.calls import Calls
from tiny_harness.client.events import TaskEvent, TaskShown
from tiny_harness.client.following import Following
from tiny_harness.client.healing import Healing, heal_stream
from tiny_harness.client.result import OnEvent, TurnResult, gather, reply_in
from tiny_harness.client.turn import Turn
from tiny_harness.client.views import TaskList, TaskView
from tiny_harness.envelope import WorkerUpdate
from tiny_harness.errors import ConnectionLost, InvalidInput, ServerRefused, TaskNotCancelable, Unavailable
from tiny_harness.ext.commands import CommandOffer
from tiny_harness.ids import new_id
from tiny_harness.states import TaskState

T = TypeVar("T")


class HarnessClient:
    """One participant's view of a harness. Made by `connect`.

    Every method raises `ConnectionLost` when the harness could not be reached again within `heal_s` seconds,
    `Unavailable` when it kept answering so, `TaskNotFound`, `TaskEnded`, `RoleNotPermitted`, `InvalidInput` and
    `ServerRefused` when the server refused.
    """

    def __init__(
        self, calls: Calls, participant: str, heal_s: float = 20.0, offers: tuple[CommandOffer, ...] = ()
    ) -> None:
        """`offers` are the commands of the card that the connection was made with."""
        self.participant = participant
        self._calls = calls
        self._heal_s = heal_s
        self._offers = offers

    async def send(
        self,
        text: str,
        *,
        task_id: str | None = None,
        context_id: str | None = None,
        message_id: str | None = None,
        idempotency_key: str | None = None,
        on_event: OnEvent | None = None,
    ) -> TurnResult:
        """Send a message and wait for the turn that reads it; `/name …` runs a command and waits for its answer.

        A turn that asks somebody something ends, too: `task.question` has the question.

        Args:
            text: The words.
            task_id: The task to go on with; a new one starts without it.
            context_id: Groups a new task with others.
            message_id: The message's own id, made up by default. Sending the same again never counts twice.
            idempotency_key: Of a first message: the same key always means the same task. By default the message's id.
            on_event: Is told what happens meanwhile.
        """
        message = self._words(text, task_id, context_id, message_id, idempotency_key)
        own_id: str = message["messageId"]
        told = await gather(
            self._run(message, has_words=True),
            lambda reply: own_id in reply.in_reply_to or not reply.in_reply_to,
            on_event,
        )
        if told.view is None:
            raise ServerRefused("the server answered the message with no task")
        task = told.view if told.is_whole else await self.task(told.view.task_id)
        said = told.reply.message if told.reply else reply_in(task, own_id, text)
        if said is None:
            return TurnResult(task, "")
        return TurnResult(task, said.text, said.command, own_id in told.reply.refused if told.reply else False)

    def stream(
        self,
        text: str,
        *,
        task_id: str | None = None,
        context_id: str | None = None,
        message_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncGenerator[TaskEvent]:
        """Send a message and yield what happens until the turn that reads it has ended; arguments as for `send`."""
        message = self._words(text, task_id, context_id, message_id, idempotency_key)
        return self._run(message, has_words=True)

    def follow(
        self, task_id: str, cursor: int | None = None, *, heal_s: float | None = None
    ) -> AsyncGenerator[TaskEvent]:
        """Yield what happens to a task until it ends: everybody's messages, replies and changes.

        Args:
            task_id: The task.
            cursor: `seq` of the last event known; the whole task comes first without it.
            heal_s: Seconds without the harness after which to give up; by default never.
        """
        return heal_stream(Following(task_id, cursor), self._calls, Healing(heal_s))

    async def task(self, task_id: str, history_length: int | None = None) -> TaskView:
        """Get a task, with its last messages (as many as the server sends by default)."""
        return await self._healed(lambda: self._calls.task(task_id, history_length))

    async def tasks(self, limit: int = 50, after: str | None = None, state: TaskState | None = None) -> TaskList:
        """List the participant's tasks, newest change first, without messages; `after` is the page before's."""
        return await self._healed(lambda: self._calls.tasks(limit, after, state))

    async def commands(self, *, refresh: bool = False) -> tuple[CommandOffer, ...]:
        """List the commands that the harness offers, in its order; those of another agent may be none.

        Args:
            refresh: Ask the card again, as after a restart of the harness; else what it said last.
        """
        if refresh:
            self._offers = await self._healed(self._calls.offers)
        return self._offers

    async def answer(
        self,
        task_id: str,
        request_id: str,
        value: str,
        reason: str | None = None,
        *,
        message_id: str | None = None,
        on_event: OnEvent | None = None,
    ) -> TurnResult:
        """Answer a question that has a request id (`TaskView.question`) and wait for the turn that goes on with it.

        Args:
            task_id: The task.
            request_id: The question's.
            value: One of its choices.
            reason: Why; the agent reads it if it is refused something.
            message_id: The answer's own id, made up by default. Sending the same again never counts twice.
            on_event: Is told what happens meanwhile.

        Raises:
            AlreadyAnswered: The question is not open: somebody has answered, or its turn is over.
            RoleNotPermitted: Only a reporter or an admin may.
        """
        events = self.stream_answer(task_id, request_id, value, reason, message_id=message_id)
        told = await gather(events, lambda reply: reply.ends_turn, on_event)
        task = told.view if told.view and told.is_whole else await self.task(task_id)
        return TurnResult(task, told.reply.message.text if told.reply else "")

    def stream_answer(
        self, task_id: str, request_id: str, value: str, reason: str | None = None, *, message_id: str | None = None
    ) -> AsyncGenerator[TaskEvent]:
        """Answer a question and yield what happens until the turn has ended; arguments and errors as for `answer`.

        The first `TaskShown` or `Changed` tells that the answer is in: who does not care for the turn closes the
        stream then.
        """
        message = outgoing.answer(request_id, value, reason, message_id or new_id(), task_id)
        return heal_stream(Answering(message), self._calls, Healing(self._heal_s))

    async def complete(self, task_id: str, reason: str | None = None) -> TaskView:
        """End a task as done; a running turn is cut."""
        return await self._act(outgoing.control("complete", reason, new_id(), task_id))

    async def interrupt(self, task_id: str) -> TaskView:
        """Cut the running turn and keep the task."""
        return await self._act(outgoing.control("interrupt", None, new_id(), task_id))

    async def cancel(self, task_id: str) -> TaskView:
        """End a task as canceled.

        Raises:
            TaskNotCancelable: It had ended before.
        """
        attempts = 0

        async def once() -> TaskView:
            nonlocal attempts
            attempts += 1
            try:
                return await self._calls.cancel(task_id)
            except TaskNotCancelable as error:
                # The answer to an earlier attempt may have been lost on the way.
                if attempts == 1 or error.state != TaskState.CANCELED.word:
                    raise
                return await self._calls.task(task_id, None)

        return await self._healed(once)

    async def give(
        self, text: str, worker: str, *, context_id: str | None = None, message_id: str | None = None
    ) -> TaskView:
        """Give a new task to a worker; returns once it is in, and does not wait for the worker (adr-042).

        Args:
            text: What is to be done.
            worker: Id of the participant that is to do it.
            context_id: Groups the task with others.
            message_id: The message's own id, made up by default. Sending the same again never counts twice.
        """
        message = outgoing.given(text, worker, message_id or new_id(), context_id)
        async with aclosing(self._run(message, has_words=True)) as events:
            async for event in events:
                if isinstance(event, TaskShown):
                    return event.view
        raise ServerRefused("the server answered the message with no task")

    async def update(
        self,
        task_id: str,
        status: Literal["done", "blocked", "failed", "running"],
        summary: str = "",
        *,
        minutes: int = 0,
        message_id: str | None = None,
    ) -> TaskView:
        """Say, as the worker of a supervised task, how it stands.

        Args:
            task_id: The task.
            status: `done` and `failed` end it, `blocked` parks it until somebody answers, `running` is a sign of life.
            summary: The result, what is needed, or why not.
            minutes: Of `running`: for how long something runs that will say nothing.
            message_id: The message's own id, made up by default. Sending the same again never counts twice.

        Raises:
            InvalidInput: The summary is missing, or minutes do not belong there.
            RoleNotPermitted: Only the task's worker may.
        """
        try:
            said = WorkerUpdate(status=status, summary=summary, minutes=minutes)
        except ValidationError as error:
            raise InvalidInput("invalid_envelope", "task_update", error.errors(include_url=False)[0]["msg"]) from None
        return await self._act(outgoing.update(said, message_id or new_id(), task_id))

    async def acknowledge(self, task_id: str) -> TaskView:
        """Record that one has what one needed of a task, ended or not; it closes nothing (adr-042)."""
        return await self._act(outgoing.control("acknowledge", None, new_id(), task_id))

    async def rename(self, task_id: str, name: str) -> TaskView:
        """Give a task another name."""
        return await self._act(outgoing.patch({"name": name}, new_id(), task_id))

    def _words(
        self, text: str, task_id: str | None, context_id: str | None, message_id: str | None, key: str | None
    ) -> dict[str, Any]:
        return outgoing.words(text, message_id or new_id(), task_id, context_id, key)

    def _run(self, message: dict[str, Any], *, has_words: bool) -> AsyncGenerator[TaskEvent]:
        return heal_stream(Turn(message, has_words=has_words), self._calls, Healing(self._heal_s))

    async def _act(self, message: dict[str, Any]) -> TaskView:
        async with aclosing(self._run(message, has_words=False)) as events:
            async for _ in events:
                pass
        return await self.task(message["taskId"])

    async def _healed(self, call: Callable[[], Awaitable[T]]) -> T:
        healing = Healing(self._heal_s)
        while True:
            try:
                return await call()
            except (ConnectionLost, Unavailable) as error:
                await healing.pause(error)
