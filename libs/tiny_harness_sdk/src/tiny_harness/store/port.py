"""The store as the services see it: the truth about tasks, behind one port.

The engine commits; the gateway reads, and writes only requests (idempotency keys, cancel requests). All times are UTC
and the database's own.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.events import Event, EventKind
from tiny_harness.ext.task import ParticipantKind
from tiny_harness.hooks import Verdict
from tiny_harness.push import PushKey
from tiny_harness.states import TaskState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that a commit wants to write; its payload is made once it is known what the commit finds."""

    kind: EventKind
    render: Callable[[int, datetime, str], str]
    """Makes the StreamResponse JSON from (seq, time of the commit, the task's words after it as JSON)."""
    digest: str | None = None
    """Of an input: SHA-256 of its parts."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One transaction on one task."""

    task_id: str
    cause: str
    """Names the input that leads to this commit, independent of order; unique per task."""
    head: int
    """The last event that the writer knows."""
    events: Sequence[NewEvent]
    snapshot: TaskSnapshot
    """The task as it is afterwards; its `head` is set by the store."""
    text: str
    """The task's words (`TaskText`) as JSON, or "" to leave them as they are."""
    verdicts: Sequence[Verdict] = ()
    """What hooks did on the way; kept only if the commit writes."""


@dataclass(frozen=True, slots=True)
class Written:
    """A cause that the store knows."""

    cause: str
    seq: int
    """Number of its first event."""
    digest: str | None


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit found or made. The writer adopts `snapshot` as its state."""

    snapshot: TaskSnapshot
    written: Written | None
    """The commit's own cause in the store, whoever wrote it; `None`: it is not there, decide again and commit again."""
    events: Sequence[Event]
    """What this call wrote, to be published. Empty if it wrote nothing."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task as the store holds it."""

    snapshot: TaskSnapshot
    text: str
    """`TaskText` as JSON."""
    created_at: datetime
    updated_at: datetime
    """When its last event was written."""


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which of a participant's tasks to list, newest change first."""

    participant_id: str
    context_id: str | None = None
    state: TaskState | None = None
    updated_after: datetime | None = None
    limit: int = 50
    after: tuple[datetime, str] | None = None
    """(updated_at, task_id) of the last task of the page before."""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of tasks, and how many there are over all pages."""

    tasks: Sequence[TaskRecord]
    total: int


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """A cancel that a participant asked for and that the task has not answered yet."""

    task_id: str
    requested_by: str


@dataclass(frozen=True, slots=True)
class KeptVerdict:
    """What a hook did, and the commit that it rode in."""

    cause: str
    verdict: Verdict
    at: datetime


@dataclass(frozen=True, slots=True)
class EngineReport:
    """What an engine last said of itself."""

    engine_id: str
    digest: str
    """Of its catalogue."""
    health: str
    """JSON."""
    age: timedelta
    """How long ago that was."""


@dataclass(frozen=True, slots=True)
class KeptToken:
    """A bearer token as the store knows it: everything but the token."""

    token_id: str
    """Names it to people."""
    participant_id: str
    """Who speaks with it."""
    kind: ParticipantKind
    note: str
    """What it is for, in its maker's words."""
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    is_expired: bool
    """By the database's clock."""


PushStatus = Literal["ok", "failing", "disabled"]


@dataclass(frozen=True, slots=True)
class KeptPush:
    """A push configuration, and how far it was served."""

    key: PushKey
    url: str
    secret: bytes
    """Sealed."""
    delivered_seq: int
    """Number of the last event that its receiver has taken."""
    status: PushStatus
    failures: int
    """Attempts that failed since the last one that did not."""


@dataclass(frozen=True, slots=True)
class ChangedTask:
    """A task as an observer finds it."""

    task_id: str
    updated_at: datetime
    is_behind: bool
    """Whether it has events that the observer has not had."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step's outcome."""

    turn: int
    step: int
    record: str


@dataclass(frozen=True, slots=True)
class CallRow:
    """A tool call of a step."""

    turn: int
    step: int
    call: int
    """Its place within the step, from 0."""
    claim: str | None
    """Who was about to make it, if it may be made once only."""
    record: str | None
    """What came of it, once that is known."""


