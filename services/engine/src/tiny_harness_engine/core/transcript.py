"""The conversation as the model reads it, put together from events. Pure.

The log is in the order of arrival; the model reads in the order of answering: a message that waited for a running turn
stands behind that turn's reply. So a message's place is set by the event that ends its turn, never by its number.
Commands and their replies are no part of it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tiny_harness.envelope import MEDIA_TYPE
from tiny_harness.events import Event
from tiny_harness.ext import commands
from tiny_harness.ext.stream import KEY
from tiny_harness_engine.core.blocks import in_block
from tiny_harness_engine.models.port import ModelMessage
from tiny_harness_engine.records import GateRecord

CHARS_PER_TOKEN: Final = 4
"""A rough estimate, good enough to stay below a provider's limit."""


@dataclass(frozen=True, slots=True)
class Line:
    """One message of the conversation."""

    message: ModelMessage
    seq: int
    """The event that records it."""
    is_new: bool = False
    """A participant's message that no finished turn has read: it is asked now, or its turn was cut."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A task's messages in the order in which a model reads them."""

    told: tuple[Line, ...]
    asked: tuple[Line, ...]
    """Those that the step answers."""

    @property
    def new(self) -> list[Line]:
        """Participants' messages that no finished turn has read."""
        return [line for line in (*self.told, *self.asked) if line.is_new]

    def refusals(self, gates: Mapping[int, GateRecord]) -> dict[str, str]:
        """Say which of the messages that are asked a policy refused, and why, by message id."""
        return {
            line.message.message_id: gates[line.seq].refusal or "" for line in self.asked if _is_refused(line, gates)
        }

    def gated(self, gates: Mapping[int, GateRecord]) -> "Conversation":
        """Leave out what a policy refused, and put in the words that it replaced."""
        return Conversation(_gated(self.told, gates), _gated(self.asked, gates))

    def window(self, max_tokens: int) -> list[ModelMessage]:
        """Cut it to what a model can take: the oldest messages are left out first, those that are asked never."""
        asked = [line.message for line in self.asked]
        return [*_newest([line.message for line in self.told], max_tokens - _tokens(asked)), *asked]


def read_conversation(events: Iterable[Event], reading: Sequence[str]) -> Conversation:
    """Order a task's messages for a step.

    Args:
        events: The task's last events, in order.
        reading: Ids of the messages that the step answers, in order.
    """
    waiting: dict[str, Line] = {}
    told: list[Line] = []
    for event in events:
        payload = json.loads(event.payload)
        received, metadata = _received(payload)
        data = metadata.get(KEY, {})
        if received is not None and event.kind in ("task", "input") and data.get("received_as") != "command":
            message = ModelMessage("user", _text(received), received["messageId"])
            waiting[received["messageId"]] = Line(message, event.seq)
        reply = payload.get("statusUpdate", {}).get("status", {}).get("message")
        for message_id in data.get("in_reply_to", ()):
            if message_id in waiting:
                told.append(replace(waiting.pop(message_id), is_new=reply is None))
        if reply is not None and commands.KEY not in metadata:
            told.append(Line(ModelMessage("assistant", _text(reply), reply["messageId"]), event.seq))
    asked = [replace(waiting[message_id], is_new=True) for message_id in reading if message_id in waiting]
    return Conversation(tuple(told), tuple(asked))


def _received(payload: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    task = payload.get("task")
    metadata = (task or payload.get("statusUpdate", {})).get("metadata", {})
    if task:
        return next(iter(task.get("history", ())), None), metadata
    return metadata.get(KEY, {}).get("received"), metadata


def _gated(lines: Iterable[Line], gates: Mapping[int, GateRecord]) -> tuple[Line, ...]:
    return tuple(_amended(line, gates) for line in lines if not _is_refused(line, gates))


def _is_refused(line: Line, gates: Mapping[int, GateRecord]) -> bool:
    gate = gates.get(line.seq)
    return line.message.role == "user" and gate is not None and gate.refusal is not None


def _amended(line: Line, gates: Mapping[int, GateRecord]) -> Line:
    gate = gates.get(line.seq)
    if line.message.role != "user" or gate is None or gate.text is None:
        return line
    return replace(line, message=replace(line.message, text=gate.text))


def _text(message: dict[str, Any]) -> str:
    parts = message.get("parts", ())
    return "\n\n".join(
        part["text"] if "text" in part else _data(part) for part in parts if part.get("mediaType") != MEDIA_TYPE
    )


def _data(part: dict[str, Any]) -> str:
    return in_block("data", json.dumps(part.get("data"), ensure_ascii=False))


def _newest(messages: list[ModelMessage], max_tokens: int) -> list[ModelMessage]:
    kept = len(messages)
    while kept > 0 and (max_tokens := max_tokens - _tokens(messages[kept - 1 : kept])) >= 0:
        kept -= 1
    return messages[kept:]


def _tokens(messages: Sequence[ModelMessage]) -> int:
    return sum(len(message.text) // CHARS_PER_TOKEN + 4 for message in messages)
