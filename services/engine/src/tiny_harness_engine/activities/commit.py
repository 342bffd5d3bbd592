"""`commit` and `load`: the workflow's way to the store."""

from temporalio import activity

from tiny_harness_engine.activities.committer import Committer
from tiny_harness_engine.activities.edge import edge
from tiny_harness_engine.calls import COMMIT, LOAD, CommitAnswer, CommitRequest


class CommitActivities:
    """`commit` and `load`, bound to a committer."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer

    @activity.defn(name=COMMIT)
    async def commit(self, request: CommitRequest) -> CommitAnswer:
        """Write a decision by its cause; a repeat, or a task that has gone on, writes nothing."""
        with edge("commit %s failed", request.cause):
            return await self._committer.commit(request)

    @activity.defn(name=LOAD)
    async def load(self, task_id: str) -> CommitAnswer:
        """Load a task's snapshot."""
        record = await self._committer.store.task(task_id)
        return CommitAnswer(snapshot=record.snapshot if record else None)
