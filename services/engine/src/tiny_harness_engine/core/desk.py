"""A worker's desk: the supervised tasks that it has, and what is due on them (adr-042; DESIGN: supervision). Pure.

A task with its worker idle is the stall, exactly: nothing here reads prose. Time comes in as an argument, and what is
due goes out as notices, each of which the task itself records before anybody is told.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from tiny_harness.contracts import Model
from tiny_harness.states import TaskState

HOUR: Final = timedelta(hours=1)
TOGETHER: Final = timedelta(seconds=30)
"""A reminder names what is due within this time too, so that tasks given in one burst cost one reminder."""


class Rules(Model):
    """How a worker is supervised."""

    capacity: int = Field(default=1, ge=1)
    """Tasks that it works on at once; others wait in order."""
    ladder: tuple[timedelta, ...]
    """Quiet time before the first reminder, then from each reminder to the next."""
    stalls_after: timedelta
    """Quiet time from the last reminder until the task is stalled."""
    reminders_per_hour: int = Field(ge=1)
    warns_at: tuple[timedelta, ...]
    """Time since the last activity at which its people are warned that the task will expire, in order."""
    expires_at: timedelta
    """Time since the last activity after which it expires."""


class News(Model):
    """How a supervised task is now, as its commit says. Sent at least once, in any order."""

    task_id: str
    seq: int
    """The task's event that says so: tells new news from old."""
    state: TaskState
    activity: int = 0
    """Counts what its worker did and what people wrote; if it stands still, only bookkeeping changed."""
    is_busy: bool = False
    """Whether the worker is known to run a tool or a command."""
    busy_for: timedelta = timedelta()
    """For how long, from now, the worker itself says that it runs one."""
    is_stopped: bool = False
    """Whether its people stopped the worker, and nobody has written since."""


class Paper(Model):
    """A task on the desk."""

    task_id: str
    seq: int
    state: TaskState
    is_busy: bool = False
    is_stopped: bool = False
    is_stalled: bool = False
    is_over: bool = False
    """Whether it was told to expire: it leaves the desk when it says that it has ended."""
    activity: int = 0
    quiet_since: datetime
    """Its last activity."""
    reminded: int = 0
    """Reminders since then."""
    due_at: datetime | None = None
    """When the next reminder is due, or after the last one when it is stalled; `None`: nothing is."""
    warned: int = 0
    position: int | None = None
    """Its place in the queue, as its people were told."""


class Starts(Model):
    """The worker has room: the task is its now."""

    kind: Literal["starts"] = "starts"
    task_id: str


class Moves(Model):
    """The task has another place in the queue."""

    kind: Literal["moves"] = "moves"
    task_id: str
    position: int


class Reminds(Model):
    """The worker is to be reminded, once, of all these."""

    kind: Literal["reminds"] = "reminds"
    task_ids: tuple[str, ...]
    """Oldest first."""


class Stalls(Model):
    """Reminders did not help."""

    kind: Literal["stalls"] = "stalls"
    task_id: str


class Warns(Model):
    """The task will expire."""

    kind: Literal["warns"] = "warns"
    task_id: str
    number: int
    """From 1."""
    quiet: timedelta
    """For how long nothing has happened."""
    left: timedelta
    """Until it expires."""


class Expires(Model):
    """Nothing happened for too long."""

    kind: Literal["expires"] = "expires"
    task_id: str
    quiet: timedelta


Notice = Annotated[Starts | Moves | Reminds | Stalls | Warns | Expires, Field(discriminator="kind")]


class Desk(Model):
    """All that a worker's supervisor knows: its argument from one run to the next."""

    rules: Rules
    papers: tuple[Paper, ...] = ()
    """In the order in which the tasks were given."""
    reminded_at: tuple[datetime, ...] = ()
    """When the reminders of the last hour were given."""


Due = tuple[Desk, tuple[Notice, ...]]


def hear(desk: Desk, news: News, now: datetime) -> Desk:
    """Take in how a task is. A task that has ended leaves the desk, and old news changes nothing."""
    known = next((paper for paper in desk.papers if paper.task_id == news.task_id), None)
    if known is not None and news.seq <= known.seq:
        return desk
    if news.state.is_terminal:
        return _with(desk, [paper for paper in desk.papers if paper is not known])
    paper = _heard(desk.rules, known, news, now)
    if known is None:
        return _with(desk, [*desk.papers, paper])
    return _with(desk, [paper if each is known else each for each in desk.papers])


def look(desk: Desk, now: datetime) -> Due:
    """Do all that is due: what becomes of the desk, and what its tasks are to be told, in order."""
    notices: list[Notice] = []
    for step in (_expire, _warn, _stall, _remind, _start, _move):
        desk, told = step(desk, now)
        notices += told
    return desk, tuple(notices)


def next_look(desk: Desk, now: datetime) -> datetime | None:
    """Say when something will be due, if nothing is heard; `None`: never, so nobody needs to wake."""
    times: list[datetime] = []
    for paper in desk.papers:
        if not _counts(paper):
            continue
        times.append(_deadline(desk.rules, paper))
        if paper.due_at is not None and _is_supervised(paper):
            is_last = paper.reminded >= len(desk.rules.ladder)
            times.append(paper.due_at if is_last else max(paper.due_at, _may_remind_at(desk, now)))
    return min(times, default=None)


