"""Makes a conversation fit into a model's window: three decisions, each replaceable by a hook (DESIGN: agent core)."""

from collections.abc import Mapping
from typing import Final

from tiny_harness.contracts import Usage
from tiny_harness.errors import ModelError
from tiny_harness.hooks import Hooks, Verdict
from tiny_harness.hooks.contexts import (
    CompactionDue,
    CompactionKeepContext,
    CompactionKept,
    CompactionSummariseContext,
    CompactionSummary,
    CompactionTriggerContext,
    WindowEntry,
)
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.calls import StepRequest
from tiny_harness_engine.core.compaction import (
    Budget,
    Compaction,
    applied,
    choose_kept,
    compact,
    is_due,
    is_worth_it,
    mend,
)
from tiny_harness_engine.core.summary import summary_request
from tiny_harness_engine.core.usage import call_usage
from tiny_harness_engine.core.window import Window, fit
from tiny_harness_engine.models import ModelMessage, ModelProvider, ModelRequest
from tiny_harness_engine.records import NO_TURN
from tiny_harness_engine.subject import Subject

NO_USAGE: Final = Usage()


class Compacting:
    """Compacts windows; bound to a store, hooks and a model."""

    def __init__(self, settings: Settings, store: Store, hooks: Hooks, model: ModelProvider) -> None:
        self._store = store
        self._hooks = hooks
        self._model = model
        self._settings = settings
        context = settings.context
        self._budget = Budget(
            window_tokens=settings.choice.context_window_tokens,
            compact_at=context.compact_at,
            keep=context.keep,
            summary_tokens=context.summary_tokens,
        )

    async def fit(
        self, request: StepRequest, subject: Subject, everything: Window
    ) -> tuple[tuple[ModelMessage, ...], Usage, tuple[Verdict, ...]]:
        """Make a conversation fit: leave out and sum up its oldest part if it must be.

        Args:
            request: The step.
            subject: Its task.
            everything: The conversation, nothing left out.

        Returns:
            The messages to send, what summing up used, and what is worth keeping of its hooks.
        """
        last = _last(await self._store.input_records(request.task_id))
        window = applied(everything, last)
        due, verdicts = await self._is_due(subject, window)
        used = NO_USAGE
        if due:
            kept, more = await self._kept(subject, window)
            verdicts += more
            if is_worth_it(window, kept, self._budget):
                words, used, more = await self._summary(request, subject, window, kept)
                verdicts += more
                record = compact(window, kept, words, self._budget, last)
                saved = await self._store.save_step(request.task_id, NO_TURN, -record.number, record.model_dump_json())
                window = applied(everything, Compaction.model_validate_json(saved))
        return fit(window, self._budget.window_tokens).messages, used, verdicts

    async def _is_due(self, subject: Subject, window: Window) -> tuple[bool, tuple[Verdict, ...]]:
        default = is_due(window, self._budget)
        if not self._hooks.at("compaction.trigger"):
            return default, ()

        async def body(_context: CompactionTriggerContext) -> CompactionDue:
            return CompactionDue(due=default)

        context = CompactionTriggerContext(
            **subject.facts("compaction.trigger"),
            tokens=window.tokens,
            window_tokens=self._budget.window_tokens,
        )
        outcome = await self._hooks.run(context, body)
        result = outcome.context.result
        return (result.due if result else default), outcome.verdicts

    async def _kept(self, subject: Subject, window: Window) -> tuple[frozenset[str], tuple[Verdict, ...]]:
        default = choose_kept(window, self._budget)
        if not self._hooks.at("compaction.keep"):
            return default, ()

        async def body(_context: CompactionKeepContext) -> CompactionKept:
            return CompactionKept(keys=tuple(default))

        entries = tuple(
            WindowEntry(key=entry.key, role=entry.message.role, tokens=entry.tokens) for entry in window.entries
        )
        context = CompactionKeepContext(
            **subject.facts("compaction.keep"), entries=entries, window_tokens=self._budget.window_tokens
        )
        outcome = await self._hooks.run(context, body)
        result = outcome.context.result
        return (mend(window, result.keys) if result else default), outcome.verdicts

    async def _summary(
        self, request: StepRequest, subject: Subject, window: Window, kept: frozenset[str]
    ) -> tuple[str, Usage, tuple[Verdict, ...]]:
        """Ask for the summary; where there is none, one is written by code."""
        budget = self._budget
        asked = summary_request(window, kept, budget.to_summarise(window), budget.summary_tokens)
        used: list[Usage] = []

        async def body(context: CompactionSummariseContext) -> CompactionSummary:
            message = ModelMessage("user", context.text)
            model = ModelRequest(request.turn, request.step, request.attempt, (message,), system=context.system)
            try:
                reply = await self._model.reply(model, lambda _text: None)
            except ModelError:
                return CompactionSummary(summary="")
            used.append(call_usage(self._settings.choice.model, reply.usage, self._settings.prices))
            return CompactionSummary(summary=reply.text)

        context = CompactionSummariseContext(
            **subject.facts("compaction.summarise"), system=asked.system, text=asked.text
        )
        if not self._hooks.at("compaction.summarise"):
            return (await body(context)).summary, sum_up(used), ()
        outcome = await self._hooks.run(context, body)
        result = outcome.context.result
        return (result.summary if result else ""), sum_up(used), outcome.verdicts


def sum_up(used: list[Usage]) -> Usage:
    """Add up what calls used."""
    total = NO_USAGE
    for each in used:
        total = total.plus(each)
    return total


def _last(records: Mapping[int, str]) -> Compaction | None:
    """The task's last compaction: records about inputs have numbers from 1, the task's own is 0."""
    newest = min(records, default=0)
    return Compaction.model_validate_json(records[newest]) if newest < 0 else None
