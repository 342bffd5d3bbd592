"""`run_tool`: one tool call through its hooks, recorded; at most once unless its server says that twice is as once."""

from typing import Any

from temporalio import activity

from tiny_harness.errors import HarnessError, TaskNotFound, ToolFailed, Unavailable
from tiny_harness.hooks import Hooks, Outcome, Verdict
from tiny_harness.hooks.contexts import ToolContext, ToolOutput
from tiny_harness.ids import new_id
from tiny_harness.store import CallRow, Store
from tiny_harness_engine.activities.beat import beating
from tiny_harness_engine.activities.recording import write_down
from tiny_harness_engine.activities.vetting import ActRefused, Vetting
from tiny_harness_engine.calls import RUN_TOOL, ToolRequest
from tiny_harness_engine.core.acts import Act
from tiny_harness_engine.core.steps import ToolAnswer
from tiny_harness_engine.core.transcript import CUT_OFF
from tiny_harness_engine.failures import to_failure
from tiny_harness_engine.intrinsics import INTRINSICS, Misuse, is_act, read_call
from tiny_harness_engine.records import CallRecord, CallResult, StepRecord
from tiny_harness_engine.subject import subject_of
from tiny_harness_engine.toolbox import Toolbox


class _Unknown(Exception):
    """The call may have been made before."""


