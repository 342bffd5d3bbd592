"""Whether a task may be completed: the rule about sub-tasks, inside its hook chain (R3.5, R5.4, decision-007)."""

from temporalio import activity

from tiny_harness.errors import TaskNotFound
from tiny_harness.hooks import Hooks
from tiny_harness.hooks.contexts import CompletionContext, CompletionDecision
from tiny_harness.store import Store
from tiny_harness_engine.activities.edge import edge
from tiny_harness_engine.calls import JUDGE, Judgement, JudgeRequest
from tiny_harness_engine.subject import Subject, read_subject


class Completion:
    """Judges completions, bound to a store and to hooks."""

    def __init__(self, store: Store, hooks: Hooks) -> None:
        self._store = store
        self._hooks = hooks

    @property
    def waits_elsewhere(self) -> bool:
        """Whether hooks in other processes have a say."""
        return self._hooks.has_remote("task.complete")

    @activity.defn(name=JUDGE)
    async def judge_elsewhere(self, request: JudgeRequest) -> Judgement:
        """Judge a completion in an activity of its own, since hooks in other processes are asked."""
        with edge("judging task %s failed", request.task_id):
            subject = await self._store.read(lambda reading: read_subject(reading, request.task_id, request.sender))
            if subject is None:
                raise TaskNotFound(request.task_id)
            return await self.judge(subject, request.reason)

    async def judge(self, subject: Subject, reason: str | None) -> Judgement:
        """Ask the chain. An open sub-task says no, unless a hook says otherwise."""
        unresolved = subject.unresolved
        sender = subject.sender.id if subject.sender else ""
        context = CompletionContext(
            **subject.facts("task.complete"), requested_by=sender, reason=reason, unresolved=unresolved
        )
        outcome = await self._hooks.run(context, _decide)
        decision = outcome.context.result
        if outcome.failure is not None:
            return Judgement(refusal=str(outcome.failure), verdicts=outcome.verdicts)
        if outcome.refusal is not None:
            return Judgement(refusal=outcome.refusal, verdicts=outcome.verdicts)
        if decision is None or not decision.allowed:
            why = decision.reason if decision else None
            return Judgement(refusal=why or "it may not be completed", unresolved=unresolved, verdicts=outcome.verdicts)
        return Judgement(verdicts=outcome.verdicts)


async def _decide(context: CompletionContext) -> CompletionDecision:
    if context.unresolved:
        return CompletionDecision(allowed=False, reason="it has unresolved sub-tasks")
    return CompletionDecision(allowed=True)
