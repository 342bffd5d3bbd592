"""What is due on a worker's desk, minute by minute (adr-042)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tiny_harness.states import TaskState
from tiny_harness_engine.core.desk import Desk, News, Notice, Reminds, Rules, hear, look, next_look

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RULES = Rules(
    ladder=tuple(minutes * MINUTE for minutes in (5, 1, 2, 5, 10, 30)),
    stalls_after=30 * MINUTE,
    reminders_per_hour=6,
    warns_at=(timedelta(hours=20), timedelta(hours=23)),
    expires_at=timedelta(hours=24),
)


class Day:
    """A desk, and a clock that goes from one look to the next."""

    def __init__(self, **rules: Any) -> None:
        self.desk = Desk(rules=RULES.model_copy(update=rules))
        self.now = START
        self.told: list[tuple[float, Notice]] = []
        self._seq = 0
        self._activity = 0

    def hear(
        self, task_id: str, state: TaskState = TaskState.WORKING, *, is_active: bool = True, **facts: Any
    ) -> "Day":
        self._seq += 1
        self._activity += is_active
        news = News(task_id=task_id, seq=self._seq, state=state, activity=self._activity, **facts)
        self.desk = hear(self.desk, news, self.now)
        return self._look()

    def give(self, *task_ids: str) -> "Day":
        for task_id in task_ids:
            self.hear(task_id, TaskState.SUBMITTED)
        return self

    def until(self, minutes: float) -> "Day":
        end = START + minutes * MINUTE
        while (at := next_look(self.desk, self.now)) is not None and at <= end:
            assert at > self.now, "the desk is looked at again and again without a reason"
            self.now = at
            self._look()
        self.now = end
        return self

    def said(self, *kinds: str) -> list[tuple[Any, ...]]:
        return [
            (minute, *notice.model_dump(exclude={"kind", "quiet", "left"}).values())
            for minute, notice in self.told
            if notice.kind in kinds
        ]

    def _look(self) -> "Day":
        self.desk, notices = look(self.desk, self.now)
        self.told += [((self.now - START) / MINUTE, notice) for notice in notices]
        return self


def test_the_ladder_is_climbed_and_ends_in_a_stall() -> None:
    day = Day().give("a").until(19 * 60)
    assert day.said("reminds") == [(minute, ("a",)) for minute in (5, 6, 8, 13, 23, 53)]
    assert day.said("stalls") == [(83, "a")]


def test_any_activity_starts_the_ladder_anew() -> None:
    day = Day().give("a").until(10).hear("a").until(19)
    assert [row[0] for row in day.said("reminds")] == [5, 6, 8, 15, 16, 18]


def test_bookkeeping_is_no_activity() -> None:
    day = Day().give("a").until(5.5).hear("a", is_active=False).until(9)
    assert [row[0] for row in day.said("reminds")] == [5, 6, 8]


def test_a_stalled_task_that_moves_again_is_supervised_again() -> None:
    day = Day().give("a").until(90).hear("a").until(96)
    assert [row[0] for row in day.said("reminds")][-2:] == [95, 96]


def test_one_reminder_names_every_due_task_oldest_first() -> None:
    names = [f"t{number}" for number in range(10)]
    day = Day(capacity=10).give(*names).until(19 * 60)
    assert day.said("reminds") == [(minute, tuple(names)) for minute in (5, 6, 8, 13, 23, 53)]
    assert day.said("stalls") == [(83, name) for name in names]


def test_tasks_of_one_burst_share_a_reminder() -> None:
    day = Day(capacity=2).give("a")
    day.now += timedelta(seconds=20)
    day.give("b").until(5.5)
    assert day.said("reminds") == [(5, ("a", "b"))]


def test_no_hour_has_more_than_six_reminders() -> None:
    day = Day(capacity=10)
    for number in range(10):
        day.until(number * 2).hear(f"t{number}", TaskState.SUBMITTED)
    day.until(19 * 60)
    times = [minute for minute, _ in day.said("reminds")]
    assert len(times) > 6
    assert all(sum(at <= other < at + 60 for other in times) <= 6 for at in times)
    assert len(day.said("stalls")) == 10


@pytest.mark.parametrize(
    "facts",
    [{"is_busy": True}, {"is_stopped": True}, {"state": TaskState.INPUT_REQUIRED}],
    ids=["it runs a tool", "its owner stopped it", "a person is awaited"],
)
def test_nobody_is_reminded_while(facts: dict[str, Any]) -> None:
    day = Day().give("a").until(1).hear("a", **facts).until(19 * 60)
    assert day.said("reminds", "stalls") == []
    day.hear("a").until(19 * 60 + 5)
    assert day.said("reminds") == [(19 * 60 + 5, ("a",))]


def test_a_tool_that_ends_starts_the_ladder_anew_even_if_that_was_bookkeeping() -> None:
    day = Day().give("a").hear("a", is_busy=True).until(30).hear("a", is_active=False).until(35)
    assert day.said("reminds") == [(35, ("a",))]


def test_a_worker_that_says_that_it_runs_something_is_left_alone_for_so_long() -> None:
    day = Day().give("a").until(1).hear("a", busy_for=60 * MINUTE).until(67.5)
    assert [row[0] for row in day.said("reminds")] == [66, 67]


def test_tasks_start_in_the_order_in_which_they_were_given() -> None:
    day = Day().give("a", "b", "c")
    assert day.said("starts") == [(0, "a")]
    assert day.said("moves") == [(0, "b", 1), (0, "c", 2)]
    day.until(1).hear("a", TaskState.COMPLETED)
    assert day.said("starts")[1:] == [(1, "b")]
    assert day.said("moves")[2:] == [(1, "c", 1)]


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.FAILED, TaskState.CANCELED])
def test_the_next_starts_when_the_one_before_ends_or_blocks(state: TaskState) -> None:
    assert Day().give("a", "b").until(1).hear("a", state).said("starts") == [(0, "a"), (1, "b")]


def test_the_next_starts_when_the_one_before_stalls() -> None:
    assert Day().give("a", "b").until(83).said("starts") == [(0, "a"), (83, "b")]


def test_a_blocked_task_goes_on_beside_the_one_that_runs() -> None:
    day = Day().give("a", "b", "c").hear("a", TaskState.INPUT_REQUIRED).hear("a")
    assert {paper.task_id: paper.state for paper in day.desk.papers} == {
        "a": TaskState.WORKING,
        "b": TaskState.WORKING,
        "c": TaskState.SUBMITTED,
    }
    assert day.hear("a", TaskState.COMPLETED).said("starts")[-1] == (0, "b")
    assert day.hear("b", TaskState.COMPLETED).said("starts")[-1] == (0, "c")


def test_a_task_expires_to_the_minute_after_its_warnings() -> None:
    day = Day().give("a").until(30).hear("a").until(3 * 24 * 60)
    assert day.said("warns") == [(30 + 20 * 60, "a", 1), (30 + 23 * 60, "a", 2)]
    assert day.said("expires") == [(30 + 24 * 60, "a")]
    assert next_look(day.desk, day.now) is None
    assert day.hear("a", TaskState.CANCELED).desk.papers == ()


def test_the_next_starts_when_the_one_before_expires() -> None:
    assert Day().give("a", "b").until(83).hear("b", TaskState.COMPLETED).give("c").said("starts")[-1] == (83, "c")
    assert Day(capacity=1, stalls_after=timedelta(days=9)).give("a", "b").until(24 * 60).said("starts")[-1] == (
        1440,
        "b",
    )


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.SUBMITTED])
def test_what_waits_does_not_age(state: TaskState) -> None:
    day = Day(capacity=1).give("a", "b")
    day.hear("a" if state is TaskState.INPUT_REQUIRED else "b", state)
    if state is TaskState.SUBMITTED:
        for hour in range(1, 30):
            day.until(hour * 60).hear("a")
        assert day.said("expires", "warns") == []
    else:
        day.hear("b", TaskState.COMPLETED)
        assert next_look(day.desk, day.now) is None


def test_a_desk_without_tasks_wakes_nobody() -> None:
    day = Day().give("a").hear("a", TaskState.COMPLETED)
    assert next_look(day.desk, day.now) is None
    assert day.desk.papers == ()


def test_old_news_changes_nothing() -> None:
    day = Day().give("a").hear("a", TaskState.INPUT_REQUIRED)
    before = day.desk
    assert hear(before, News(task_id="a", seq=1, state=TaskState.WORKING), day.now) == before


@pytest.mark.parametrize("killed_at", [4, 5.5, 7, 12, 20, 50, 80])
def test_what_is_read_back_in_the_middle_goes_on_as_before(killed_at: float) -> None:
    day = Day(capacity=2).give("a", "b", "c").until(killed_at)
    day.desk = Desk.model_validate_json(day.desk.model_dump_json())
    day.until(19 * 60)
    whole = Day(capacity=2).give("a", "b", "c").until(19 * 60)
    assert day.told == whole.told


def test_a_reminder_is_one_notice() -> None:
    day = Day().give("a").until(5)
    assert [type(notice) for _, notice in day.told if notice.kind == "reminds"] == [Reminds]
