"""The hook catalogue: every operation, its context, and what its executors may replace. One table (DESIGN: hooks)."""

from dataclasses import dataclass, field
from typing import Final, get_args

from tiny_harness.errors import RegistryError
from tiny_harness.hooks.contexts import (
    ActivityContext,
    BriefContext,
    CommandContext,
    CompactionKeepContext,
    CompactionSummariseContext,
    CompactionTriggerContext,
    CompletionContext,
    HelpContext,
    HookContext,
    ModelContext,
    ObservedContext,
    Phase,
    PlanContext,
    RequestContext,
    TaskCreatedContext,
    ToolContext,
    WindowContext,
)

PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
BODY: Final = "command.invoked.in"
"""The point at which commands' bodies are called."""
RESULT: Final = frozenset({"result"})
NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that the harness does and others may act on, or watch."""

    summary: str
    context: type[HookContext]
    replaces: dict[Phase, frozenset[str]] = field(default_factory=dict[Phase, frozenset[str]])
    """Phases that it has, each with the fields of the context that a reply may replace."""
    may_abort: bool = False
    is_observed: bool = False
    """It is watched from the event log, after the fact; executors answer nothing."""


def _observed(summary: str) -> Operation:
    return Operation(summary, ObservedContext, {"post": NOTHING}, is_observed=True)


OPERATIONS: Final[dict[str, Operation]] = {
    "request.received": Operation(
        "A participant's words arrive. Not for commands and controls.",
        RequestContext,
        {"pre": frozenset({"text"})},
        may_abort=True,
    ),
    "command.invoked": Operation(
        "A slash command runs; its body is the `in` phase.",
        CommandContext,
        {"pre": frozenset({"arguments"}), "in": RESULT, "post": RESULT},
        may_abort=True,
    ),
    "task.created": Operation("A task is about to start.", TaskCreatedContext, {"pre": NOTHING}, may_abort=True),
    "task.complete": Operation(
        "Somebody completes a task; the decision is the `in` phase.",
        CompletionContext,
        {"pre": NOTHING, "in": RESULT, "post": RESULT},
        may_abort=True,
    ),
    "context.created": Operation(
        "The window of a model call is put together.", WindowContext, {"in": RESULT, "post": RESULT}
    ),
    "llm.invoked": Operation(
        "A model is asked.",
        ModelContext,
        {"pre": frozenset({"messages"}), "in": RESULT, "post": RESULT},
        may_abort=True,
    ),
    "compaction.trigger": Operation(
        "A window is measured: must something be left out?", CompactionTriggerContext, {"in": RESULT}
    ),
    "compaction.keep": Operation(
        "What stays in a window that has grown too large.", CompactionKeepContext, {"in": RESULT}
    ),
    "compaction.summarise": Operation(
        "The words that stand for what is left out.", CompactionSummariseContext, {"in": RESULT}
    ),
    "tool.invoked": Operation(
        "A tool is called; `ask` in a `pre` reply lets a person decide.",
        ToolContext,
        {"pre": frozenset({"arguments", "ask"}), "in": RESULT, "post": RESULT},
        may_abort=True,
    ),
    "plan.created": Operation(
        "The agent makes its plan, or replaces it.", PlanContext, {"pre": frozenset({"plan"})}, may_abort=True
    ),
    "subtask.spawned": Operation(
        "The agent gives work to a sub-task.", BriefContext, {"pre": frozenset({"brief"})}, may_abort=True
    ),
    "help.decided": Operation(
        "The agent asks a person, or gives a person a task.",
        HelpContext,
        {"pre": frozenset({"decision"})},
        may_abort=True,
    ),
    "activity.failed": Operation(
        "An attempt to ask a model has failed; the outcome stays as it is.", ActivityContext, {"post": NOTHING}
    ),
    "activity.retried": Operation("A model is asked once more after a failure.", ActivityContext, {"post": NOTHING}),
    "task.started": _observed("A task has started: its first event."),
    "message.received": _observed("A participant's message was recorded."),
    "step.finished": _observed("A model step that asked for tools is done, and so are its calls."),
    "reply.sent": _observed("The agent, or a command, replied."),
    "state.changed": _observed("The task changed its state, or its data, without words."),
}


def parse_point(point: str) -> tuple[str, Phase]:
    """Split `<operation>.<phase>`.

    Raises:
        RegistryError: There is no such point.
    """
    operation, _, phase = point.rpartition(".")
    known = OPERATIONS.get(operation)
    for each in PHASES:
        if known is not None and phase == each and each in known.replaces:
            return operation, each
    raise RegistryError("hook point", point, "does not exist")


def point_names() -> list[str]:
    """List all points, in the catalogue's order."""
    return [f"{name}.{phase}" for name, operation in OPERATIONS.items() for phase in operation.replaces]
