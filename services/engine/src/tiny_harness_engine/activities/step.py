"""The model step: read the conversation, ask hooks and the model, record the answer. One activity."""

import random
from collections.abc import Sequence
from typing import Final

from temporalio import activity

from tiny_harness.bus import Bus
from tiny_harness.contracts import Usage
from tiny_harness.errors import ModelError
from tiny_harness.events import Event
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.activities.asking import Asking
from tiny_harness_engine.activities.attempts import Attempts
from tiny_harness_engine.activities.beat import beating
from tiny_harness_engine.activities.deltas import DeltaSender
from tiny_harness_engine.activities.family import tree_of
from tiny_harness_engine.activities.gate import Gate
from tiny_harness_engine.activities.recording import write_down
from tiny_harness_engine.activities.spending import Spending
from tiny_harness_engine.activities.vetting import Vetting
from tiny_harness_engine.calls import STEP, StepAnswer, StepRequest
from tiny_harness_engine.core.acting import TaskLimits
from tiny_harness_engine.core.acts import CreateTaskForParticipant, SpawnSubtask
from tiny_harness_engine.core.lifecycle import TurnReport
from tiny_harness_engine.core.steps import CallPlan
from tiny_harness_engine.core.transcript import NO_WORK, Conversation, Work, read_conversation, turns_with_work
from tiny_harness_engine.core.usage import call_usage
from tiny_harness_engine.models import ModelUsage
from tiny_harness_engine.records import CallResult, StepRecord, reply_id
from tiny_harness_engine.subject import Subject, subject_of
from tiny_harness_engine.toolbox import Toolbox

MAX_EVENTS: Final = 400
"""Events that the window is made of at most; keeps a step's cost independent of a conversation's age."""

MAX_RETRY_AFTER_S: Final = 600.0
"""A provider that wants to be left alone for longer is asked again all the same."""
JITTER: Final = 0.25
"""By which share of it a pause is longer by chance: many tasks fail at once."""