def _heard(rules: Rules, known: Paper | None, news: News, now: datetime) -> Paper:
    facts: dict[str, Any] = news.model_dump(include={"seq", "state", "activity", "is_busy", "is_stopped"})
    if known is None:
        return _active(rules, Paper(task_id=news.task_id, quiet_since=now, **facts), now, news.busy_for)
    paper = known.model_copy(update=facts)
    is_idle_again = _is_supervised(paper) and not _is_supervised(known)
    is_active = news.activity > known.activity
    return _active(rules, paper, now, news.busy_for) if is_active or is_idle_again else paper


def _active(rules: Rules, paper: Paper, now: datetime, busy_for: timedelta = timedelta()) -> Paper:
    """Start the ladder anew."""
    due = now + busy_for + rules.ladder[0]
    return paper.model_copy(update={"quiet_since": now, "due_at": due, "reminded": 0, "warned": 0, "is_stalled": False})


def _expire(desk: Desk, now: datetime) -> Due:
    gone = [paper for paper in desk.papers if _counts(paper) and paper.quiet_since + desk.rules.expires_at <= now]
    left = [paper.model_copy(update={"is_over": True}) if paper in gone else paper for paper in desk.papers]
    return _with(desk, left), tuple(Expires(task_id=paper.task_id, quiet=desk.rules.expires_at) for paper in gone)


def _warn(desk: Desk, now: datetime) -> Due:
    notices: list[Notice] = []
    papers: list[Paper] = []
    for paper in desk.papers:
        passed = sum(paper.quiet_since + after <= now for after in desk.rules.warns_at)
        if _counts(paper) and passed > paper.warned:
            quiet = desk.rules.warns_at[passed - 1]
            left = desk.rules.expires_at - quiet
            notices.append(Warns(task_id=paper.task_id, number=passed, quiet=quiet, left=left))
            paper = paper.model_copy(update={"warned": passed})
        papers.append(paper)
    return _with(desk, papers), tuple(notices)


def _stall(desk: Desk, now: datetime) -> Due:
    notices: list[Notice] = []
    papers: list[Paper] = []
    for paper in desk.papers:
        if _is_due(paper, now) and paper.reminded >= len(desk.rules.ladder):
            notices.append(Stalls(task_id=paper.task_id))
            paper = paper.model_copy(update={"is_stalled": True, "due_at": None})
        papers.append(paper)
    return _with(desk, papers), tuple(notices)


def _remind(desk: Desk, now: datetime) -> Due:
    recent = tuple(at for at in desk.reminded_at if at > now - HOUR)
    desk = desk.model_copy(update={"reminded_at": recent})
    has_rungs = [paper for paper in desk.papers if paper.reminded < len(desk.rules.ladder)]
    if len(recent) >= desk.rules.reminders_per_hour or not any(_is_due(paper, now) for paper in has_rungs):
        return desk, ()
    due = [paper for paper in has_rungs if _is_due(paper, now + TOGETHER)]
    papers = [_reminded(desk.rules, paper, now) if paper in due else paper for paper in desk.papers]
    after = _with(desk, papers).model_copy(update={"reminded_at": (*recent, now)})
    return after, (Reminds(task_ids=tuple(paper.task_id for paper in due)),)


def _reminded(rules: Rules, paper: Paper, now: datetime) -> Paper:
    reminded = paper.reminded + 1
    is_last = reminded >= len(rules.ladder)
    due = now + (rules.stalls_after if is_last else rules.ladder[reminded])
    return paper.model_copy(update={"reminded": reminded, "due_at": due})


def _start(desk: Desk, now: datetime) -> Due:
    """Give the worker what it has room for. Blocked and stalled tasks take no room."""
    room = desk.rules.capacity - sum(_takes_room(paper) for paper in desk.papers)
    queued = [paper for paper in desk.papers if paper.state is TaskState.SUBMITTED]
    begun = queued[: max(room, 0)]
    papers = [
        _active(desk.rules, paper.model_copy(update={"state": TaskState.WORKING, "position": None}), now)
        if paper in begun
        else paper
        for paper in desk.papers
    ]
    return _with(desk, papers), tuple(Starts(task_id=paper.task_id) for paper in begun)


def _move(desk: Desk, now: datetime) -> Due:
    del now
    notices: list[Notice] = []
    papers: list[Paper] = []
    place = 0
    for paper in desk.papers:
        if paper.state is TaskState.SUBMITTED:
            place += 1
            if paper.position != place:
                notices.append(Moves(task_id=paper.task_id, position=place))
                paper = paper.model_copy(update={"position": place})
        papers.append(paper)
    return _with(desk, papers), tuple(notices)


def _counts(paper: Paper) -> bool:
    """Whether its time runs: queued tasks and those that wait for a person do not age."""
    return paper.state is TaskState.WORKING and not paper.is_over


def _takes_room(paper: Paper) -> bool:
    return _counts(paper) and not paper.is_stalled


def _is_supervised(paper: Paper) -> bool:
    """Whether its worker may be reminded."""
    return _counts(paper) and not paper.is_busy and not paper.is_stopped


def _is_due(paper: Paper, now: datetime) -> bool:
    return _is_supervised(paper) and paper.due_at is not None and paper.due_at <= now


def _deadline(rules: Rules, paper: Paper) -> datetime:
    """When it is next warned about, or expires."""
    ages = (*rules.warns_at[paper.warned :], rules.expires_at)
    return paper.quiet_since + ages[0]


def _may_remind_at(desk: Desk, now: datetime) -> datetime:
    """From when the hour has room for one more reminder."""
    recent = sorted(at for at in desk.reminded_at if at > now - HOUR)
    over = len(recent) - desk.rules.reminders_per_hour
    return recent[over] + HOUR if over >= 0 else now


def _with(desk: Desk, papers: Iterable[Paper]) -> Desk:
    return desk.model_copy(update={"papers": tuple(papers)})
