"""Histories of workflows as earlier versions wrote them: today's code goes on with each of them.

`python -m tests.replay.record` writes them; a change that breaks one breaks the open tasks of everybody who upgrades.
"""

import json

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from tests.replay.record import HISTORIES
from tiny_harness.seal import UNSEALED_RING
from tiny_harness.temporal.sealing import data_converter
from tiny_harness_engine.workflows.heartbeat import HeartbeatWorkflow
from tiny_harness_engine.workflows.push import PushWorkflow
from tiny_harness_engine.workflows.remote import RemoteTaskWorkflow
from tiny_harness_engine.workflows.supervisor import SupervisorWorkflow
from tiny_harness_engine.workflows.task import TaskWorkflow

KINDS = [TaskWorkflow, SupervisorWorkflow, HeartbeatWorkflow, PushWorkflow, RemoteTaskWorkflow]
FILES = {file.stem: file.read_text() for file in sorted(HISTORIES.glob("*.json"))}


@pytest.mark.parametrize("name", FILES)
async def test_a_recorded_history_is_gone_on_with(name: str) -> None:
    body = json.loads(FILES[name])
    replayer = Replayer(workflows=KINDS, data_converter=data_converter(UNSEALED_RING))
    await replayer.replay_workflow(WorkflowHistory.from_json(body.pop("workflowId"), body))


@pytest.mark.parametrize("kind", ["TaskWorkflow", "SupervisorWorkflow"])
def test_each_kind_of_long_run_is_among_them(kind: str) -> None:
    assert [name for name in FILES if f"-{kind}-" in name]
