"""What the stand-in of a remote sub-task does in the world: asks its agent, and tells its parent."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from temporalio import activity

from tiny_harness.contracts import CHILD_CHANGED, Child
from tiny_harness.errors import Unavailable
from tiny_harness.store import Store
from tiny_harness_engine.activities.beat import beating
from tiny_harness_engine.agents.book import AgentBook, unknown_agent
from tiny_harness_engine.agents.stand_ins import StandIns
from tiny_harness_engine.core.remote import Fault, Seen, StandIn, is_news
from tiny_harness_engine.remote_calls import (
    CANCEL_S,
    FOLLOW_CHILDREN,
    FOLLOW_S,
    REMOTE_CANCEL,
    REMOTE_FOLLOW,
    REMOTE_LOOK,
    REMOTE_SEND,
    REMOTE_TELL,
    RemoteAnswer,
    TellRequest,
)
from tiny_harness_engine.runs import Runs

if TYPE_CHECKING:
    from tiny_harness_engine.agents.agent import RemoteAgent

ROW_S: Final = 10.0
"""How long a stand-in waits for its parent to have the sub-task: it is started first, and the commit may be retried."""
TAKEN_S: Final = 2.0
"""How long a parent may take to write down what it was told, before it is told again."""
LOOK_S: Final = 0.05
STEADY_S: Final = 30.0
"""A stream that held for so long was a good one, also if it had nothing to say."""

Ask = Callable[["RemoteAgent"], Awaitable[Seen | None]]


class RemoteActivities:
    """Bound to a store, to the agents, and to Temporal."""

    def __init__(self, store: Store, book: AgentBook, stand_ins: StandIns, runs: Runs) -> None:
        self._store = store
        self._book = book
        self._stand_ins = stand_ins
        self._runs = runs

    @activity.defn(name=REMOTE_SEND)
    async def send(self, stand_in: StandIn) -> RemoteAnswer:
        """Give the agent its brief, once the parent has the sub-task."""
        async with beating():
            is_again = stand_in.is_again or activity.info().attempt > 1
            row = await self._row_in_time(stand_in)
            brief = await self._stand_ins.brief(stand_in.parent, stand_in.child) if row else None
            if row is None or brief is None or row.state.is_terminal:
                return RemoteAnswer(is_orphan=True, may_have_arrived=is_again)
            if row.remote_id is not None:
                known = row.remote_id
                return await self._ask(row, lambda agent: agent.look(known))
            return await self._ask(row, lambda agent: agent.send(row.task_id, brief, is_again=is_again))

    @activity.defn(name=REMOTE_LOOK)
    async def look(self, stand_in: StandIn) -> RemoteAnswer:
        """See how the remote task is."""
        async with beating():
            if await self._is_over(stand_in):
                return RemoteAnswer(is_orphan=True)
            return await self._ask(stand_in.child, lambda agent: agent.look(stand_in.child.remote_id or ""))

    @activity.defn(name=REMOTE_FOLLOW)
    async def follow(self, stand_in: StandIn) -> RemoteAnswer:
        """Follow the remote task until there is news, its stream ends, or it is time to look at the parent again."""
        async with beating():
            if await self._is_over(stand_in):
                return RemoteAnswer(is_orphan=True)
            clock = asyncio.get_running_loop().time
            begun = clock()
            answer = await self._ask(stand_in.child, lambda agent: _follow(agent, stand_in))
            return answer.model_copy(update={"was_steady": clock() - begun >= STEADY_S})

    @activity.defn(name=REMOTE_CANCEL)
    async def cancel(self, stand_in: StandIn) -> RemoteAnswer:
        """Cancel the remote task; no answer and no fault: there is none."""
        async with beating():
            try:
                async with asyncio.timeout(CANCEL_S):
                    return await self._ask(stand_in.child, lambda agent: _cancel(agent, stand_in.child))
            except TimeoutError:
                patience_s = self._book.patience_s(stand_in.child.agent)
                slow = Fault(kind="doubtful", reason="it did not stop in time")
                return RemoteAnswer(fault=slow, patience_s=patience_s)

    @activity.defn(name=REMOTE_TELL)
    async def tell(self, request: TellRequest) -> bool:
        """Tell the parent, until it has written it down; false if it has ended.

        A stand-in that has told the end is gone: nobody would tell it again.
        """
        async with beating():
            change = request.change
            if await self._has_heard(request):
                return True
            record = await self._store.task(request.parent)
            if record is None or record.snapshot.state.is_terminal:
                return False
            await self._runs.begin(request.parent, CHILD_CHANGED, change)
            async with _within(TAKEN_S, "the parent has not taken it yet"):
                while not await self._has_heard(request):  # noqa: ASYNC110 - the store sets no event
                    await asyncio.sleep(LOOK_S)
            return True

    @activity.defn(name=FOLLOW_CHILDREN)
    async def follow_children(self, task_id: str) -> None:
        """Start the stand-ins that a task's remote sub-tasks lack."""
        await self._stand_ins.ensure(task_id)

    async def _ask(self, child: Child, ask: Ask) -> RemoteAnswer:
        patience_s = self._book.patience_s(child.agent)
        agent = self._book.agent(child.agent)
        if agent is None:
            return RemoteAnswer(fault=unknown_agent(child.agent))
        from tiny_harness_engine.agents.fault import AgentFault  # late: with it comes the A2A library

        try:
            answer = RemoteAnswer(seen=await ask(agent), streams=await agent.streams(), patience_s=patience_s)
        except AgentFault as fault:
            answer = RemoteAnswer(fault=fault.value(), patience_s=patience_s)
        masked = RemoteAnswer.model_validate(agent.mask(answer.model_dump(mode="json")))
        if masked.fault is not None:
            activity.logger.warning("agent %s: %s", child.agent, masked.fault.reason)
        return masked

    async def _is_over(self, stand_in: StandIn) -> bool:
        record = await self._store.task(stand_in.parent)
        return record is None or record.snapshot.state.is_terminal

    async def _has_heard(self, request: TellRequest) -> bool:
        row = await self._row(request.parent, request.change.task_id)
        return row is not None and row.seq >= request.change.seq

    async def _row(self, parent: str, task_id: str) -> Child | None:
        """Find the sub-task's row; `None` if the parent does not have it, or has ended."""
        record = await self._store.task(parent)
        if record is None or record.snapshot.state.is_terminal:
            return None
        return next((child for child in record.snapshot.children if child.task_id == task_id), None)

    async def _row_in_time(self, stand_in: StandIn) -> Child | None:
        """Wait until the parent has the sub-task: nothing is sent before. A store that is away is waited for, too."""
        clock = asyncio.get_running_loop().time
        end = clock() + ROW_S
        while clock() < end:
            try:
                row = await self._row(stand_in.parent, stand_in.child.task_id)
                if row is not None or await self._is_over(stand_in):
                    return row
            except Unavailable:
                end = clock() + ROW_S
            await asyncio.sleep(LOOK_S)
        return None


async def _follow(agent: "RemoteAgent", stand_in: StandIn) -> Seen | None:
    from tiny_harness_engine.agents.fault import AgentFault

    remote_id = stand_in.child.remote_id or ""
    try:
        async with asyncio.timeout(FOLLOW_S):
            news = await agent.follow(remote_id, lambda seen: is_news(stand_in, seen))
    except TimeoutError:
        return None
    if news is None:
        return None
    try:
        return await agent.look(remote_id)  # a stream tells of the end, and not all that came of it
    except AgentFault:
        if news.state.is_terminal:
            return news
        raise


async def _cancel(agent: "RemoteAgent", child: Child) -> Seen | None:
    found = child.remote_id
    if found is None:
        seen = await agent.find(child.task_id)
        found = seen.remote_id if seen else None
    return await agent.cancel(found) if found else None


@asynccontextmanager
async def _within(seconds: float, otherwise: str) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise Unavailable(otherwise) from error
