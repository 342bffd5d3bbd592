"""Carries out the tool calls of a step: in their order, those that only read side by side (DESIGN: agent core)."""

import asyncio
from itertools import groupby
from typing import Final

from temporalio import workflow

from tiny_harness.contracts import TaskSnapshot
from tiny_harness_engine.calls import RUN_TOOL, STEP_HEARTBEAT, TOOL_RETRY, TOOL_TIMEOUT, ToolRequest
from tiny_harness_engine.core.steps import CallPlan, ToolAnswer
from tiny_harness_engine.workflows.outage import outlast

AT_ONCE: Final = 8
"""Calls of one step that run side by side."""


async def run_tools(state: TaskSnapshot, plans: tuple[CallPlan, ...]) -> dict[int, ToolAnswer]:
    """Run the tools of a step, until one of them needs a person.

    Returns:
        The answers by the calls' places; calls behind one that needs a person are not made.
    """
    answers: dict[int, ToolAnswer] = {}
    for is_parallel, group in groupby(plans, key=lambda plan: plan.is_parallel):
        batch = list(group)
        size = AT_ONCE if is_parallel else 1
        for start in range(0, len(batch), size):
            part = batch[start : start + size]
            done = await asyncio.gather(*(_run(state, plan) for plan in part))
            answers.update({plan.call: answer for plan, answer in zip(part, done, strict=True)})
            if any(answer.ask is not None or answer.is_unknown for answer in done):
                return answers
    return answers


async def _run(state: TaskSnapshot, plan: CallPlan) -> ToolAnswer:
    """Run one tool. Its worker may go away: the next attempt finds out what may be done again."""
    approval = next((said for said in state.approvals if said.call == plan.call), None)

    async def attempt(number: int) -> ToolAnswer:
        request = ToolRequest(
            task_id=state.task_id,
            turn=state.turn,
            step=state.step,
            call=plan.call,
            attempt=number,
            approval=approval,
        )
        return await workflow.execute_activity(
            RUN_TOOL,
            request,
            result_type=ToolAnswer,
            start_to_close_timeout=TOOL_TIMEOUT,
            heartbeat_timeout=STEP_HEARTBEAT,
            retry_policy=TOOL_RETRY,
        )

    return await outlast(attempt) or ToolAnswer(is_unknown=True)
