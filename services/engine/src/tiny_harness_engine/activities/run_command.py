"""`run_command`: a command whose body is not ours, in an activity of its own, its body called at most once."""

import json

from temporalio import activity

from tiny_harness.errors import TaskNotFound
from tiny_harness.ext import stream
from tiny_harness.ids import new_id
from tiny_harness.intake import read_message
from tiny_harness.store import Store
from tiny_harness_engine.activities.beat import beating
from tiny_harness_engine.activities.command_chain import CommandChain
from tiny_harness_engine.activities.edge import edge
from tiny_harness_engine.activities.gate import Gate
from tiny_harness_engine.calls import RUN_COMMAND, CommandAnswer, CommandRequest
from tiny_harness_engine.core.commands import CommandDone
from tiny_harness_engine.records import NO_TURN, ClaimRecord
from tiny_harness_engine.subject import read_subject


class RunCommandActivity:
    """`run_command`, bound to its neighbours."""

    def __init__(self, store: Store, chain: CommandChain, gate: Gate) -> None:
        self._store = store
        self._chain = chain
        self._gate = gate

    @activity.defn(name=RUN_COMMAND)
    async def run_command(self, request: CommandRequest) -> CommandAnswer:
        """Run a recorded command, unless an attempt before this one may have called its body."""
        with edge("command %s of task %s failed", request.command.seq, request.task_id):
            async with beating():
                return await self._run(request)

    async def _run(self, request: CommandRequest) -> CommandAnswer:
        subject = await self._store.read(lambda reading: read_subject(reading, request.task_id, request.command.sender))
        if subject is None:
            raise TaskNotFound(request.task_id)
        admission = await self._gate.admission(subject)
        if admission.refusal is not None:
            return CommandAnswer(rejected=admission.refusal, verdicts=admission.verdicts)
        message = await self._message(request)
        call = read_message(message).command
        if call is None or not self._chain.knows(call):
            name = request.command.command
            return CommandAnswer(done=CommandDone(name=name, outcome="failed", reply=f"/{name} is gone from here"))
        if not await self._claim(request):
            reply = f"/{call.name} was cut off while it ran: whether it did anything is unknown"
            return CommandAnswer(done=CommandDone(name=call.name, outcome="failed", reply=reply))
        return CommandAnswer(done=await self._chain.run(subject, call, request.command.message_id))

    async def _message(self, request: CommandRequest) -> dict[str, object]:
        [event] = await self._store.events(request.task_id, request.command.seq - 1, 1)
        payload = json.loads(event.payload)
        if "task" in payload:
            return payload["task"]["history"][0]
        return payload["statusUpdate"]["metadata"][stream.KEY]["received"]

    async def _claim(self, request: CommandRequest) -> bool:
        """Take the command for this attempt; false if another one has it."""
        ours = ClaimRecord(claim=new_id()).model_dump_json()
        return await self._store.save_step(request.task_id, NO_TURN, request.command.seq, ours) == ours
