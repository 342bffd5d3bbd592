"""A client without a harness: the TUI's tests are both the person and everybody else."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, Literal, cast

from tiny_harness.client import (
    Changed,
    CommandAnswer,
    CommandOffer,
    HarnessClient,
    MessageView,
    Received,
    Replied,
    StateChanged,
    Stepped,
    TaskEvent,
    TaskList,
    TaskShown,
    TaskView,
    TurnResult,
    fold,
)
from tiny_harness.client.result import OnEvent
from tiny_harness.errors import AlreadyAnswered, ConnectionLost, HarnessError, TaskEnded, TaskNotFound
from tiny_harness.ext.stream import ToolUse
from tiny_harness.ext.task import TaskData
from tiny_harness.states import AWAITING_ANSWER, AWAITING_APPROVAL, AWAITING_NEXT_MESSAGE, TaskState

PARKED = (TaskState.INPUT_REQUIRED, AWAITING_NEXT_MESSAGE)


class FakeClient:
    """Keeps tasks in memory; the test writes what the agent and other surfaces do."""

    def __init__(self) -> None:
        self.views: dict[str, TaskView] = {}
        self.streams: dict[str, list[asyncio.Queue[TaskEvent]]] = {}
        self.seqs: dict[str, int] = {}
        self.past: dict[str, list[TaskEvent]] = {}
        """Events from before those that tests let happen, for who follows from a cursor."""
        self.is_gone = False
        """Whether nothing is answered that is not about a task."""
        self.fails: list[HarnessError] = []
        """Errors of the coming sends."""
        self.sent: list[tuple[str, str | None]] = []
        """Message ids and texts' tasks, as they were sent."""
        self.may_show = asyncio.Event()
        """Cleared: a task that is opened is not shown yet."""
        self.may_show.set()
        self.answers: list[tuple[str, str]] = []
        """Request ids and values, as they were sent."""
        self.on_the_way: list[TaskEvent] = []
        """What happens before the coming `send` or `answer` is answered."""
        self.offers = (
            CommandOffer(name="model", description="Choose a model", argument_hint="[name]"),
            CommandOffer(name="status", description="Where the task stands"),
            CommandOffer(name="sub-task", description="Start a sub-task", argument_hint="<goal>"),
        )
        """What is a command, and what the card says of it."""
        self.later_offers: tuple[CommandOffer, ...] = ()
        """What the card says when it is asked again."""

    def as_client(self) -> HarnessClient:
        return cast(HarnessClient, self)

    def add_task(self, task_id: str, name: str, *texts: str) -> None:
        """Have a parked task with messages, by turns the person's and the agent's."""
        messages = tuple(
            MessageView(f"{task_id}-{i}", "agent" if i % 2 else "user", text) for i, text in enumerate(texts)
        )
        self.views[task_id] = TaskView(
            task_id, "ctx", TaskState.INPUT_REQUIRED, AWAITING_NEXT_MESSAGE, name=name, messages=messages
        )
        self.seqs[task_id] = len(texts)

    def happen(self, task_id: str, event: TaskEvent) -> None:
        """Let something happen to a task, seen by all who follow it."""
        self.views[task_id] = fold(self.views[task_id], event) or self.views[task_id]
        for stream in self.streams.get(task_id, []):
            stream.put_nowait(event)

    def reply(self, task_id: str, text: str, to: str, message_id: str = "", *, more: bool = False) -> None:
        """Let the agent answer; `more` messages wait."""
        state = TaskState.WORKING if more else TaskState.INPUT_REQUIRED
        message = MessageView(message_id or f"a-{to}", "agent", text)
        self.happen(task_id, Replied(**self._next(task_id, state, (to,)), message=message))

    def answer_command(
        self,
        task_id: str,
        text: str,
        to: str,
        outcome: Literal["done", "refused", "failed"] = "done",
        data: TaskData | None = None,
    ) -> None:
        """Let the harness answer a command; the task stays as it is, but for the data that is told."""
        message = MessageView(f"c-{to}", "agent", text, CommandAnswer("status", outcome))
        self.happen(
            task_id, Replied(**self._next(task_id, self.views[task_id].state, (to,)), message=message, data=data)
        )

    def step(
        self,
        task_id: str,
        *tools: str,
        text: str = "",
        message_id: str = "",
        read: tuple[str, ...] = (),
        data: TaskData | None = None,
    ) -> None:
        """Let the agent use tools and go on; the name of one that failed ends with `!`."""
        uses = tuple(ToolUse(call_id=name, name=name.rstrip("!"), is_error=name.endswith("!")) for name in tools)
        message = MessageView(message_id or f"s{self.seqs[task_id]}", "agent", text) if text else None
        common = self._next(task_id, TaskState.WORKING)
        self.happen(task_id, Stepped(**common, tool_calls=uses, message=message, read=read, data=data))

    def ask(self, task_id: str, words: str, to: str, *choices: str, request_id: str | None = None) -> None:
        """Let the agent ask something: for an approval if there is a request id."""
        asked: dict[str, Any] = {
            "sub_state": AWAITING_APPROVAL if request_id else AWAITING_ANSWER,
            "request_id": request_id,
        }
        common: dict[str, Any] = self._next(task_id, TaskState.INPUT_REQUIRED, (to,)) | asked
        message = MessageView(f"q{self.seqs[task_id]}", "agent", words)
        self.happen(task_id, Replied(**common, choices=choices, message=message))

    def note(self, task_id: str, words: str) -> None:
        """Let the harness tell the agent something."""
        message = MessageView(f"note{self.seqs[task_id]}", "note", words)
        self.happen(task_id, Received(**self._next(task_id, TaskState.WORKING), message=message, received_as="turn"))

    async def stream_answer(self, task_id: str, request_id: str, value: str) -> AsyncGenerator[TaskEvent]:
        """Take an answer to the open question; the turn goes on."""
        self.answers.append((request_id, value))
        question = self.views[task_id].question
        if self.fails:
            raise self.fails.pop(0)
        if question is None or question.request_id != request_id:
            raise AlreadyAnswered(request_id)
        event = StateChanged(**self._next(task_id, TaskState.WORKING), caused_by="answer")
        self.happen(task_id, event)
        yield event

    async def answer(self, task_id: str, request_id: str, value: str, *, on_event: OnEvent | None = None) -> TurnResult:
        """Take an answer, and finish the turn at once."""
        async for _ in self.stream_answer(task_id, request_id, value):
            self._pass(on_event)
        self.reply(task_id, f"it is {value}", "m")
        return TurnResult(self.views[task_id], f"it is {value}")

    def _pass(self, on_event: OnEvent | None) -> None:
        for event in self.on_the_way:
            assert on_event is not None
            on_event(event)
        self.on_the_way = []

    def tell(self, task_id: str, data: TaskData) -> None:
        """Let the task's data change without words."""
        view = self.views[task_id]
        common: dict[str, Any] = {**self._next(task_id, view.state), "sub_state": view.sub_state}
        self.happen(task_id, StateChanged(**common, data=data))

    def change(self, task_id: str, state: TaskState) -> None:
        """Let somebody change the state; the turn that runs is cut."""
        ids = tuple(message.message_id for message in self.views[task_id].messages[-1:] if message.role == "user")
        self.happen(task_id, StateChanged(**self._next(task_id, state, ids)))

    async def stream(
        self, text: str, *, task_id: str | None = None, context_id: str | None = None, message_id: str | None = None
    ) -> AsyncGenerator[TaskEvent]:
        assert message_id
        self.sent.append((message_id, task_id))
        if self.fails:
            raise self.fails.pop(0)
        message = MessageView(message_id, "user", text)
        if task_id is None:
            task_id = f"t{len(self.views) + 1}"
            is_command = self._is_command(text)
            state, sub_state = PARKED if is_command else (TaskState.WORKING, None)
            self.views[task_id] = TaskView(task_id, context_id or "ctx", state, sub_state, name=text)
            self.views[task_id] = replace(self.views[task_id], messages=(message,))
            self.seqs[task_id] = 1
            received_as = "command" if is_command else "turn"
            received: TaskEvent = TaskShown(view=self.views[task_id], seq=1, received_as=received_as)
        else:
            received = self._receive(task_id, message)
        queue = self._open(task_id)
        yield received
        while True:
            yield await queue.get()

    async def follow(
        self, task_id: str, cursor: int | None = None, *, heal_s: float | None = None
    ) -> AsyncGenerator[TaskEvent]:
        if task_id not in self.views:
            raise TaskNotFound(task_id)
        for event in self.past.get(task_id, []) if heal_s is not None else []:
            if isinstance(event, TaskShown | Changed) and (event.seq or 0) > (cursor or 0):
                yield event
        queue = self._open(task_id)
        await self.may_show.wait()
        if cursor is None:
            yield TaskShown(view=self.views[task_id], seq=self.seqs[task_id])
        while not self.views[task_id].state.is_terminal or not queue.empty():
            yield await queue.get()

    async def commands(self, *, refresh: bool = False) -> tuple[CommandOffer, ...]:
        if refresh:
            self.offers = self.later_offers or self.offers
        return self.offers

    async def task(self, task_id: str, history_length: int | None = None) -> TaskView:
        view = self.views[task_id]
        return (
            view
            if history_length is None
            else replace(view, messages=view.messages[len(view.messages) - history_length :])
        )

    async def tasks(self, limit: int = 50, after: str | None = None, state: TaskState | None = None) -> TaskList:
        if self.is_gone:
            raise ConnectionLost("nobody is there")
        found = tuple(replace(view, messages=()) for view in reversed(self.views.values()))
        return TaskList(found[:limit], "more" if len(found) > limit else None, len(found))

    async def send(
        self,
        text: str,
        *,
        task_id: str | None = None,
        context_id: str | None = None,
        on_event: OnEvent | None = None,
    ) -> TurnResult:
        """Answer at once; `done` ends the task, `refund` asks whether it may, `which` which one."""
        self._pass(on_event)
        if task_id is not None and self.views[task_id].state.is_terminal:
            raise TaskEnded(task_id, self.views[task_id].state.word)
        if self.fails:
            raise self.fails.pop(0)
        task_id = task_id or f"t{len(self.views) + 1}"
        ends = text == "done"
        state = TaskState.COMPLETED if ends else TaskState.INPUT_REQUIRED
        sub_state = None if ends else AWAITING_NEXT_MESSAGE
        self.views[task_id] = TaskView(task_id, context_id or "ctx", state, sub_state)
        self.sent.append((text, task_id))
        self.seqs.setdefault(task_id, 1)
        if text in ("refund", "which"):
            choices = ("approve", "refuse") if text == "refund" else ("one", "two")
            self.ask(task_id, f"{text}?", "m", *choices, request_id="r1" if text == "refund" else None)
            return TurnResult(self.views[task_id], f"{text}?")
        if self._is_command(text):
            is_known = text.startswith("/status")
            answer = CommandAnswer(text[1:], "done" if is_known else "refused")
            return TurnResult(self.views[task_id], "all is well" if is_known else "not for you", answer)
        return TurnResult(self.views[task_id], f"echo: {text}")

    async def complete(self, task_id: str) -> TaskView:
        return self._act(task_id, TaskState.COMPLETED)

    async def cancel(self, task_id: str) -> TaskView:
        return self._act(task_id, TaskState.CANCELED)

    async def interrupt(self, task_id: str) -> TaskView:
        return self._act(task_id, TaskState.INPUT_REQUIRED)

    def _act(self, task_id: str, state: TaskState) -> TaskView:
        if task_id not in self.views:
            raise TaskNotFound(task_id)
        if self.fails:
            raise self.fails.pop(0)
        self.change(task_id, state)
        return self.views[task_id]

    def _is_command(self, text: str) -> bool:
        return text.partition(" ")[0] in {f"/{offer.name}" for offer in self.offers}

    def _receive(self, task_id: str, message: MessageView) -> TaskEvent:
        before = self.views[task_id].state
        if self._is_command(message.text):
            received_as, state = "command", before
        else:
            received_as, state = ("queued" if before is TaskState.WORKING else "turn"), TaskState.WORKING
        event = Received(**self._next(task_id, state), message=message, received_as=received_as)
        self.happen(task_id, event)
        return event

    def _next(self, task_id: str, state: TaskState, in_reply_to: tuple[str, ...] = ()) -> dict[str, Any]:
        self.seqs[task_id] += 1
        return {
            "task_id": task_id,
            "context_id": "ctx",
            "state": state,
            "sub_state": AWAITING_NEXT_MESSAGE if state is TaskState.INPUT_REQUIRED else None,
            "in_reply_to": in_reply_to,
            "seq": self.seqs[task_id],
        }

    def _open(self, task_id: str) -> asyncio.Queue[TaskEvent]:
        queue: asyncio.Queue[TaskEvent] = asyncio.Queue()
        self.streams.setdefault(task_id, []).append(queue)
        return queue
