"""An engine without Temporal: decides with the real state machine, commits to the real store, tells the real bus."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from temporalio.client import Client

from tiny_harness.bus import Bus, Frame
from tiny_harness.contracts import Cancel, Delivery, Input, Receipt, TaskSnapshot
from tiny_harness.errors import InvalidInput, TaskNotFound
from tiny_harness.ext.stream import Delta
from tiny_harness.intake import fingerprint, message_cause, read_message
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.activities.committer import Committer
from tiny_harness_engine.agents.stand_ins import StandIns
from tiny_harness_engine.calls import CommitAnswer, CommitRequest
from tiny_harness_engine.core import commands, lifecycle
from tiny_harness_engine.core.commands import CommandDone
from tiny_harness_engine.core.drafts import Decision
from tiny_harness_engine.core.wire import render_delta
from tiny_harness_engine.records import StepRecord, reply_id
from tiny_harness_engine.runs import Runs
from tiny_harness_engine.supervisors import Supervisors


class FakeEngine:
    """Answers each turn with `re: turn N`; holds, fails and ignores when told to.

    Knows two commands: `/fast` is answered as it comes in, `/slow` when `finish_commands` says so.
    """

    def __init__(self, store: Store, bus: Bus) -> None:
        self.store = store
        self.bus = bus
        self.deliveries: list[Delivery] = []
        self.failure: Exception | None = None
        """Raised by every call."""
        self.ignores_cancel = False
        self._gate = asyncio.Event()
        self._gate.set()
        self._finish_commands = asyncio.Event()
        self.tells = asyncio.Event()
        """Cleared: what is in the store is in, but no receipt is given."""
        self.tells.set()
        # For families.
        self._commits = Committer(
            store, bus, cast(Runs, None), cast(StandIns, None), Supervisors(Settings(), cast(Client, None))
        )
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._group: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["FakeEngine"]:
        """Work on turns while the block runs."""
        async with asyncio.TaskGroup() as self._group:
            yield self
            self.release()
            self.finish_commands()
            self.tells.set()

    @property
    def is_holding(self) -> bool:
        return not self._gate.is_set()

    def hold(self) -> None:
        """Let no turn end."""
        self._gate.clear()

    def release(self) -> None:
        self._gate.set()

    def finish_commands(self) -> None:
        """Let every `/slow` be answered."""
        self._finish_commands.set()

    async def deliver(self, task_id: str, delivery: Delivery) -> Receipt:
        self.deliveries.append(delivery)
        if self.failure:
            raise self.failure
        intake = read_message(json.loads(delivery.message))
        cause = message_cause(intake.message_id)
        async with self._locks[task_id]:
            before = await self._state(task_id)
            written = await self.store.written(task_id, cause) if before else None
            if written:
                if written.digest not in (None, fingerprint(delivery.sender.id, intake)):
                    raise InvalidInput("reused_message_id", "message.messageId", "was used for other content before")
                return Receipt(seq=written.seq, received_as="repeat")
            command = intake.command.name if intake.command and intake.command.name in ("fast", "slow") else None
            if before is None:
                decision = lifecycle.open_task(task_id, delivery, intake, is_command=command is not None)
            else:
                decision = lifecycle.accept(before, delivery, intake, is_command=command is not None)
            if command == "fast":
                decision = commands.answer(decision, intake.message_id, _done(command))
            elif command:
                decision = commands.queue(decision, command, intake.message_id, delivery.sender)
            if not decision.drafts and before:
                return Receipt(seq=before.head, received_as=decision.received_as)
            answer = await self._commit(task_id, cause, before, decision, delivery)
            if command == "slow":
                assert self._group
                self._group.create_task(self._run_command(task_id, decision.snapshot.commands[-1]))
        assert answer.seq is not None
        await self.tells.wait()
        return Receipt(
            seq=answer.seq,
            received_as=decision.received_as,
            turn=decision.turn,
            is_answered=command == "fast",
        )

    async def cancel(self, task_id: str, cancel: Cancel) -> None:
        del cancel
        if self.failure:
            raise self.failure
        if self.ignores_cancel:
            return
        async with self._locks[task_id]:
            before = await self._state(task_id)
            assert before
            decision = lifecycle.cancel(before)
            if decision:
                await self._commit(task_id, "cancel", before, decision)

    def say_piece(self, task_id: str, text: str, index: int = 0) -> None:
        """Publish a delta."""
        delta = Delta(message_id=reply_id(task_id, 1, 1), turn=1, step=1, attempt=1, index=index, text=text)
        self.bus.publish(Frame(task_id, None, render_delta(task_id, "c", delta)))

    async def _state(self, task_id: str) -> TaskSnapshot | None:
        record = await self.store.task(task_id)
        return record.snapshot if record else None

    async def _commit(
        self,
        task_id: str,
        cause: str,
        before: TaskSnapshot | None,
        decision: Decision,
        delivery: Delivery | None = None,
    ) -> CommitAnswer:
        answer = await self._commits.commit(
            CommitRequest(
                task_id=task_id,
                cause=cause,
                head=before.head if before else 0,
                decision=decision,
                new_task=delivery.new_task if delivery and before is None else None,
            )
        )
        after = answer.snapshot
        if after is None:
            raise TaskNotFound(task_id)
        was_running = before is not None and lifecycle.is_running(before) and before.turn == after.turn
        if lifecycle.is_running(after) and not was_running:
            assert self._group
            self._group.create_task(self._run_turn(after))
        return answer

    async def _run_command(self, task_id: str, command: Input) -> None:
        await self._finish_commands.wait()
        async with self._locks[task_id]:
            before = await self._state(task_id)
            assert before
            decision = commands.end(before, command, _done("slow"))
            if decision:
                await self._commit(task_id, f"command:{command.seq}", before, decision)

    async def _run_turn(self, state: TaskSnapshot) -> None:
        await self._gate.wait()
        task_id, turn, step = state.task_id, state.turn, state.step
        record = StepRecord(message_id=reply_id(task_id, turn, step), text=f"re: turn {turn}")
        await self.store.save_step(task_id, turn, step, record.model_dump_json())
        async with self._locks[task_id]:
            before = await self._state(task_id)
            assert before
            decision = lifecycle.end_turn(before, turn, step)
            if decision:
                await self._commit(task_id, f"step:{turn}:{step}", before, decision)


def _done(name: str) -> CommandDone:
    return CommandDone(name=name, outcome="done", reply=f"/{name} done")
