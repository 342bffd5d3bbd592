"""What an incoming A2A message is: words for the model, maybe a command, a control, or task data. Pure.

Both the gateway (to refuse early) and the workflow (to decide) read messages through here, so they cannot disagree.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from tiny_harness import access
from tiny_harness.envelope import MEDIA_TYPE, Action, Control, TaskEnvelope, TaskPatch, WorkerUpdate, decode
from tiny_harness.errors import InvalidInput, UnsupportedContent
from tiny_harness.ext import commands
from tiny_harness.ext.task import Participant

MAX_PARTS: Final = 100
MAX_MESSAGE_ID_CHARS: Final = 256

_COMMAND_NAME: Final = re.compile(r"/([a-z][a-z0-9-]*)")
_BLANKS: Final = " \t\r\n"


class CommandCall(BaseModel):
    """A text of a command's shape. It is a command only if one of that name is registered (R6.3)."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: str = ""
    """The text behind the name, without the blanks around it."""


class Intake(BaseModel):
    """A message, understood."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["message", "control", "data", "update"]
    """`message` has words for the model, `control` acts on the task, `data` only changes the task's data, `update` is
    what the worker of a supervised task says of it."""
    message_id: str
    digest: str
    """SHA-256 over the parts: tells a repeat from other content under the same id."""
    control: Action | None = None
    reason: str | None = None
    """Why, as the sender of a control put it."""
    request_id: str | None = None
    """The question that a control answers."""
    value: str | None = None
    """What it says to it."""
    update: WorkerUpdate | None = None
    patch: TaskPatch | None = None
    text: str = ""
    """All text parts, joined by blank lines."""
    command: CommandCall | None = None
    """Set when the text, the only part of the message, has a command's shape and the message does not deny it."""


def read_message(message: dict[str, Any]) -> Intake:
    """Understand an A2A message given as its JSON.

    Raises:
        InvalidInput: It is malformed; the field is named.
        UnsupportedContent: It has a part that we do not read.
    """
    message_id = _message_id(message)
    if message.get("role") not in ("ROLE_USER", None):
        raise InvalidInput("invalid_params", "message.role", "must be ROLE_USER")
    parts = message.get("parts") or []
    content = _Content()
    for index, part in enumerate(parts[: MAX_PARTS + 1]):
        content.add(part, f"message.parts[{index}]")
    if len(parts) > MAX_PARTS:
        raise InvalidInput("invalid_params", "message.parts", f"at most {MAX_PARTS} parts are allowed")
    digest, envelope = _digest(parts), content.envelope
    if isinstance(envelope, Control | WorkerUpdate) and len(parts) > 1:
        raise InvalidInput("invalid_envelope", "message.parts", "a control is the only part of its message")
    if isinstance(envelope, WorkerUpdate):
        return Intake(kind="update", message_id=message_id, digest=digest, update=envelope)
    if isinstance(envelope, Control):
        return Intake(
            kind="control",
            message_id=message_id,
            digest=digest,
            control=envelope.action,
            reason=envelope.reason,
            request_id=envelope.request_id,
            value=envelope.value,
        )
    if content.words or content.has_data:
        text = "\n\n".join(content.words)
        command = None if len(parts) > 1 or commands.is_literal(message) else read_command(text)
        return Intake(kind="message", message_id=message_id, digest=digest, patch=envelope, text=text, command=command)
    if envelope is None:
        raise InvalidInput("empty_message", "message.parts", "the message has no content")
    return Intake(kind="data", message_id=message_id, digest=digest, patch=envelope)


class _Content:
    """Sorts the parts of one message."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.has_data = False
        self.envelope: Control | TaskPatch | WorkerUpdate | None = None

    def add(self, part: dict[str, Any], where: str) -> None:
        if "data" in part and part.get("mediaType") == MEDIA_TYPE:
            if self.envelope is not None:
                raise InvalidInput("invalid_envelope", where, "a message carries one envelope at most")
            decoded = decode(part["data"], f"{where}.data")
            self.envelope = decoded.payload if isinstance(decoded, TaskEnvelope) else decoded
        elif "data" in part:
            self.has_data = True
        elif part.get("text", "").strip():
            self.words.append(part["text"])
        elif "raw" in part or "url" in part:
            raise UnsupportedContent(where, "files are not read; send text or data")


def read_command(text: str) -> CommandCall | None:
    """Understand a text as `/<name> <arguments>`; `None` if it has another shape (R6.2, R6.5)."""
    found = _COMMAND_NAME.match(text)
    rest = text[found.end() :] if found else ""
    if found is None or (rest and rest[0] not in _BLANKS):
        return None
    return CommandCall(
        name=found[1], arguments=rest.strip(_BLANKS)
    )  # no expression: blanks by the megabyte cost nothing


def authorise(task_id: str, participants: Iterable[Participant], sender: str, intake: Intake) -> None:
    """Check that a sender may do to a task what their message asks.

    What has a command's shape passes for everybody on the task: whether it is one, and who may use that one, only the
    engine knows, and its refusal is a reply on the task. So does a worker's update: the task knows its worker.

    Raises:
        TaskNotFound: The sender is not on the task.
        RoleNotPermitted: No role of theirs allows it.
    """
    people = tuple(participants)
    access.check(task_id, people, sender, _act(intake))
    if intake.patch and intake.patch.participants:
        access.check(task_id, people, sender, "change participants")


def _act(intake: Intake) -> access.Act:
    if intake.command is not None or intake.kind == "update":
        return "read the task"
    if intake.control == "answer":
        return "approve"
    if intake.control == "acknowledge":
        return "acknowledge"
    return "control the task" if intake.kind == "control" else "send a message"


def message_cause(message_id: str) -> str:
    """Name the commit of a message: the same for a repeat, whoever carries it. Message ids are unique within a task."""
    return "m:" + hashlib.sha256(message_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def fingerprint(sender: str, intake: Intake) -> str:
    """Tell a repeat from another message under the same id: SHA-256 over the sender and the parts."""
    return hashlib.sha256(f"{sender}\0{intake.digest}".encode()).hexdigest()


def _message_id(message: dict[str, Any]) -> str:
    message_id = message.get("messageId")
    if not isinstance(message_id, str) or not message_id:
        raise InvalidInput("invalid_params", "message.messageId", "is missing")
    if len(message_id) > MAX_MESSAGE_ID_CHARS:
        raise InvalidInput("invalid_params", "message.messageId", f"has more than {MAX_MESSAGE_ID_CHARS} characters")
    return message_id


def _digest(parts: list[dict[str, Any]]) -> str:
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
