"""Asking the model: the window, its hooks, the call and its hooks."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import cast

from tiny_harness.contracts import Usage
from tiny_harness.errors import ModelError
from tiny_harness.hooks import Hooks, Outcome, Verdict
from tiny_harness.hooks.contexts import ModelContext, ModelOutput, Window, WindowCall, WindowContext, WindowMessage
from tiny_harness.settings import Effort, Settings
from tiny_harness_engine.activities.compacting import NO_USAGE, Compacting
from tiny_harness_engine.calls import StepRequest
from tiny_harness_engine.core.prompt import Section, static_prefix, system_text, task_section
from tiny_harness_engine.core.supervision import works_here
from tiny_harness_engine.core.transcript import Conversation
from tiny_harness_engine.core.window import estimate
from tiny_harness_engine.models import (
    ModelMessage,
    ModelProvider,
    ModelRequest,
    ToolCall,
    ToolSpec,
    looks_at_tools,
)
from tiny_harness_engine.subject import Subject
from tiny_harness_engine.toolbox import Toolbox

OnText = Callable[[str], None]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking."""

    output: ModelOutput | None = None
    refusal: str | None = None
    """Why there is none: a hook refused, or failed."""
    used: Usage = NO_USAGE
    """Of other calls than this one, such as for a summary."""
    verdicts: tuple[Verdict, ...] = ()

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """What the model asks for before it goes on."""
        return tuple(ToolCall(**call.model_dump()) for call in self.output.tool_calls) if self.output else ()


@dataclass(frozen=True, slots=True)
class _Call:
    """What a call has beside its window."""

    request: StepRequest
    system: str
    tools: Sequence[ToolSpec]


class Asking:
    """Asks a model through hooks."""

    def __init__(
        self,
        settings: Settings,
        hooks: Hooks,
        model: ModelProvider,
        tools: Toolbox,
        sections: Sequence[Section],
        compacting: Compacting,
    ) -> None:
        self._settings = settings
        self._hooks = hooks
        self._model = model
        self._tools = tools
        self._compacting = compacting
        self._prefix = static_prefix(sections, tools.skills.catalogue_text())

    async def ask(self, request: StepRequest, subject: Subject, conversation: Conversation, on_text: OnText) -> Asked:
        """Ask. A point without executors costs nothing.

        Raises:
            ModelError: The provider failed.
        """
        if looks_at_tools(self._model):
            await self._tools.settle()
        system, tools = self._system(subject), self._tools.specs(is_worker=works_here(subject.snapshot))
        everything = conversation.window(request.turn, _fixed_tokens(system, tools))
        messages, used, noted = await self._compacting.fit(request, subject, everything)
        window = list(messages)
        shown: Outcome[WindowContext] | None = None
        if self._hooks.at("context.created"):
            shown = await self._show(request, subject, window)
            if shown.failure is not None or shown.context.result is None:
                why = str(shown.failure or "the window is empty")
                return Asked(refusal=why, used=used, verdicts=(*noted, *shown.verdicts))
            window = _from_window(shown.context.result.messages)
        before = (*noted, *(shown.verdicts if shown else ()))
        call = _Call(request, system, tools)
        if not self._hooks.at("llm.invoked"):
            return Asked(await self._call(call, window, on_text), used=used, verdicts=before)
        asked = await self._ask_through_hooks(call, subject, window, on_text)
        return replace(asked, used=used, verdicts=(*before, *asked.verdicts))

    def _system(self, subject: Subject) -> str:
        """What stands before the conversation, and is never cut."""
        task = subject.snapshot
        data = task_section(subject.text, task.participants, task.lifecycle, task.plan)
        return system_text(self._prefix, self._tools.skills.bodies(task.skills), data)

    async def _show(self, request: StepRequest, subject: Subject, window: list[ModelMessage]) -> Outcome[WindowContext]:
        async def body(_context: WindowContext) -> Window:
            return Window(messages=_to_window(window))

        context = WindowContext(
            **subject.facts("context.created", request.attempt), turn=request.turn, step=request.step
        )
        return await self._hooks.run(context, body)

    async def _ask_through_hooks(
        self, call: "_Call", subject: Subject, window: list[ModelMessage], on_text: OnText
    ) -> Asked:
        request = call.request
        # Whoever may still change the answer must see it before anybody else does.
        tell = _tell_nobody if self._hooks.at("llm.invoked", "post") else on_text

        async def body(context: ModelContext) -> ModelOutput:
            return await self._call(call, _from_window(context.messages), tell)

        context = ModelContext(
            **subject.facts("llm.invoked", request.attempt),
            turn=request.turn,
            step=request.step,
            model=self.chosen_model(request),
            effort=self._effort(request),
            messages=_to_window(window),
        )
        outcome = await self._hooks.run(context, body)
        if outcome.refusal is not None or outcome.failure is not None:
            return Asked(refusal=outcome.refusal or str(outcome.failure), verdicts=outcome.verdicts)
        return Asked(outcome.context.result, verdicts=outcome.verdicts)

    async def _call(self, call: "_Call", window: list[ModelMessage], on_text: OnText) -> ModelOutput:
        request = call.request
        asked = ModelRequest(
            request.turn,
            request.step,
            request.attempt,
            window,
            self._effort(request),
            self.chosen_model(request),
            call.system,
            call.tools,
        )
        reply = await self._model.reply(asked, on_text)
        if not reply.text.strip() and not reply.tool_calls:
            raise ModelError("it answered without a word", transient=True)
        return ModelOutput(
            text=reply.text,
            tool_calls=tuple(WindowCall(**asdict(call)) for call in reply.tool_calls),
            input_tokens=reply.usage.input_tokens,
            output_tokens=reply.usage.output_tokens,
            cached_tokens=reply.usage.cached_tokens,
        )

    def chosen_model(self, request: StepRequest) -> str | None:
        """The task's model, as long as it may still be chosen; `None`: the configured one."""
        if request.model is not None and request.model not in self._settings.choice.selectable:
            log.warning("task %s chose the model %s, which is no longer offered", request.task_id, request.model)
            return None
        return request.model

    def _effort(self, request: StepRequest) -> Effort | None:
        return cast(Effort | None, request.effort) or self._settings.choice.effort


def _fixed_tokens(system: str, tools: Sequence[ToolSpec]) -> int:
    """Estimate what stands before every window."""
    offered = (f"{tool.name} {tool.description} {json.dumps(tool.parameters)}" for tool in tools)
    return estimate(system) + sum(map(estimate, offered))


def _tell_nobody(_text: str) -> None:
    return None


def _to_window(messages: list[ModelMessage]) -> tuple[WindowMessage, ...]:
    return tuple(
        WindowMessage(
            role=message.role,
            text=message.text,
            message_id=message.message_id,
            tool_calls=tuple(WindowCall(**asdict(call)) for call in message.tool_calls),
            call_id=message.call_id,
            is_error=message.is_error,
        )
        for message in messages
    )


def _from_window(messages: tuple[WindowMessage, ...]) -> list[ModelMessage]:
    return [
        ModelMessage(
            message.role,
            message.text,
            message.message_id,
            tuple(ToolCall(**call.model_dump()) for call in message.tool_calls),
            message.call_id,
            message.is_error,
        )
        for message in messages
    ]
