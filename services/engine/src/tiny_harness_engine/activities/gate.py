"""What hooks in other processes say of messages and tasks, asked before a model or a body sees them.

A receipt waits for nobody elsewhere, so these hooks are asked afterwards, in the activity that is about to use the
message; hooks in this process were asked before it was taken. What they said is recorded under the message's number:
it is asked once, and holds in every later window. A hook that is down lets nothing through.
"""

from collections.abc import Mapping

from tiny_harness.contracts import Sender
from tiny_harness.hooks import Hooks, Outcome, Verdict
from tiny_harness.hooks.contexts import RequestContext, TaskCreatedContext
from tiny_harness.store import Store
from tiny_harness_engine.core.transcript import Conversation, Line
from tiny_harness_engine.records import NO_TURN, GateRecord
from tiny_harness_engine.subject import Subject


class Gate:
    """Asks, and remembers; bound to a store and to hooks."""

    def __init__(self, store: Store, hooks: Hooks) -> None:
        self._store = store
        self._hooks = hooks

    async def rejection(self, subject: Subject) -> str | None:
        """Say why the task may not start; `None` if it may."""
        return (await self.admission(subject)).refusal

    async def admission(self, subject: Subject) -> GateRecord:
        """Say whether the task may start."""
        if not self._hooks.has_remote("task.created"):
            return GateRecord()
        task_id = subject.snapshot.task_id
        known = await self._store.step(task_id, NO_TURN, 0)
        if known is None:
            context = TaskCreatedContext(**subject.facts("task.created"), text=subject.text.goal or "")
            outcome = await self._hooks.run(context, where="elsewhere")
            record = GateRecord(refusal=_refusal(outcome), verdicts=outcome.verdicts)
            known = await self._store.save_step(task_id, NO_TURN, 0, record.model_dump_json())
        return GateRecord.model_validate_json(known)

    async def messages(
        self, subject: Subject, conversation: Conversation, senders: Mapping[str, Sender | None]
    ) -> tuple[dict[int, GateRecord], tuple[Verdict, ...]]:
        """Say what may be read of a conversation: the records by the messages' numbers, and what is worth keeping.

        Args:
            subject: The task.
            conversation: Its messages; new ones are asked about.
            senders: Of the messages that the step answers, by message id.
        """
        task_id = subject.snapshot.task_id
        records = {
            seq: GateRecord.model_validate_json(record)
            for seq, record in (await self._store.input_records(task_id)).items()
        }
        verdicts: tuple[Verdict, ...] = ()
        if self._hooks.has_remote("request.received"):
            for line in conversation.new:
                if line.seq not in records:
                    sender = senders.get(line.message.message_id)
                    outcome = await self._ask(Subject(subject.snapshot, subject.text, sender), line)
                    record = GateRecord(refusal=_refusal(outcome), text=_changed(outcome, line))
                    saved = await self._store.save_step(task_id, NO_TURN, line.seq, record.model_dump_json())
                    records[line.seq] = GateRecord.model_validate_json(saved)
                    verdicts += outcome.verdicts
        return records, verdicts

    async def _ask(self, subject: Subject, line: Line) -> Outcome[RequestContext]:
        context = RequestContext(
            **subject.facts("request.received"), message_id=line.message.message_id, text=line.message.text
        )
        return await self._hooks.run(context, where="elsewhere")


def _refusal(outcome: Outcome[RequestContext] | Outcome[TaskCreatedContext]) -> str | None:
    return outcome.refusal or (str(outcome.failure) if outcome.failure else None)


def _changed(outcome: Outcome[RequestContext], line: Line) -> str | None:
    return outcome.context.text if outcome.context.text != line.message.text else None
