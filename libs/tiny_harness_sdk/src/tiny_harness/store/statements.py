"""Every statement that the store runs, built once: building one costs more CPU than running it."""

from sqlalchemy import BigInteger, String, and_, bindparam, delete, exists, func, insert, or_, select, true, update

from tiny_harness.states import TERMINAL_STATES
from tiny_harness.store.schema import (
    acknowledgements,
    beats,
    cancel_requests,
    catalogue,
    engines,
    events,
    now_ms,
    observed,
    observers,
    pushes,
    steps,
    task_keys,
    task_participants,
    tasks,
    tokens,
    tool_calls,
    verdicts,
)

_task = bindparam("task")
_ended = tasks.c.state.in_([state.value for state in TERMINAL_STATES])

NOW = select(now_ms())

# Tasks
FIND_TASK = select(tasks, now_ms().label("now")).where(tasks.c.task_id == _task)
FIND_TASK_OF = FIND_TASK.where(
    # In the statement, so that a task of others costs no more time than one that is not there.
    exists().where(task_participants.c.task_id == _task, task_participants.c.participant_id == bindparam("participant"))
)
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
_some = bindparam("tasks", expanding=True)
HEADS = select(tasks.c.task_id, tasks.c.head).where(tasks.c.task_id.in_(_some))
SNAPSHOTS = select(tasks.c.snapshot).where(tasks.c.task_id.in_(_some))

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
_context = bindparam("context", type_=String())
_state = bindparam("state", type_=String())
_since_at = bindparam("since", type_=BigInteger())
_after_at = bindparam("after_at", type_=BigInteger())
_listed = (
    select(tasks, task_participants.c.updated_at.label("listed_at"))
    .select_from(task_participants.join(tasks))
    .where(
        task_participants.c.participant_id == bindparam("participant"),
        or_(_context.is_(None), tasks.c.context_id == _context),
        or_(_state.is_(None), tasks.c.state == _state),
        or_(_since_at.is_(None), task_participants.c.updated_at > _since_at),
    )
)
LIST_TASKS = (
    _listed.where(
        or_(
            _after_at.is_(None),
            task_participants.c.updated_at < _after_at,
            and_(
                task_participants.c.updated_at == _after_at,
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
    .where(events.c.task_id == _task, events.c.seq < bindparam("before"), events.c.kind.not_in(("lost", "artifact")))
    .order_by(events.c.seq.desc())
    .limit(bindparam("limit"))
)

# Steps
INSERT_STEP = insert(steps)
FIND_STEP = select(steps.c.record).where(
    steps.c.task_id == _task, steps.c.turn == bindparam("turn_no"), steps.c.step == bindparam("step_no")
)

STEPS_OF_TURNS = (
    select(steps.c.turn, steps.c.step, steps.c.record)
    .where(steps.c.task_id == _task, steps.c.turn.in_(bindparam("turns", expanding=True)), steps.c.turn > 0)
    .order_by(steps.c.turn, steps.c.step)
)
_call_key = (
    tool_calls.c.task_id == _task,
    tool_calls.c.turn == bindparam("turn_no"),
    tool_calls.c.step == bindparam("step_no"),
    tool_calls.c.call == bindparam("call_no"),
)
LOCK_CALL = select(tool_calls.c.claim, tool_calls.c.record).where(*_call_key).with_for_update()
INSERT_CALL = insert(tool_calls)
UPDATE_CALL = update(tool_calls).where(*_call_key).values(record=bindparam("found"))
CALLS_OF_TURNS = (
    select(tool_calls.c.turn, tool_calls.c.step, tool_calls.c.call, tool_calls.c.claim, tool_calls.c.record)
    .where(tool_calls.c.task_id == _task, tool_calls.c.turn.in_(bindparam("turns", expanding=True)))
    .order_by(tool_calls.c.turn, tool_calls.c.step, tool_calls.c.call)
)
INPUT_RECORDS = select(steps.c.step, steps.c.record).where(steps.c.task_id == _task, steps.c.turn == 0)

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

# Hooks
INSERT_VERDICT = insert(verdicts)
VERDICTS = (
    select(verdicts).where(verdicts.c.task_id == _task).order_by(verdicts.c.at, verdicts.c.cause, verdicts.c.part)
)

# Engines
NEWEST_CATALOGUE = select(catalogue).order_by(catalogue.c.at.desc(), catalogue.c.digest).limit(1)
INSERT_CATALOGUE = insert(catalogue)
TOUCH_CATALOGUE = update(catalogue).where(catalogue.c.digest == bindparam("known")).values(at=bindparam("now"))
INSERT_ENGINE = insert(engines)
DELETE_ENGINES = delete(engines).where(engines.c.at <= now_ms() - bindparam("age_ms"))
UPDATE_ENGINE = (
    update(engines)
    .where(engines.c.engine_id == bindparam("engine"))
    .values(digest=bindparam("known"), health=bindparam("word"), at=bindparam("now"))
)
ENGINES = (
    select(engines, (now_ms() - engines.c.at).label("age_ms"))
    .where(engines.c.at >= now_ms() - bindparam("age_ms"))
    .order_by(engines.c.engine_id)
)

# Observers
FIND_OBSERVERS = select(observers.c.observer).where(observers.c.observer.in_(bindparam("names", expanding=True)))
INSERT_OBSERVER = insert(observers)
_observer = bindparam("observer")
_since = select(observers.c.since).where(observers.c.observer == _observer).scalar_subquery()
CHANGED_TASKS = (
    select(tasks.c.task_id, tasks.c.updated_at, (tasks.c.head > func.coalesce(observed.c.seq, 0)).label("is_behind"))
    .select_from(
        tasks.outerjoin(observed, and_(observed.c.task_id == tasks.c.task_id, observed.c.observer == _observer))
    )
    .where(
        tasks.c.updated_at >= _since,
        tasks.c.updated_at >= bindparam("after_at"),
        or_(tasks.c.updated_at > bindparam("after_at"), tasks.c.task_id > bindparam("after_id")),
    )
    .order_by(tasks.c.updated_at, tasks.c.task_id)
    .limit(bindparam("limit"))
)
FIND_OBSERVED = select(observed.c.seq).where(observed.c.observer == _observer, observed.c.task_id == _task)
UNOBSERVED_EVENTS = (
    select(events)
    .where(
        events.c.task_id == _task,
        events.c.seq > func.coalesce(FIND_OBSERVED.scalar_subquery(), 0),
        events.c.at >= _since,
    )
    .order_by(events.c.seq)
    .limit(bindparam("limit"))
)
INSERT_OBSERVED = insert(observed)
ADVANCE_OBSERVED = (
    update(observed)
    .where(observed.c.observer == bindparam("who"), observed.c.task_id == _task, observed.c.seq < bindparam("number"))
    .values(seq=bindparam("number"))
)

# Retention
ENDED_TASKS = (
    select(tasks.c.task_id)
    .where(_ended, tasks.c.updated_at <= now_ms() - bindparam("age_ms"))
    .limit(500)
    .with_for_update(skip_locked=True)  # whoever else deletes has those
)
COUNT_ENDED = (
    select(func.count()).select_from(tasks).where(_ended, tasks.c.updated_at <= now_ms() - bindparam("age_ms"))
)
DELETE_TASKS = [
    delete(table).where(table.c.task_id.in_(_some))
    for table in (observed, verdicts, cancel_requests, task_keys, tool_calls, steps, events, task_participants, tasks)
]

# Acknowledgements
FIND_ACKNOWLEDGEMENT = select(acknowledgements).where(
    acknowledgements.c.task_id == _task, acknowledgements.c.participant_id == bindparam("participant")
)
INSERT_ACKNOWLEDGEMENT = insert(acknowledgements)
ACKNOWLEDGEMENTS = (
    select(acknowledgements)
    .where(acknowledgements.c.task_id.in_(bindparam("tasks", expanding=True)))
    .order_by(acknowledgements.c.at, acknowledgements.c.participant_id)
)

# Tokens
INSERT_TOKEN = insert(tokens)
FIND_TOKEN = select(tokens, now_ms().label("now")).where(tokens.c.digest == bindparam("token_digest"))
TOKENS = select(tokens, now_ms().label("now")).order_by(tokens.c.created_at, tokens.c.token_id)
REVOKE_TOKEN = (
    update(tokens)
    .where(tokens.c.token_id == bindparam("token"))
    .values(revoked_at=func.coalesce(tokens.c.revoked_at, bindparam("now")))
)

# Heartbeats
TASKS_BY_STATE = select(tasks.c.state, func.count().label("number")).group_by(tasks.c.state)
FIND_BEAT = select(beats, now_ms().label("now")).where(beats.c.name == bindparam("beat"))
UPDATE_BEAT = update(beats).where(beats.c.name == bindparam("beat")).values(body=bindparam("seen"), at=bindparam("now"))
INSERT_BEAT = insert(beats)

# Push
_push = and_(
    pushes.c.task_id == _task,
    pushes.c.participant_id == bindparam("participant"),
    pushes.c.config_id == bindparam("config"),
)
FIND_PUSH = select(pushes).where(_push)
INSERT_PUSH = insert(pushes)
REPLACE_PUSH = (
    update(pushes)
    .where(_push)
    .values(url=bindparam("to_url"), secret=bindparam("sealed"), status="ok", failures=0, at=bindparam("now"))
)
DELETE_PUSH = delete(pushes).where(_push)
NOTE_PUSH = (
    update(pushes)
    .where(_push)
    .values(
        delivered_seq=bindparam("served"), status=bindparam("stands"), failures=bindparam("failed"), at=bindparam("now")
    )
)
PUSHES_OF = (
    select(pushes)
    .where(pushes.c.task_id == _task, pushes.c.participant_id == bindparam("participant"))
    .order_by(pushes.c.config_id)
)
PUSHES_BEHIND = (
    select(pushes.c.task_id, pushes.c.participant_id, pushes.c.config_id)
    .select_from(pushes.join(tasks))
    .where(pushes.c.status != "disabled", pushes.c.delivered_seq < tasks.c.head)
    .order_by(pushes.c.at)
    .limit(bindparam("limit"))
)
PUSHES_BEHIND_OF = PUSHES_BEHIND.where(pushes.c.task_id == _task)
COUNT_PUSHES = select(pushes.c.status, func.count().label("number")).group_by(pushes.c.status)
