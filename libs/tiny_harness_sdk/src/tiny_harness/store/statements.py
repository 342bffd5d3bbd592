"""Every statement that the store runs, built once: building one costs more CPU than running it."""

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, true, update

from tiny_harness.states import TERMINAL_STATES
from tiny_harness.store.schema import cancel_requests, events, now_ms, steps, task_keys, task_participants, tasks

_task = bindparam("task")
_ended = tasks.c.state.in_([state.value for state in TERMINAL_STATES])

NOW = select(now_ms())

# Tasks
FIND_TASK = select(tasks, now_ms().label("now")).where(tasks.c.task_id == _task)
LOCK_TASK = FIND_TASK.with_for_update(of=tasks)
INSERT_TASK = insert(tasks)
UPDATE_TASK = (
    update(tasks)
    .where(tasks.c.task_id == _task)
    .values(
        state=bindparam("state"),
        head=bindparam("head"),
        snapshot=bindparam("snapshot"),
        text=bindparam("text"),
        updated_at=bindparam("now"),
    )
)
OPEN_TASKS = (
    select(tasks.c.task_id)
    .where(tasks.c.state.in_(bindparam("states", expanding=True)), tasks.c.task_id > bindparam("after"))
    .order_by(tasks.c.task_id)
    .limit(bindparam("limit"))
)
HEADS = select(tasks.c.task_id, tasks.c.head).where(tasks.c.task_id.in_(bindparam("tasks", expanding=True)))

# Participants
INSERT_PARTICIPANT = insert(task_participants)
TOUCH_PARTICIPANTS = (
    update(task_participants).where(task_participants.c.task_id == _task).values(updated_at=bindparam("now"))
)
ON_ANY_TASK = (
    select(true())
    .select_from(tasks.join(task_participants))
    .where(tasks.c.context_id == bindparam("context"), task_participants.c.participant_id == bindparam("participant"))
    .limit(1)
)
_listed = (
    select(tasks, task_participants.c.updated_at.label("listed_at"))
    .select_from(task_participants.join(tasks))
    .where(
        task_participants.c.participant_id == bindparam("participant"),
        or_(bindparam("context").is_(None), tasks.c.context_id == bindparam("context")),
        or_(bindparam("state").is_(None), tasks.c.state == bindparam("state")),
        or_(bindparam("since").is_(None), task_participants.c.updated_at > bindparam("since")),
    )
)
LIST_TASKS = (
    _listed.where(
        or_(
            bindparam("after_at").is_(None),
            task_participants.c.updated_at < bindparam("after_at"),
            and_(
                task_participants.c.updated_at == bindparam("after_at"),
                task_participants.c.task_id < bindparam("after_id"),
            ),
        )
    )
    .order_by(task_participants.c.updated_at.desc(), task_participants.c.task_id.desc())
    .limit(bindparam("limit"))
)
COUNT_TASKS = _listed.with_only_columns(func.count(), maintain_column_froms=True)

# Events
INSERT_EVENT = insert(events)
FIND_CAUSE = select(events.c.seq, events.c.digest).where(
    events.c.task_id == _task, events.c.cause == bindparam("cause"), events.c.part == 0
)
EVENTS_AFTER = (
    select(events)
    .where(events.c.task_id == _task, events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
    .limit(bindparam("limit"))
)
LAST_WORDS = (
    select(events)
    .where(events.c.task_id == _task, events.c.seq < bindparam("before"), events.c.kind != "lost")
    .order_by(events.c.seq.desc())
    .limit(bindparam("limit"))
)

# Steps
INSERT_STEP = insert(steps)
FIND_STEP = select(steps.c.record).where(
    steps.c.task_id == _task, steps.c.turn == bindparam("turn_no"), steps.c.step == bindparam("step_no")
)

# Requests
FIND_KEY = select(task_keys.c.task_id).where(
    task_keys.c.participant_id == bindparam("participant"), task_keys.c.key == bindparam("name")
)
INSERT_KEY = insert(task_keys)
FIND_CANCEL = select(cancel_requests.c.requested_by).where(cancel_requests.c.task_id == _task)
INSERT_CANCEL = insert(cancel_requests)
PENDING_CANCELS = (
    select(cancel_requests.c.task_id, cancel_requests.c.requested_by)
    .select_from(cancel_requests.join(tasks))
    .where(~_ended, cancel_requests.c.at <= now_ms() - bindparam("age_ms"))
    .order_by(cancel_requests.c.at)
)

# Retention
ENDED_TASKS = select(tasks.c.task_id).where(_ended, tasks.c.updated_at <= now_ms() - bindparam("age_ms")).limit(500)
COUNT_ENDED = (
    select(func.count()).select_from(tasks).where(_ended, tasks.c.updated_at <= now_ms() - bindparam("age_ms"))
)
_some = bindparam("tasks", expanding=True)
DELETE_TASKS = [
    delete(table).where(table.c.task_id.in_(_some))
    for table in (cancel_requests, task_keys, steps, events, task_participants, tasks)
]
