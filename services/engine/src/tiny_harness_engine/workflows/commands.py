"""Runs the commands that a task has recorded, in order, beside its turns (DESIGN: commands never wait for a turn)."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError

from tiny_harness.contracts import Input, TaskSnapshot
from tiny_harness.errors import HarnessError
from tiny_harness_engine.calls import (
    COMMAND_RETRY,
    COMMAND_TIMEOUT,
    RUN_COMMAND,
    STEP_HEARTBEAT,
    CommandAnswer,
    CommandRequest,
)
from tiny_harness_engine.core import commands, lifecycle
from tiny_harness_engine.core.commands import CommandDone
from tiny_harness_engine.core.drafts import Decision
from tiny_harness_engine.workflows.ledger import Ledger
from tiny_harness_engine.workflows.outage import outlast


class CommandQueue:
    """The commands of a task that wait, or run."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._working: asyncio.Task[None] | None = None
        ledger.on_change.append(self._look)

    def _look(self) -> None:
        """Start to work when there is something to run; stop when the task has ended."""
        state = self._ledger.state
        if self._working is not None:
            if not self._ledger.is_open:
                self._working.cancel()
        elif self._ledger.is_open and state is not None and state.commands:
            self._working = asyncio.create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._ledger.is_open and (state := self._ledger.state) and state.commands:
                await self._end(state.commands[0], await self._run(state.commands[0]))
        except Exception:  # noqa: BLE001 - a bug costs one call: the next change of the task looks again
            workflow.logger.exception("a command could not be ended")
        finally:
            self._working = None

    async def _run(self, command: Input) -> CommandAnswer:
        async def attempt(number: int) -> CommandAnswer:
            # A worker may have gone in the one before: this one finds out whether the body was called.
            return await workflow.execute_activity(
                RUN_COMMAND,
                CommandRequest(task_id=self._ledger.task_id, command=command, attempt=number),
                result_type=CommandAnswer,
                start_to_close_timeout=COMMAND_TIMEOUT,
                heartbeat_timeout=STEP_HEARTBEAT,
                retry_policy=COMMAND_RETRY,
            )

        try:
            answer = await outlast(attempt)
        except ActivityError as error:
            workflow.logger.warning("command %s failed: %s", command.seq, error.cause)
            answer = None
        if answer is not None:
            return answer
        return CommandAnswer(done=CommandDone(name=command.command, outcome="failed", reply=str(HarnessError())))

    async def _end(self, command: Input, answer: CommandAnswer) -> None:
        def decide(state: TaskSnapshot | None) -> Decision | None:
            if state is None:
                return None
            if answer.rejected is not None or answer.done is None:
                return lifecycle.reject(state, answer.rejected or str(HarnessError()), answer.verdicts)
            return commands.end(state, command, answer.done)

        async with self._ledger.lock:
            await self._ledger.commit(f"command:{command.seq}", decide)
