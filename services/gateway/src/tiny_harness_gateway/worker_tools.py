"""What a worker's agent may do over MCP: five tools, as plain functions of a caller (adr-042).

A tool sends the messages that the worker could send itself over A2A, under the same checks. What it forwards is
literal: never a command, whatever it looks like.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from tiny_harness.contracts import Sender
from tiny_harness.envelope import MAX_RUNNING_MINUTES, MAX_SUMMARY_CHARS, MEDIA_TYPE, WorkerUpdate, update_part
from tiny_harness.ext import commands, status, supervision, task
from tiny_harness.ext.supervision import SupervisionData
from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN
from tiny_harness.ids import new_id
from tiny_harness.states import TaskState
from tiny_harness.store import TaskQuery
from tiny_harness_gateway.conversations import Conversations
from tiny_harness_gateway.views import Json

INSTRUCTIONS: Final = (
    "You are a worker of tiny-harness. Tasks are given to you one after the other; task_list shows them, task_get shows"
    " one with its conversation. A task is open until you say how it ended: call task_update with done, blocked or"
    " failed and a summary. A message alone does not end it. While something runs that takes long, call task_update"
    " with running. Who does nothing is reminded, and in the end a person is told."
)
OPEN: Final = (TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.SUBMITTED)
PAGE: Final = 100
SHOWN_MESSAGES: Final = 30
SIGN_OF_LIFE_S: Final = 60.0
"""A look at a task counts as activity, but one in this time is enough."""

TaskId = Annotated[str, Field(description="Id of the task.")]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TaskUpdate(_Arguments):
    """Say how a task of yours stands.

    done and failed end it, blocked parks it until somebody answers, running says that you are at it.
    """

    task_id: TaskId
    status: Literal["done", "blocked", "failed", "running"]
    summary: str = Field(
        default="",
        max_length=MAX_SUMMARY_CHARS,
        description="done: the result. blocked: what you need, as a question. failed: why. running: what you do.",
    )
    minutes: int = Field(
        default=0,
        ge=0,
        le=MAX_RUNNING_MINUTES,
        description="Of running: for how long something runs that will say nothing. Nobody reminds you meanwhile.",
    )


class TaskList(_Arguments):
    """List your open tasks: what you work on, what is blocked, and what waits for you, in that order."""


class TaskGet(_Arguments):
    """Show a task with its goal and its conversation."""

    task_id: TaskId


class TaskAck(_Arguments):
    """Say that you have what you needed of a task that you gave to somebody. It closes nothing."""

    task_id: TaskId


class TaskSend(_Arguments):
    """Write to a task: a question, or how far you are. To end a task of yours call task_update. Without a task_id it
    starts a task for the worker that you name."""

    text: str = Field(min_length=1, max_length=100_000)
    task_id: str | None = Field(default=None, description="Id of the task; leave it out to start one.")
    worker: str | None = Field(
        default=None,
        pattern=PARTICIPANT_ID_PATTERN,
        description="Of a new task: the participant that is to work on it.",
    )


TOOLS: Final[dict[str, type[_Arguments]]] = {
    "task_update": TaskUpdate,
    "task_list": TaskList,
    "task_get": TaskGet,
    "task_ack": TaskAck,
    "task_send": TaskSend,
}
"""Their arguments, by name; their docstrings are what the agent reads."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a tool tells the agent."""

    text: str
    data: Json | None = None
    """The same for programs."""


