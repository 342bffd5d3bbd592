"""Asking the model: the window, its hooks, the call and its hooks."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from tiny_harness.errors import ModelError
from tiny_harness.hooks import Hooks, Outcome, Verdict
from tiny_harness.hooks.contexts import ModelContext, ModelOutput, Window, WindowContext, WindowMessage
from tiny_harness.settings import Effort, Settings
from tiny_harness_engine.calls import StepRequest
from tiny_harness_engine.core.blocks import in_block
from tiny_harness_engine.core.transcript import Conversation
from tiny_harness_engine.models import ModelMessage, ModelProvider, ModelRequest
from tiny_harness_engine.subject import Subject

OnText = Callable[[str], None]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking."""

    output: ModelOutput | None = None
    refusal: str | None = None
    """Why there is none: a hook refused, or failed."""
    verdicts: tuple[Verdict, ...] = ()


class Asking:
    """Asks a model through hooks."""

    def __init__(self, settings: Settings, hooks: Hooks, model: ModelProvider) -> None:
        self._settings = settings
        self._hooks = hooks
        self._model = model

    async def ask(self, request: StepRequest, subject: Subject, conversation: Conversation, on_text: OnText) -> Asked:
        """Ask. A point without executors costs nothing.

        Raises:
            ModelError: The provider failed.
        """
        window = self._window(subject, conversation)
        shown: Outcome[WindowContext] | None = None
        if self._hooks.at("context.created"):
            shown = await self._show(request, subject, window)
            if shown.failure is not None or shown.context.result is None:
                return Asked(refusal=str(shown.failure or "the window is empty"), verdicts=shown.verdicts)
            window = _from_window(shown.context.result.messages)
        before = shown.verdicts if shown else ()
        if not self._hooks.at("llm.invoked"):
            return Asked(await self._call(request, window, on_text), verdicts=before)
        return await self._ask_through_hooks(request, subject, window, on_text, before)

    def _window(self, subject: Subject, conversation: Conversation) -> list[ModelMessage]:
        """The conversation, cut to what the model takes; the task's goal stands first and is never cut."""
        messages = conversation.window(self._settings.openai.context_window_tokens)
        if subject.text.goal is None:
            return messages
        goal = f"The goal of this task, as data:\n{in_block('goal', subject.text.goal)}"
        return [ModelMessage("user", goal), *messages]

    async def _show(self, request: StepRequest, subject: Subject, window: list[ModelMessage]) -> Outcome[WindowContext]:
        async def body(_context: WindowContext) -> Window:
            return Window(messages=_to_window(window))

        context = WindowContext(
            **subject.facts("context.created", request.attempt), turn=request.turn, step=request.step
        )
        return await self._hooks.run(context, body)

    async def _ask_through_hooks(
        self,
        request: StepRequest,
        subject: Subject,
        window: list[ModelMessage],
        on_text: OnText,
        before: tuple[Verdict, ...],
    ) -> Asked:
        # Whoever may still change the answer must see it before anybody else does.
        tell = _tell_nobody if self._hooks.at("llm.invoked", "post") else on_text

        async def body(context: ModelContext) -> ModelOutput:
            return await self._call(request, _from_window(context.messages), tell)

        context = ModelContext(
            **subject.facts("llm.invoked", request.attempt),
            turn=request.turn,
            step=request.step,
            model=self._chosen_model(request),
            effort=self._effort(request),
            messages=_to_window(window),
        )
        outcome = await self._hooks.run(context, body)
        verdicts = (*before, *outcome.verdicts)
        if outcome.refusal is not None or outcome.failure is not None:
            return Asked(refusal=outcome.refusal or str(outcome.failure), verdicts=verdicts)
        return Asked(outcome.context.result, verdicts=verdicts)

    async def _call(self, request: StepRequest, window: list[ModelMessage], on_text: OnText) -> ModelOutput:
        asked = ModelRequest(
            request.turn,
            request.step,
            request.attempt,
            window,
            self._effort(request),
            self._chosen_model(request),
        )
        reply = await self._model.reply(asked, on_text)
        if not reply.text.strip() and reply.tool_calls:
            raise ModelError(f"it asked for the tool {reply.tool_calls[0].name!r}, and there are no tools yet")
        if not reply.text.strip():
            raise ModelError("it answered without a word", transient=True)
        usage = reply.usage
        return ModelOutput(text=reply.text, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)

    def _chosen_model(self, request: StepRequest) -> str | None:
        """The task's model, as long as it may still be chosen; `None`: the configured one."""
        if request.model is not None and request.model not in self._settings.choice.selectable:
            log.warning("task %s chose the model %s, which is no longer offered", request.task_id, request.model)
            return None
        return request.model

    def _effort(self, request: StepRequest) -> Effort | None:
        return cast(Effort | None, request.effort) or self._settings.choice.effort


def _tell_nobody(_text: str) -> None:
    return None


def _to_window(messages: list[ModelMessage]) -> tuple[WindowMessage, ...]:
    return tuple(WindowMessage(role=m.role, text=m.text, message_id=m.message_id) for m in messages)


def _from_window(messages: tuple[WindowMessage, ...]) -> list[ModelMessage]:
    return [ModelMessage(message.role, message.text, message.message_id) for message in messages]