class RunToolActivity:
    """`run_tool`, bound to a store, hooks and tools."""

    def __init__(self, store: Store, hooks: Hooks, tools: Toolbox) -> None:
        self._store = store
        self._hooks = hooks
        self._tools = tools
        self._vetting = Vetting(hooks)

    @activity.defn(name=RUN_TOOL)
    async def run_tool(self, request: ToolRequest) -> ToolAnswer:
        """Make sure that the call's outcome is in the store; one that is there is not asked for again."""
        async with beating():
            try:
                return await self._run(request)
            except Unavailable:
                raise
            except Exception as error:
                activity.logger.exception("call %s of task %s failed", request.call, request.task_id)
                raise to_failure(HarnessError()) from error

    async def _run(self, request: ToolRequest) -> ToolAnswer:
        row = await self._row(request)
        if row is not None and row.record is not None:
            return ToolAnswer(is_error=CallResult.model_validate_json(row.record).is_error)
        said = request.approval
        if said is not None and not said.allowed:
            refused = CallResult(text=f"It was refused by a person. {said.reason}".strip(), is_error=True)
            return await self._keep(request, refused, ())
        call = await self._call(request)
        if is_act(call.name):
            return await self._vet(request, call)
        outcome = await self._through_hooks(request, call)
        if isinstance(outcome, ToolAnswer):
            return outcome
        return await self._keep(request, _result(outcome), outcome.verdicts)

    async def _through_hooks(self, request: ToolRequest, call: CallRecord) -> Outcome[ToolContext] | ToolAnswer:
        task = await self._store.task(request.task_id)
        if task is None:
            raise TaskNotFound(request.task_id)
        tool = await self._tools.find(call.name)
        # A tool whose server is not there to say it is not, nor one that nobody knows; reading a skill is.
        is_idempotent = call.name in INTRINSICS or (tool is not None and tool.is_idempotent)
        context = ToolContext(
            **subject_of(task).facts("tool.invoked", request.attempt),
            turn=request.turn,
            step=request.step,
            call_id=call.call_id,
            tool=call.name,
            arguments=call.arguments,
            is_idempotent=is_idempotent,
            approved_by_a_person=request.approval is not None,
        )

        async def body(now: ToolContext) -> ToolOutput:
            if now.ask is not None and request.approval is None:
                raise _Asked(now.ask)
            if not is_idempotent:
                await self._claim(request)
            result = await self._tools.call(call, now.arguments)
            return ToolOutput(text=result.text, is_error=result.is_error)

        try:
            return await self._hooks.run(context, body)
        except _Asked as asked:
            return ToolAnswer(ask=f"The agent wants to call {call.name}. {asked.why}".strip())
        except (_Unknown, ToolFailed) as error:
            if isinstance(error, ToolFailed) and is_idempotent:
                return await self._keep(request, CallResult(text=str(error), is_error=True), ())
            text = CUT_OFF if isinstance(error, _Unknown) else str(error)
            kept = await self._keep(request, CallResult(text=text, is_error=True), ())
            return kept.model_copy(update={"is_unknown": isinstance(error, _Unknown)})

    async def _vet(self, request: ToolRequest, call: CallRecord) -> ToolAnswer:
        """Ask hooks of a call that changes the task. What they let pass the workflow applies; a refusal is recorded."""
        task = await self._store.task(request.task_id)
        if task is None:
            raise TaskNotFound(request.task_id)
        subject = subject_of(task)
        place: dict[str, Any] = {"turn": request.turn, "step": request.step, "call_id": call.call_id}
        left: list[Act] = []
        said: list[Verdict] = []

        async def body(now: ToolContext) -> ToolOutput:
            if now.ask is not None and request.approval is None:
                raise _Asked(now.ask)
            act = read_call(call.name, now.arguments)
            if isinstance(act, Misuse):
                raise ActRefused(act.text)
            vetted, verdicts = await self._vetting.vet(
                act, place, lambda operation: subject.facts(operation, request.attempt)
            )
            left.append(vetted)
            said.extend(verdicts)
            return ToolOutput(text="")

        context = ToolContext(
            **subject.facts("tool.invoked", request.attempt),
            **place,
            tool=call.name,
            arguments=call.arguments,
            is_idempotent=True,
            approved_by_a_person=request.approval is not None,
        )
        try:
            outcome = await self._hooks.run(context, body)
        except _Asked as asked:
            return ToolAnswer(ask=f"The agent wants to call {call.name}. {asked.why}".strip())
        except ActRefused as refused:
            result = CallResult(text=f"The call was refused: {refused.reason}", is_error=True)
            return await self._keep(request, result, refused.verdicts)
        verdicts = (*said, *outcome.verdicts)
        if left and outcome.failure is None and outcome.refusal is None:
            return ToolAnswer(act=left[0], verdicts=verdicts)
        return await self._keep(request, _result(outcome), verdicts)

    async def _claim(self, request: ToolRequest) -> None:
        """Take the call for this attempt: it is never made by another one."""
        ours = new_id()
        key = (request.task_id, request.turn, request.step, request.call)
        if await self._store.claim_call(*key, ours) != ours:
            raise _Unknown

    async def _keep(self, request: ToolRequest, result: CallResult, verdicts: tuple[Verdict, ...]) -> ToolAnswer:
        key = (request.task_id, request.turn, request.step, request.call)
        text = result.model_dump_json()
        kept = CallResult.model_validate_json(await write_down(lambda: self._store.save_call(*key, text)))
        return ToolAnswer(is_error=kept.is_error, verdicts=verdicts)

    async def _row(self, request: ToolRequest) -> CallRow | None:
        rows = await self._store.calls(request.task_id, [request.turn])
        return next((row for row in rows if (row.step, row.call) == (request.step, request.call)), None)

    async def _call(self, request: ToolRequest) -> CallRecord:
        record = await self._store.step(request.task_id, request.turn, request.step)
        if record is None:
            raise LookupError(f"no record of turn {request.turn}, step {request.step}")
        return StepRecord.model_validate_json(record).tool_calls[request.call]


class _Asked(Exception):
    """A hook wants a person to allow the call."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _result(outcome: Outcome[ToolContext]) -> CallResult:
    if outcome.failure is not None:
        return CallResult(text=f"The call failed: {outcome.failure}", is_error=True)
    if outcome.refusal is not None:
        return CallResult(text=f"The call was refused: {outcome.refusal}", is_error=True)
    output = outcome.context.result
    if output is None:
        return CallResult(text="The call has no result.", is_error=True)
    return CallResult(text=output.text, is_error=output.is_error)