class WorkerTools:
    """The tools, bound to the operations on tasks."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations
        self._seen_at: dict[str, float] = {}

    async def call(self, caller: Sender, arguments: BaseModel) -> Told:
        """Do what a tool is called for; what to tell the agent.

        Raises:
            HarnessError: It was refused.
        """
        match arguments:
            case TaskUpdate():
                return await self._update(caller, arguments)
            case TaskGet():
                return await self._get(caller, arguments.task_id)
            case TaskAck():
                await self._conversations.acknowledge(caller, arguments.task_id)
                return Told(f"Task {arguments.task_id} is acknowledged.")
            case TaskSend():
                return await self._send(caller, arguments)
            case _:
                return await self._list(caller)

    async def _update(self, caller: Sender, said: TaskUpdate) -> Told:
        update = WorkerUpdate(status=said.status, summary=said.summary, minutes=said.minutes)
        await self._deliver(caller, [update_part(update)], said.task_id)
        return Told(f"Task {said.task_id} is noted as {said.status}.")

    async def _list(self, caller: Sender) -> Told:
        found = [view for state in OPEN for view in await self._views(caller, state) if _worker(view) == caller.id]
        lines = "\n".join(map(_line, found))
        return Told(lines or "You have no open task.", {"tasks": [_facts(view) for view in found]})

    async def _views(self, caller: Sender, state: TaskState) -> Sequence[Json]:
        """List a participant's tasks in a state, the oldest first."""
        found: list[Json] = []
        query: TaskQuery | None = TaskQuery(participant_id=caller.id, state=state, limit=PAGE)
        while query is not None:
            views, _, last = await self._conversations.list_views(query, 0)
            found += views
            after = (last.updated_at, last.snapshot.task_id) if last else None
            query = TaskQuery(participant_id=caller.id, state=state, limit=PAGE, after=after) if after else None
        return sorted(found, key=lambda view: _position(view) or 0)

    async def _get(self, caller: Sender, task_id: str) -> Told:
        view = await self._conversations.view(caller, task_id, SHOWN_MESSAGES)
        if _worker(view) == caller.id:
            await self._show_life(caller, view)
        data = view["metadata"][task.KEY]
        head = [supervision.INSTRUCTIONS] if _worker(view) == caller.id else []
        facts = [f"{name}: {data[name]}" for name in ("name", "goal", "description") if data.get(name)]
        criteria = [f"- {criterion['text']}" for criterion in data.get("acceptance_criteria", ())]
        said = [f"[{_author(message, caller)}] {_text(message)}" for message in view.get("history", ())]
        return Told("\n".join((*head, _line(view), *facts, *criteria, "", *said)).rstrip())

    async def _show_life(self, caller: Sender, view: Json) -> None:
        """Count a look at a task that is worked on as activity."""
        now = time.monotonic()
        key = f"{caller.id} {view['id']}"
        if (
            view["status"]["state"] != TaskState.WORKING
            or now - self._seen_at.get(key, -SIGN_OF_LIFE_S) < SIGN_OF_LIFE_S
        ):
            return
        self._seen_at = {known: at for known, at in self._seen_at.items() if now - at < SIGN_OF_LIFE_S}
        self._seen_at[key] = now
        await self._deliver(caller, [update_part(WorkerUpdate(status="running"))], view["id"])

    async def _send(self, caller: Sender, said: TaskSend) -> Told:
        parts: list[Json] = [{"text": said.text}]
        if said.task_id is None and said.worker is not None:
            data = {"kind": "task", "payload": {"worker": said.worker}}
            parts.append({"data": data, "mediaType": MEDIA_TYPE})
        task_id = await self._deliver(caller, parts, said.task_id)
        return Told(f"It was written to task {task_id}.", {"task_id": task_id})

    async def _deliver(self, caller: Sender, parts: list[Json], task_id: str | None) -> str:
        message: dict[str, Any] = {
            "messageId": new_id(),
            "role": "ROLE_USER",
            "parts": parts,
            "metadata": {commands.KEY: {"literal": True}},
        }
        if task_id is not None:
            message["taskId"] = task_id
        return (await self._conversations.send(caller, message)).task_id


def _worker(view: Json) -> str | None:
    return view["metadata"].get(supervision.KEY, {}).get("worker")


def _position(view: Json) -> int | None:
    return view["metadata"].get(supervision.KEY, {}).get("queue_position")


def _facts(view: Json) -> Json:
    """Show a task to a program."""
    known = view["metadata"].get(supervision.KEY, {})
    shown = ("queue_position", "reminders", "stalled", "stopped")
    return {
        "task_id": view["id"],
        "name": view["metadata"][task.KEY].get("name", ""),
        "state": TaskState(view["status"]["state"]).word,
        **{name: known[name] for name in shown if known.get(name)},
    }


def _line(view: Json) -> str:
    """Show a task in one line."""
    known = view["metadata"].get(supervision.KEY)
    word = TaskState(view["status"]["state"]).word
    why = view["metadata"].get(status.KEY, {}).get("sub_state")
    told = supervision.marks(SupervisionData.model_validate(known)) if known else ()
    marks = (f"{word}, {why}" if why else word, *told)
    return f"task {view['id']}: {view['metadata'][task.KEY].get('name', '')} ({'; '.join(marks)})"


def _author(message: Json, caller: Sender) -> str:
    return "harness" if message.get("role") == "ROLE_AGENT" else "participant"


def _text(message: Json) -> str:
    return "\n".join(part["text"] for part in message.get("parts", ()) if "text" in part)
