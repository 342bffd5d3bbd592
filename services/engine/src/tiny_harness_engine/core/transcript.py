"""The conversation as the model reads it, put together from events. Pure.

The log is in the order of arrival; the model reads in the order of answering: a message that waited for a running turn
stands behind that turn's reply. So a message's place is set by the event that reads it, of a step or of a turn's end,
never by its number. Commands and their replies are no part of it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tiny_harness.envelope import MEDIA_TYPE
from tiny_harness.events import Event
from tiny_harness.ext import commands, status, supervision
from tiny_harness.ext.stream import KEY
from tiny_harness_engine.core.blocks import in_block
from tiny_harness_engine.core.window import Entry, Window
from tiny_harness_engine.models.port import ModelMessage, ToolCall
from tiny_harness_engine.records import CallResult, GateRecord, StepRecord


@dataclass(frozen=True, slots=True)
class Line:
    """One message of the conversation."""

    message: ModelMessage
    seq: int
    """The event that records it."""
    is_unread: bool = False
    """No finished turn has read it: it is asked now, or its turn was cut."""
    is_ours: bool = False
    """The harness wrote it: a brief, or news of a sub-task."""
    turn: int = 0
    """Of what a step read, said or did: its turn."""
    measured: int | None = None
    """Of a model's answer to a step: tokens of the call, as the provider counted them."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A task's messages in the order in which a model reads them."""

    told: tuple[Line, ...]
    asked: tuple[Line, ...]
    """Those that the step answers."""

    @property
    def new(self) -> list[Line]:
        """Participants' messages that no finished turn has read."""
        return [line for line in (*self.told, *self.asked) if line.is_unread and not line.is_ours]

    def refusals(self, gates: Mapping[int, GateRecord]) -> dict[str, str]:
        """Say which of the messages that are asked a policy refused, and why, by message id."""
        return {
            line.message.message_id: gates[line.seq].refusal or "" for line in self.asked if _is_refused(line, gates)
        }

    def gated(self, gates: Mapping[int, GateRecord]) -> "Conversation":
        """Leave out what a policy refused, and put in the words that it replaced."""
        return Conversation(_gated(self.told, gates), _gated(self.asked, gates))

    def window(self, turn: int, fixed_tokens: int) -> Window:
        """Make it a window.

        Args:
            turn: The turn that runs.
            fixed_tokens: Estimated tokens of what stands before it.
        """
        lines = (*self.told, *self.asked)
        places = Counter[int]()
        entries: list[Entry] = []
        for line in lines:
            entries.append(Entry(f"{line.seq}.{places[line.seq]}", line.message, line.measured))
            places[line.seq] += 1
        current = next((place for place, line in enumerate(self.told) if line.turn == turn), len(self.told))
        return Window(tuple(entries), current, fixed_tokens)


@dataclass(frozen=True, slots=True)
class Work:
    """What the steps of some turns asked for, and what came of it, by (turn, step)."""

    steps: Mapping[tuple[int, int], StepRecord] = field(default_factory=dict[tuple[int, int], StepRecord])
    results: Mapping[tuple[int, int], Mapping[int, CallResult]] = field(
        default_factory=dict[tuple[int, int], Mapping[int, CallResult]]
    )
    """By the place of each call within its step, as far as they are known."""

    def lines(self, turn: int, step: int, seq: int) -> list[Line]:
        """Make the lines of one step: what the model said and asked for, and the results of all its calls."""
        record = self.steps.get((turn, step))
        if record is None:
            return []
        calls = tuple(ToolCall(call.call_id, call.name, call.arguments) for call in record.tool_calls)
        said = ModelMessage("assistant", record.text, record.message_id, calls)
        results = self.results.get((turn, step), {})
        measured = record.input_tokens + record.output_tokens
        answers = (_answer(call, results.get(place)) for place, call in enumerate(calls))
        return [
            Line(said, seq, turn=turn, measured=measured or None),
            *(Line(answer, seq, turn=turn) for answer in answers),
        ]


NO_WORK: Final = Work()
CUT_OFF: Final = "The turn was cut off here: whether the call took effect is not known."


def turns_with_work(events: Iterable[Event]) -> list[int]:
    """List the turns of which events say that they had steps with tools."""
    updates = (json.loads(event.payload)["statusUpdate"] for event in events if event.kind in ("step", "state"))
    data = [update["metadata"][KEY] for update in updates]
    return sorted({each["turn"] for each in data if "step" in each and "turn" in each})


def read_conversation(events: Iterable[Event], reading: Sequence[str], work: Work = NO_WORK) -> Conversation:
    """Order a task's messages for a step.

    Args:
        events: The task's last events, in order.
        reading: Ids of the messages that the step answers, in order.
        work: What the turns in these events did with tools.
    """
    waiting: dict[str, Line] = {}
    told: list[Line] = []
    for event in events:
        payload = json.loads(event.payload)
        received, metadata = _received(payload)
        data = metadata.get(KEY, {})
        if received is not None and event.kind in ("task", "input") and data.get("received_as") != "command":
            message = ModelMessage("user", _text(received), received["messageId"])
            waiting[received["messageId"]] = Line(message, event.seq, is_ours=not event.cause.startswith("m:"))
        reply = payload.get("statusUpdate", {}).get("status", {}).get("message")
        if event.kind == "step":
            read = [waiting.pop(message_id) for message_id in data.get("read", ()) if message_id in waiting]
            told += [replace(line, turn=data["turn"]) for line in read]
            told += work.lines(data["turn"], data["step"], event.seq)
            continue
        if reply is not None and "request_id" in metadata.get(status.KEY, {}):
            continue  # a question about a call: what was said of it is in the call's result
        if event.kind == "artifact" or (supervision.KEY in metadata and "turn" not in data and event.kind == "reply"):
            continue  # a result said once more, or what the supervisor says to the task's people
        for message_id in data.get("in_reply_to", ()):
            if message_id in waiting:
                told.append(replace(waiting.pop(message_id), is_unread=reply is None))
        if event.kind == "state" and "step" in data:  # cut: words that nobody was told do not count, calls do
            done = work.lines(data["turn"], data["step"], event.seq)
            told += done if done and done[0].message.tool_calls else []
        if reply is not None and commands.KEY not in metadata:
            told.append(Line(ModelMessage("assistant", _text(reply), reply["messageId"]), event.seq))
    asked = [replace(waiting[message_id], is_unread=True) for message_id in reading if message_id in waiting]
    return Conversation(tuple(told), tuple(asked))


def _answer(call: ToolCall, result: CallResult | None) -> ModelMessage:
    if result is None:
        return ModelMessage("tool", CUT_OFF, call_id=call.call_id, is_error=True)
    return ModelMessage("tool", result.text, call_id=call.call_id, is_error=result.is_error)


def words_of(event: Event) -> str:
    """Read what was said in an event to or by whoever works on the task; a command's words do not count."""
    payload = json.loads(event.payload)
    received, metadata = _received(payload)
    if metadata.get(KEY, {}).get("received_as") == "command" or commands.KEY in metadata:
        return ""
    message = payload.get("statusUpdate", {}).get("status", {}).get("message") or received
    return _text(message) if message else ""


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
