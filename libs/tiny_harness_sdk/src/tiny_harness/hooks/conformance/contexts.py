"""Made-up contexts, one for each hook point: valid by the published models, and recognisable as what they are."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tiny_harness.effects import CommandResult
from tiny_harness.ext.task import Participant
from tiny_harness.hooks.contexts import (
    CompletionDecision,
    HookContext,
    ModelOutput,
    SenderRef,
    TaskRef,
    ToolOutput,
    Window,
    WindowMessage,
)
from tiny_harness.hooks.points import BODY, OPERATIONS, parse_point, point_names
from tiny_harness.ids import new_id

PLAIN_WORDS: Final = "conformance: a good call"
ABORT_WORDS: Final = "conformance: abort"
"""An executor that refuses these words lets its aborts be checked."""

_TASK: Final = TaskRef(
    task_id="conformance-task", context_id="conformance-context", name="conformance", state="TASK_STATE_WORKING"
)
_PEOPLE: Final = (Participant(id="conformance", kind="human", role="reporter"),)
_MESSAGE_ID: Final = "conformance-message"


@dataclass(frozen=True, slots=True)
class Probe:
    """One good call."""

    point: str
    context: HookContext

    @property
    def title(self) -> str:
        """What it calls, such as `command.invoked.in /deploy`."""
        command = getattr(self.context, "command", "") if self.point == BODY else ""
        return f"{self.point} /{command}" if command else self.point


def probes(points: Iterable[str], commands: Sequence[str], words: str = PLAIN_WORDS) -> list[Probe]:
    """Make a good call for each point, and at the bodies' point for each command."""
    known = [point for point in point_names() if point in set(points)]
    return [
        Probe(point, context(point, words, command))
        for point in known
        for command in (commands if point == BODY else commands[:1] or ["conformance"])
    ]


def context(point: str, words: str = PLAIN_WORDS, command: str = "conformance") -> HookContext:
    """Make a context of a point, with a delivery id of its own."""
    operation, phase = parse_point(point)
    document: dict[str, Any] = {
        "operation": operation,
        "phase": phase,
        "task": _TASK,
        "participants": _PEOPLE,
        "sender": SenderRef(id="conformance", role="reporter"),
        "correlation_id": "conformance",
        "delivery_id": new_id(),
        **_FIELDS[operation](words, phase == "post"),
    }
    if operation == "command.invoked":
        document["command"] = command
    return OPERATIONS[operation].context.model_validate(document)


def _window(words: str) -> tuple[WindowMessage, ...]:
    return (WindowMessage(role="user", text=words, message_id=_MESSAGE_ID),)


def _request(words: str, _is_done: bool) -> dict[str, Any]:
    return {"message_id": _MESSAGE_ID, "text": words}


def _command(words: str, is_done: bool) -> dict[str, Any]:
    result = CommandResult(reply=words) if is_done else None
    return {"arguments": words, "message_id": _MESSAGE_ID, "new_task_id": "conformance-child", "result": result}


def _created(words: str, _is_done: bool) -> dict[str, Any]:
    return {"text": words}


def _complete(words: str, is_done: bool) -> dict[str, Any]:
    result = CompletionDecision(allowed=True) if is_done else None
    return {"requested_by": "conformance", "reason": words, "result": result}


def _context_created(words: str, is_done: bool) -> dict[str, Any]:
    return {"turn": 1, "step": 1, "result": Window(messages=_window(words)) if is_done else None}


def _llm(words: str, is_done: bool) -> dict[str, Any]:
    return {"turn": 1, "step": 1, "messages": _window(words), "result": ModelOutput(text=words) if is_done else None}


def _trigger(_words: str, _is_done: bool) -> dict[str, Any]:
    return {"tokens": 90, "window_tokens": 100}


def _keep(_words: str, _is_done: bool) -> dict[str, Any]:
    return {"entries": [{"key": "1.0", "role": "user", "tokens": 9}], "window_tokens": 100}


def _summarise(words: str, _is_done: bool) -> dict[str, Any]:
    return {"system": "conformance", "text": words}


def _tool(words: str, is_done: bool) -> dict[str, Any]:
    call = {"call_id": "conformance-call", "tool": "conformance/server.tool", "arguments": json.dumps({"text": words})}
    return {"turn": 1, "step": 1, **call, "result": ToolOutput(text=words) if is_done else None}


def _plan(words: str, _is_done: bool) -> dict[str, Any]:
    return {"turn": 1, "step": 1, "call_id": "conformance-call", "plan": {"steps": [{"id": "a", "name": words}]}}


def _brief(words: str, _is_done: bool) -> dict[str, Any]:
    return {"turn": 1, "step": 1, "call_id": "conformance-call", "brief": {"goal": words}}


def _help(words: str, _is_done: bool) -> dict[str, Any]:
    decision = {"tool": "ask_participant", "arguments": {"question": words}}
    return {"turn": 1, "step": 1, "call_id": "conformance-call", "decision": decision}


def _activity(words: str, _is_done: bool) -> dict[str, Any]:
    return {"activity": "model", "turn": 1, "step": 1, "error": words, "will_retry": True, "pause_s": 1.0}


def _observed(_words: str, _is_done: bool) -> dict[str, Any]:
    status = {"state": "TASK_STATE_WORKING"}
    return {
        "seq": 1,
        "event": {"statusUpdate": {"taskId": _TASK.task_id, "contextId": _TASK.context_id, "status": status}},
    }


_FIELDS: Final[dict[str, Callable[[str, bool], dict[str, Any]]]] = {
    "request.received": _request,
    "command.invoked": _command,
    "task.created": _created,
    "task.complete": _complete,
    "context.created": _context_created,
    "llm.invoked": _llm,
    "compaction.trigger": _trigger,
    "compaction.keep": _keep,
    "compaction.summarise": _summarise,
    "tool.invoked": _tool,
    "plan.created": _plan,
    "subtask.spawned": _brief,
    "help.decided": _help,
    "activity.failed": _activity,
    "activity.retried": _activity,
} | {name: _observed for name, operation in OPERATIONS.items() if operation.is_observed}
"""The fields of each operation; the second argument says whether there is a result already."""