class Reading(Protocol):
    """Reads that are asked for together: all of them see the same moment.

    Those that `Store` has alone, too, mean the same there.
    """

    def task(self, task_id: str) -> TaskRecord | None: ...

    def task_of(self, participant_id: str, task_id: str) -> TaskRecord | None: ...

    def written(self, task_id: str, cause: str) -> Written | None: ...

    def words(self, task_id: str, limit: int, before: int | None = None) -> Sequence[Event]: ...

    def snapshots(self, task_ids: Sequence[str]) -> dict[str, TaskSnapshot]: ...

    def list_tasks(self, query: TaskQuery) -> TaskPage:
        """List a participant's tasks, newest change first."""
        ...

    def acknowledged(self, task_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """List who acknowledged each of some tasks, the first first; tasks that nobody did are left out."""
        ...


class Store(Protocol):
    """A place where tasks live. Opened by whoever built it, closed by the same.

    Every method raises `Unavailable` when the database cannot answer.
    """

    async def commit(self, commit: Commit) -> Committed:
        """Write a task's next events in one transaction, or say what was there already.

        Cause known, task ended, or store ahead of `commit.head`: nothing is written. Store behind `commit.head`: a
        `lost` event takes the numbers in between.
        """
        ...

    async def read(self, look: Callable[[Reading], T]) -> T:
        """Read several things as of one moment: `look` only reads, and waits for nothing; what it raises comes out."""
        ...

    async def task(self, task_id: str) -> TaskRecord | None:
        """Load a task."""
        ...

    async def task_of(self, participant_id: str, task_id: str) -> TaskRecord | None:
        """Load a task if this participant is on it. Takes as long for a task of others as for one that is not there."""
        ...

    async def written(self, task_id: str, cause: str) -> Written | None:
        """Look a cause up."""
        ...

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Event]:
        """Read a task's events with `seq > after`, in order."""
        ...

    async def words(self, task_id: str, limit: int, before: int | None = None) -> Sequence[Event]:
        """Read the last `limit` events of kinds `task`, `input`, `reply`, `state` with `seq < before`, in order."""
        ...

    async def heads(self, task_ids: Sequence[str]) -> dict[str, int]:
        """Read the number of the last event of each task, in one query."""
        ...

    async def snapshots(self, task_ids: Sequence[str]) -> dict[str, TaskSnapshot]:
        """Load several tasks' snapshots in one query; tasks that are not there are left out."""
        ...

    async def on_any_task(self, participant_id: str, context_id: str) -> bool:
        """Whether a participant is on a task of a context."""
        ...

    async def open_tasks(self, states: Sequence[TaskState], after: str, limit: int) -> Sequence[str]:
        """List ids of tasks in the given states with `id > after`, in order of id."""
        ...

    async def save_step(self, task_id: str, turn: int, step: int, record: str) -> str:
        """Keep a step's outcome under its name; the first write wins.

        Returns:
            The record that is in the store, ours or an earlier one.
        """
        ...

    async def step(self, task_id: str, turn: int, step: int) -> str | None:
        """Load a step's outcome."""
        ...

    async def input_records(self, task_id: str) -> dict[int, str]:
        """Load what is kept under turn 0, that is about inputs instead of steps: by the number of the input."""
        ...

    async def steps(self, task_id: str, turns: Sequence[int]) -> Sequence[StepRow]:
        """Load the outcomes of all steps of some turns, in order."""
        ...

    async def claim_call(self, task_id: str, turn: int, step: int, call: int, claim: str) -> str:
        """Claim a tool call before it is made; the first claim counts.

        Returns:
            The claim that is in the store: ours, an earlier one, or "" if the call has its outcome without one.
        """
        ...

    async def save_call(self, task_id: str, turn: int, step: int, call: int, record: str) -> str:
        """Keep a tool call's outcome; the first one counts, and is returned."""
        ...

    async def calls(self, task_id: str, turns: Sequence[int]) -> Sequence[CallRow]:
        """Load the tool calls of some turns, in order."""
        ...

    async def reserve_task(self, participant_id: str, key: str, task_id: str) -> str:
        """Keep a new task's id under a participant's idempotency key; the first write wins, and is returned."""
        ...

    async def request_cancel(self, task_id: str, requested_by: str) -> None:
        """Record that a cancel was asked for, so that it stands whatever happens to its signal."""
        ...

    async def acknowledge(self, task_id: str, participant_id: str) -> None:
        """Record that somebody has what they needed of a task, ended or not; the first write counts."""
        ...

    async def pending_cancels(self, older_than: timedelta) -> Sequence[CancelRequest]:
        """List cancels asked for longer ago than this whose task has not ended."""
        ...

    async def verdicts(self, task_id: str) -> Sequence[KeptVerdict]:
        """List what hooks did on a task, oldest first."""
        ...

    async def save_catalogue(self, digest: str, body: str) -> None:
        """Keep what an engine offers, as JSON, and make it the current one."""
        ...

    async def current_catalogue(self) -> tuple[str, str] | None:
        """Load (digest, body) of the catalogue that was saved last, `None` before there is one."""
        ...

    async def report_engine(self, engine_id: str, digest: str, health: str) -> None:
        """Keep what an engine says of itself, instead of what it said before; forget those silent for a day."""
        ...

    async def engines(self, seen_within: timedelta) -> Sequence[EngineReport]:
        """List engines that reported within this time, by id."""
        ...

    async def register_observers(self, observers: Sequence[str]) -> None:
        """Make observers known. One that is new gets what is committed from now on; a known one goes on."""
        ...

    async def changed_tasks(self, observer: str, after: tuple[datetime, str], limit: int) -> Sequence[ChangedTask]:
        """List tasks with events for an observer behind (updated_at, task_id), oldest change first."""
        ...

    async def unobserved_events(self, observer: str, task_id: str, limit: int) -> Sequence[Event]:
        """Read a task's events that an observer has not had, in order."""
        ...

    async def advance_observer(self, observer: str, task_id: str, seq: int) -> None:
        """Note that an observer has had a task's events up to this one. Never goes back."""
        ...

    async def add_token(
        self,
        token_id: str,
        digest: str,
        participant_id: str,
        kind: ParticipantKind,
        note: str,
        lifetime: timedelta | None,
    ) -> None:
        """Keep a bearer token by its SHA-256 digest; it ends after its lifetime, if it has one."""
        ...

    async def find_token(self, digest: str) -> KeptToken | None:
        """Find a token by its digest, revoked and expired ones, too."""
        ...

    async def tokens(self) -> Sequence[KeptToken]:
        """List all tokens, oldest first."""
        ...

    async def revoke_token(self, token_id: str) -> bool:
        """Revoke a token, from now on; false if there is none of this id."""
        ...

    async def save_push(self, key: PushKey, url: str, secret: bytes, after: int, most: int) -> bool:
        """Keep a push configuration, instead of the one of that id if there is one, which keeps its place.

        Args:
            key: Its name.
            url: Its receiver.
            secret: Sealed.
            after: Number of the event after which a new one begins.
            most: How many a participant may have on a task; false if it would be one more.
        """
        ...

    async def push(self, key: PushKey) -> KeptPush | None:
        """Load a push configuration."""
        ...

    async def pushes_of(self, task_id: str, participant_id: str) -> Sequence[KeptPush]:
        """List a participant's push configurations on a task, by their ids."""
        ...

    async def delete_push(self, key: PushKey) -> bool:
        """Delete a push configuration; false if there is none."""
        ...

    async def note_push(self, key: PushKey, delivered: int, status: PushStatus, failures: int) -> None:
        """Note how far a push configuration was served, and how it stands."""
        ...

    async def pushes_behind(self, task_id: str | None, limit: int) -> Sequence[PushKey]:
        """List the push configurations, of a task or of all, with events that were not delivered; longest first."""
        ...

    async def count_pushes(self) -> dict[str, int]:
        """Count the push configurations by their status."""
        ...

    async def count_tasks(self) -> dict[str, int]:
        """Count the tasks by their state."""
        ...

    async def save_beat(self, name: str, body: str) -> None:
        """Keep what a heartbeat saw, as JSON, instead of what the last one did."""
        ...

    async def last_beat(self, name: str) -> tuple[str, timedelta] | None:
        """Load what the last heartbeat saw, and how long ago that was."""
        ...

    async def purge(self, ended_before: timedelta, dry_run: bool = False) -> int:
        """Delete tasks that ended longer ago than this, with all their rows; returns how many."""
        ...

    async def backup(self, path: Path) -> None:
        """Write a consistent copy to a new file.

        Raises:
            FileExistsError: The file is there already.
            ConfigError: The database has means of its own for that.
        """
        ...

    def alone(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Hold a name while the block runs, among all processes on this store; false: somebody else holds it.

        A process that dies lets go at once, one that freezes after a while.
        """
        ...

    def free_bytes(self) -> int | None:
        """How much disk is left for the store; `None`: it is not ours to watch."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
