"""`take`: a message on its way into a task, in one local activity: recognised, seen by hooks, decided, committed.

What is to be scheduled next is in its answer, so a replay never depends on which plugins an engine has (DESIGN: hooks).
"""

from dataclasses import replace

from temporalio import activity

from tiny_harness import access
from tiny_harness.contracts import TaskSnapshot
from tiny_harness.errors import (
    HarnessError,
    RefusedByPolicy,
    TaskEnded,
    TaskNotFound,
    Unavailable,
    UnresolvedSubTasks,
    pack,
)
from tiny_harness.ext.task import TaskText
from tiny_harness.hooks import Hooks, Verdict
from tiny_harness.hooks.contexts import RequestContext, TaskCreatedContext
from tiny_harness.intake import CommandCall, authorise
from tiny_harness_engine.activities.command_chain import CommandChain
from tiny_harness_engine.activities.completion import Completion
from tiny_harness_engine.activities.edge import edge
from tiny_harness_engine.activities.settling import Settling
from tiny_harness_engine.calls import TAKE, Judgement, TakeAnswer, TakeRequest
from tiny_harness_engine.core import commands
from tiny_harness_engine.core.drafts import Decision
from tiny_harness_engine.core.incoming import Incoming, read_delivery
from tiny_harness_engine.core.naming import first_text
from tiny_harness_engine.subject import Subject


