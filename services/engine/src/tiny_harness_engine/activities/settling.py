"""Commits what a message does to its task until it is in the store, whoever else writes (DESIGN: one log)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tiny_harness.contracts import Receipt, TaskSnapshot
from tiny_harness.errors import AlreadyAnswered, InvalidInput, TaskEnded, TaskNotFound, Unavailable
from tiny_harness.hooks import Verdict
from tiny_harness.store import Reading, Written
from tiny_harness_engine.activities.committer import Committer
from tiny_harness_engine.calls import CommitAnswer, CommitRequest, TakeAnswer
from tiny_harness_engine.core import lifecycle
from tiny_harness_engine.core.drafts import Decision
from tiny_harness_engine.core.incoming import Incoming
from tiny_harness_engine.subject import Subject, read_subject

COMMIT_PATIENCE_S: Final = 2.0
"""How long one commit may take: the task's other messages wait meanwhile."""

Decide = Callable[[TaskSnapshot | None], Decision]


@dataclass(frozen=True, slots=True)
class Known:
    """What the store has of a message and of its task, as of one moment."""

    subject: Subject | None
    written: Written | None


class Settling:
    """Settles messages, bound to a committer."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer

    async def settle(
        self, incoming: Incoming, state: TaskSnapshot | None, decide: Decide, verdicts: tuple[Verdict, ...] = ()
    ) -> TakeAnswer:
        """Decide and commit until the message's cause is in the store, or there is nothing to write."""
        while True:
            try:
                decision = _decide(decide, state)
            except AlreadyAnswered:
                told = await self.repeat(incoming, await self.look(incoming))
                if told is None:
                    raise
                return told  # it is the answer that closed the question
            if not decision.drafts and state is not None and not state.state.is_terminal:
                return TakeAnswer(snapshot=state, receipt=Receipt(seq=state.head, received_as=decision.received_as))
            kept = decision.model_copy(update={"verdicts": (*verdicts, *decision.verdicts)})
            answer = await self._commit(incoming, incoming.cause, state, kept)
            if answer.seq is not None:
                return self._told(incoming, answer, decision)
            state = answer.snapshot
            if state is not None and state.state.is_terminal:
                raise TaskEnded(state.task_id, state.state.word)

    async def look(self, incoming: Incoming) -> Known:
        """Look a message and its task up."""

        def read(reading: Reading) -> Known:
            subject = read_subject(reading, incoming.task_id, incoming.delivery.sender)
            return Known(subject, reading.written(incoming.task_id, incoming.cause))

        return await self._committer.store.read(read)

    async def repeat(self, incoming: Incoming, known: Known) -> TakeAnswer | None:
        """Answer a message that is in the store already: no hook or body sees it twice."""
        written, state = known.written, known.subject.snapshot if known.subject else None
        if written is None:
            return None
        if state is not None:
            # Whoever wrote it may have died before it could tell anybody.
            await self._committer.tell_parent(state)
            await self._committer.supervisors.tell(state)
        answer = CommitAnswer(snapshot=state, seq=written.seq, digest=written.digest)
        return self._told(incoming, answer, None)

    async def cut(self, incoming: Incoming, state: TaskSnapshot) -> TaskSnapshot:
        """Stop a running turn on behalf of a message that goes no further."""
        while (decision := lifecycle.cut_turn(state)) is not None:
            answer = await self._commit(incoming, f"cut:{state.turn}:{incoming.cause}", state, decision)
            if answer.snapshot is None:
                raise TaskNotFound(state.task_id)
            state = answer.snapshot
        return state

    async def load(self, task_id: str) -> TaskSnapshot | None:
        """Load a task's state."""
        record = await self._committer.store.task(task_id)
        return record.snapshot if record else None

    async def _commit(
        self, incoming: Incoming, cause: str, state: TaskSnapshot | None, decision: Decision
    ) -> CommitAnswer:
        request = CommitRequest(
            task_id=incoming.task_id,
            cause=cause,
            head=state.head if state else 0,
            decision=decision,
            new_task=incoming.delivery.new_task if state is None else None,
        )
        try:
            async with asyncio.timeout(COMMIT_PATIENCE_S):
                return await self._committer.commit(request)
        except TimeoutError:
            raise Unavailable("the store cannot answer now") from None

    def _told(self, incoming: Incoming, answer: CommitAnswer, decision: Decision | None) -> TakeAnswer:
        if answer.digest is not None and answer.digest != incoming.digest:
            raise InvalidInput("reused_message_id", "message.messageId", "was used for other content before")
        receipt = Receipt(seq=answer.seq or 0, received_as="repeat")
        if answer.wrote and decision is not None:
            receipt = Receipt(
                seq=answer.seq or 0,
                received_as=decision.received_as,
                turn=decision.turn,
                is_answered=any(incoming.intake.message_id in draft.in_reply_to for draft in decision.drafts),
            )
        return TakeAnswer(snapshot=answer.snapshot, receipt=receipt)


def _decide(decide: Decide, state: TaskSnapshot | None) -> Decision:
    try:
        return decide(state)
    except TaskEnded:
        if state is None:
            raise
        # A repeat of a message that came in before the end still gets its receipt: ask the store for its cause.
        return Decision(snapshot=state)