class StepActivity:
    """`step`, bound to a store, a bus, hooks and a model."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        bus: Bus,
        gate: Gate,
        asking: Asking,
        tools: Toolbox,
        vetting: Vetting,
        spending: Spending,
        attempts: Attempts,
    ) -> None:
        self._settings = settings
        self._attempts = attempts
        self._spending = spending
        self._store = store
        self._bus = bus
        self._gate = gate
        self._asking = asking
        self._tools = tools
        self._vetting = vetting
        self._limits = TaskLimits(
            max_depth=settings.tasks.max_depth,
            max_children=settings.tasks.max_children,
            agents=tuple(settings.agents),
            workers=tuple(settings.supervision.workers),
        )

    @activity.defn(name=STEP)
    async def step(self, request: StepRequest) -> StepAnswer:
        """Make sure that the step's answer is in the store; a recorded one is not asked for again."""
        async with beating():
            recorded = await self._store.step(request.task_id, request.turn, request.step)
            if recorded is not None:
                record = StepRecord.model_validate_json(recorded)
                report = TurnReport(usage=self._usage(record), refused=record.refused)
                return await self._planned(request.task_id, record, report)
            try:
                await self._attempts.retried(request)
                return await self._work(request)
            except ModelError as error:
                answer = self._failed(request, error)
                await self._attempts.failed(request, answer)
                return answer

    def _failed(self, request: StepRequest, error: ModelError) -> StepAnswer:
        """Say whether the provider is asked again, and when: a little later each time, and not all tasks at once."""
        pauses = self._settings.retries.model
        if not error.transient or request.failures >= len(pauses):
            return StepAnswer(failure=str(error))
        least = max(pauses[request.failures], min(error.retry_after_s or 0.0, MAX_RETRY_AFTER_S))
        return StepAnswer(failure=str(error), is_transient=True, pause_s=least * random.uniform(1.0, 1.0 + JITTER))

    async def _work(self, request: StepRequest) -> StepAnswer:
        task = await self._store.task(request.task_id)
        if task is None:
            raise ModelError("its task is gone")
        subject = subject_of(task)
        rejected = await self._gate.rejection(subject)
        if rejected is not None:
            return StepAnswer(rejected=rejected)
        events = await self._store.words(request.task_id, MAX_EVENTS)
        reading = [message.message_id for message in request.reading]
        conversation = read_conversation(events, reading, await self._work_of(request.task_id, events))
        if reading and not conversation.asked and request.step == 1:
            return StepAnswer(failure="The message was lost with the store's last changes. Please send it again.")
        senders = {message.message_id: message.sender for message in request.reading}
        gates, verdicts = await self._gate.messages(subject, conversation, senders)
        refusals = conversation.refusals(gates)
        report = TurnReport(refused=tuple(refusals), verdicts=verdicts)
        if refusals and len(refusals) == len(conversation.asked):
            text = "Refused: " + "; ".join(dict.fromkeys(refusals.values()))
            record = StepRecord(message_id=_reply_id(request), text=text, refused=report.refused, calls=0)
            await self._record(request, record)
            return StepAnswer(report=report)
        objection = await self._spending.objection(subject.snapshot)
        if objection is not None:
            return StepAnswer(over_budget=f"The budget is spent: {objection}. Shall I go on with one more?")
        return await self._answer(request, subject, conversation.gated(gates), report)

    async def _answer(
        self, request: StepRequest, subject: Subject, conversation: Conversation, report: TurnReport
    ) -> StepAnswer:
        deltas = DeltaSender(self._bus, request)
        try:
            asked = await self._asking.ask(request, subject, conversation, deltas.add)
        finally:
            deltas.close()
        report = report.model_copy(update={"verdicts": (*report.verdicts, *asked.verdicts), "usage": asked.used})
        if asked.output is None:
            return StepAnswer(failure=asked.refusal or "", report=report)
        record = StepRecord(
            message_id=_reply_id(request),
            text=asked.output.text,
            tool_calls=await self._tools.record(asked.tool_calls),
            input_tokens=asked.output.input_tokens,
            output_tokens=asked.output.output_tokens,
            cached_tokens=asked.output.cached_tokens,
            model=self._asking.chosen_model(request) or self._settings.choice.model,
            refused=report.refused,
        )
        await self._record(request, record)
        used = report.model_copy(update={"usage": asked.used.plus(self._usage(record))})
        return await self._planned(request.task_id, record, used)

    async def _planned(self, task_id: str, record: StepRecord, report: TurnReport) -> StepAnswer:
        """Answer with the calls that are to be carried out, and with what limits them."""
        calls, limits = self._plan(record), self._limits
        if any(isinstance(plan.act, SpawnSubtask | CreateTaskForParticipant) for plan in calls):
            task = await self._store.task(task_id)
            size = len(await tree_of(self._store, task.snapshot)) if task else 0
            limits = limits.model_copy(update={"tree_room": max(self._settings.tasks.max_tree - size, 0)})
        return StepAnswer(report=report, calls=calls, limits=limits)

    def _plan(self, record: StepRecord) -> tuple[CallPlan, ...]:
        """Say how each call is to be carried out; the answer decides what the workflow schedules."""
        return tuple(
            plan.model_copy(update={"must_vet": plan.act is not None and self._vetting.is_wanted(plan.act)})
            for plan in self._tools.plan(record.tool_calls)
        )

    def _usage(self, record: StepRecord) -> Usage:
        """Count the call that a record is of; a policy's answer was none."""
        if not record.calls:
            return Usage()
        used = ModelUsage(record.input_tokens, record.output_tokens, record.cached_tokens)
        return call_usage(record.model or self._settings.choice.model, used, self._settings.prices)

    async def _work_of(self, task_id: str, events: Sequence[Event]) -> Work:
        """Load what the turns in these events did with tools."""
        turns = turns_with_work(events)
        if not turns:
            return NO_WORK
        rows = await self._store.steps(task_id, turns)
        steps = {(row.turn, row.step): StepRecord.model_validate_json(row.record) for row in rows}
        results: dict[tuple[int, int], dict[int, CallResult]] = {}
        for row in await self._store.calls(task_id, turns):
            if row.record is not None:
                found = CallResult.model_validate_json(row.record)
                results.setdefault((row.turn, row.step), {})[row.call] = found
        return Work(steps, results)

    async def _record(self, request: StepRequest, answer: StepRecord) -> None:
        """Keep an answer that was paid for, also if the store needs a while to take it."""
        text = answer.model_dump_json()
        await write_down(lambda: self._store.save_step(request.task_id, request.turn, request.step, text))


def _reply_id(request: StepRequest) -> str:
    return reply_id(request.task_id, request.turn, request.step)