class TakeActivity:
    """`take`, bound to its neighbours."""

    def __init__(self, settling: Settling, hooks: Hooks, chain: CommandChain, completion: Completion) -> None:
        self._settling = settling
        self._hooks = hooks
        self._chain = chain
        self._completion = completion

    @activity.defn(name=TAKE)
    async def take(self, request: TakeRequest) -> TakeAnswer:
        """Take a message. A refusal is an answer, too."""
        with edge("a message to task %s could not be taken", request.task_id):
            try:
                return await self._take(request)
            except Unavailable:
                raise
            except HarnessError as error:
                return await self._refused(request, error)

    async def _refused(self, request: TakeRequest, error: HarnessError) -> TakeAnswer:
        """Answer a refusal, unless it rests on a state that the store is ahead of: Temporal may have forgotten commits.

        Then it is decided once more. What would be refused wrongly otherwise is the answer to a question that the run
        has not heard of yet.
        """
        now = await self._settling.load(request.task_id)
        if request.snapshot is None or now is None or now.head <= request.snapshot.head:
            return TakeAnswer(snapshot=request.snapshot, refusal=pack(error))
        try:
            return await self._take(request.model_copy(update={"snapshot": now}))
        except Unavailable:
            raise
        except HarnessError as again:
            return TakeAnswer(snapshot=now, refusal=pack(again))

    async def _take(self, request: TakeRequest) -> TakeAnswer:
        incoming = read_delivery(request.task_id, request.delivery)
        state = request.snapshot
        if state is None and request.delivery.new_task is None:
            state = await self._settling.load(request.task_id)
        if state is None and incoming.intake.kind == "control":
            raise TaskNotFound(request.task_id)
        call = incoming.intake.command
        is_command = self._chain.knows(call)
        if state is not None:
            authorise(state.task_id, state.participants, incoming.delivery.sender.id, incoming.intake)
            if call is not None and not is_command:
                access.check(state.task_id, state.participants, incoming.delivery.sender.id, "send a message")
        if is_command and call is not None:
            return await self._take_command(incoming, state, call)
        if _completes(incoming) and state is not None:
            return await self._take_completion(incoming, state, request.judgement)
        return await self._take_message(incoming, state)

    async def _take_message(self, incoming: Incoming, state: TaskSnapshot | None) -> TakeAnswer:
        """Words, data, an interrupt. Hooks in this process see words first, and may refuse or replace them."""
        has_words = incoming.intake.kind == "message"
        if not (has_words and self._hooks.at("request.received")) and not self._hooks.at("task.created"):
            return await self._settling.settle(incoming, state, incoming.record)
        subject = await self._meet(incoming, state)
        if isinstance(subject, TakeAnswer):
            return subject
        verdicts = await self._let_start(subject, incoming, state)
        if has_words:
            context = RequestContext(
                **subject.facts("request.received"),
                message_id=incoming.intake.message_id,
                text=incoming.intake.text,
            )
            outcome = await self._hooks.run(context, where="here")
            _refuse(outcome.refusal, outcome.failure)
            incoming = incoming.with_text(outcome.context.text)
            verdicts += outcome.verdicts
        return await self._settling.settle(incoming, state, incoming.record, verdicts)

    async def _take_command(self, incoming: Incoming, state: TaskSnapshot | None, call: CommandCall) -> TakeAnswer:
        """A command runs here and now, or is recorded and runs in an activity of its own."""
        subject = await self._meet(incoming, state)
        if isinstance(subject, TakeAnswer):
            return subject
        verdicts = await self._let_start(subject, incoming, state)
        message_id, sender = incoming.intake.message_id, incoming.delivery.sender
        done = await self._chain.run(subject, call, message_id) if self._chain.is_instant(call) else None

        def decide(now: TaskSnapshot | None) -> Decision:
            recorded = incoming.record(now, is_command=True)
            if done is None:
                return commands.queue(recorded, call.name, message_id, sender)
            return commands.answer(recorded, message_id, done)

        return await self._settling.settle(incoming, state, decide, verdicts)

    async def _take_completion(
        self, incoming: Incoming, state: TaskSnapshot, judgement: Judgement | None
    ) -> TakeAnswer:
        """Complete a task if its chain lets it. A refused one cuts a running turn all the same, and parks."""
        subject = await self._meet(incoming, state)
        if isinstance(subject, TakeAnswer):
            return subject
        if judgement is None and self._completion.waits_elsewhere:
            return TakeAnswer(snapshot=await self._settling.cut(incoming, state), must_judge=True)
        if judgement is None:
            judgement = await self._completion.judge(subject, incoming.intake.reason)
        if judgement.refusal is None:
            return await self._settling.settle(incoming, state, incoming.record, judgement.verdicts)
        error: HarnessError = RefusedByPolicy(judgement.refusal)
        if judgement.unresolved:
            error = UnresolvedSubTasks(state.task_id, judgement.unresolved)
        return TakeAnswer(snapshot=await self._settling.cut(incoming, state), refusal=pack(error))

    async def _meet(self, incoming: Incoming, state: TaskSnapshot | None) -> Subject | TakeAnswer:
        """The task as hooks are to see it, as it is or as the message would start it; or a repeat's answer.

        Raises:
            TaskEnded: It has ended, and the message is no repeat.
        """
        known = await self._settling.look(incoming)
        repeat = await self._settling.repeat(incoming, known)
        if repeat is not None:
            return repeat
        sender = incoming.delivery.sender
        if state is None:
            opened = incoming.record(None, is_command=True).snapshot
            return Subject(opened, first_text(incoming.intake.patch, ""), sender)
        if state.state.is_terminal:
            raise TaskEnded(state.task_id, state.state.word)
        if known.subject is None:
            return Subject(state, TaskText(), sender)
        # Temporal may have forgotten our last commit: limits are those of what the store has.
        is_behind = known.subject.snapshot.head > state.head
        return known.subject if is_behind else replace(known.subject, snapshot=state)

    async def _let_start(self, subject: Subject, incoming: Incoming, state: TaskSnapshot | None) -> tuple[Verdict, ...]:
        """Ask the hooks in this process whether a new task may start."""
        if state is not None or not self._hooks.at("task.created"):
            return ()
        context = TaskCreatedContext(**subject.facts("task.created"), text=incoming.intake.text)
        outcome = await self._hooks.run(context, where="here")
        _refuse(outcome.refusal, outcome.failure)
        return outcome.verdicts


def _completes(incoming: Incoming) -> bool:
    """Whether a message ends its task as done: its people may say so, and its worker."""
    update = incoming.intake.update
    return incoming.intake.control == "complete" or (update is not None and update.status == "done")


def _refuse(refusal: str | None, failure: HarnessError | None) -> None:
    if refusal is not None or failure is not None:
        raise RefusedByPolicy(refusal or str(failure))
