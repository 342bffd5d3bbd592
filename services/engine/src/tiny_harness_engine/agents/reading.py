"""Reads what an agent shows of a task: lenient in what is not needed, strict about ids and states. Pure."""

import json
import re
from collections.abc import Iterable
from typing import Final

from a2a.types import Artifact, Message, Part, Role, StreamResponse, Task, TaskStatus
from a2a.types import TaskState as WireState
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

from tiny_harness.ext import status
from tiny_harness.states import TaskState
from tiny_harness_engine.agents.fault import AgentFault
from tiny_harness_engine.core.remote import Seen
from tiny_harness_engine.tools.words import one_line, readable

MAX_WORDS_CHARS: Final = 20_000
"""What a sub-task's result may have on its way to its parent; the whole is at the agent."""
MAX_SUB_STATE_CHARS: Final = 100
MAX_MESSAGE_ID_CHARS: Final = 256
_TASK_ID: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._:~@+=-]{1,256}")
"""An id becomes a piece of a path: it must not lead out of it."""


def read_task(task: Task) -> Seen:
    """Read a task.

    Raises:
        AgentFault: It has no id, or no state, that we can work with.
    """
    if not _TASK_ID.fullmatch(task.id):
        raise AgentFault("doubtful", f"it gave a task an id that cannot be used: {one_line(task.id, 50)!r}")
    state = _state(task.status)
    if state is None:
        raise AgentFault("doubtful", "it shows a task in a state that A2A 1.0 does not have")
    spoken = [message for message in task.history if message.role == Role.ROLE_AGENT]
    return Seen(
        remote_id=task.id,
        state=state,
        sub_state=_sub_state(state, task.metadata),
        message_id=_message_id(task.status),
        words=_words(task.status, task.artifacts, spoken),
    )


def read_message(message: Message) -> Seen:
    """Read the answer of an agent that made no task: it has said all that it will."""
    return Seen(state=TaskState.COMPLETED, message_id=message.message_id[:256], words=_bounded(_text(message.parts)))


def read_event(event: StreamResponse) -> Seen | None:
    """Read what a stream tells of a task's state; `None` if this event tells nothing of it."""
    if event.HasField("task"):
        return read_task(event.task)
    if not event.HasField("status_update"):
        return None
    update = event.status_update
    state = _state(update.status)
    if state is None:
        return None
    return Seen(
        remote_id=update.task_id,
        state=state,
        sub_state=_sub_state(state, update.metadata),
        message_id=_message_id(update.status),
        words=_words(update.status, (), ()),
    )


def _state(found: TaskStatus) -> TaskState | None:
    try:
        return TaskState(WireState.Name(found.state))
    except ValueError:
        return None


def _sub_state(state: TaskState, metadata: Struct) -> str | None:
    if state is not TaskState.INPUT_REQUIRED or status.KEY not in metadata:
        return None
    data = json_format.MessageToDict(metadata)[status.KEY]
    found = data.get("sub_state") if isinstance(data, dict) else None
    return one_line(found, MAX_SUB_STATE_CHARS) or None if isinstance(found, str) else None


def _message_id(found: TaskStatus) -> str:
    return found.message.message_id[:MAX_MESSAGE_ID_CHARS]


def _words(found: TaskStatus, artifacts: Iterable[Artifact], spoken: Iterable[Message]) -> str:
    """Collect what came of a task: what it says, what it made; if neither, the last thing that was said."""
    said = _text(found.message.parts)
    made = [_text(artifact.parts) for artifact in artifacts]
    told = dict.fromkeys(part for part in (said, *made) if part)
    if not told:
        told = dict.fromkeys([_text(message.parts) for message in spoken][-1:])
    return _bounded("\n\n".join(told))


def _text(parts: Iterable[Part]) -> str:
    return "\n\n".join(words for part in parts if (words := _part(part).strip()))


def _part(part: Part) -> str:
    kind = part.WhichOneof("content")
    if kind == "text":
        return part.text
    if kind == "data":
        return json.dumps(json_format.MessageToDict(part.data), ensure_ascii=False)
    return f"[a file, not read: {one_line(part.filename, 200) or 'without a name'}]" if kind else ""


def _bounded(text: str) -> str:
    return readable(text[: 2 * MAX_WORDS_CHARS])[:MAX_WORDS_CHARS]
