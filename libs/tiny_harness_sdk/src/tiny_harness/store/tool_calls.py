"""What became of the tool calls of a task's steps, as plain functions of a connection like those in `transactions`.

A call is claimed before a tool is asked that may not be asked twice, and recorded when it has answered; the first write
of each counts.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from tiny_harness.store import statements as sql
from tiny_harness.store.port import CallRow, StepRow


def claim_call(connection: Connection, task_id: str, turn: int, step: int, call: int, claim: str) -> str:
    """Claim a call unless somebody has (`Store.claim_call`)."""
    found = _find(connection, task_id, turn, step, call)
    if found is None:
        _insert(connection, task_id, turn, step, call, claim, None)
        return claim
    return found.claim or ""


def save_call(connection: Connection, task_id: str, turn: int, step: int, call: int, record: str) -> str:
    """Keep a call's outcome unless there is one (`Store.save_call`)."""
    found = _find(connection, task_id, turn, step, call)
    if found is None:
        _insert(connection, task_id, turn, step, call, None, record)
        return record
    if found.record is None:
        key = {"task": task_id, "turn_no": turn, "step_no": step, "call_no": call}
        connection.execute(sql.UPDATE_CALL, {**key, "found": record})
        return record
    return found.record


def calls(connection: Connection, task_id: str, turns: Sequence[int]) -> Sequence[CallRow]:
    """Read the calls of some turns, in order (`Store.calls`)."""
    rows = connection.execute(sql.CALLS_OF_TURNS, {"task": task_id, "turns": list(turns)})
    return [CallRow(row.turn, row.step, row.call, row.claim, row.record) for row in rows]


def steps(connection: Connection, task_id: str, turns: Sequence[int]) -> Sequence[StepRow]:
    """Read the steps of some turns, in order (`Store.steps`)."""
    rows = connection.execute(sql.STEPS_OF_TURNS, {"task": task_id, "turns": list(turns)})
    return [StepRow(row.turn, row.step, row.record) for row in rows]


def _find(connection: Connection, task_id: str, turn: int, step: int, call: int) -> CallRow | None:
    key = {"task": task_id, "turn_no": turn, "step_no": step, "call_no": call}
    row = connection.execute(sql.LOCK_CALL, key).first()
    return CallRow(turn, step, call, row.claim, row.record) if row else None


def _insert(
    connection: Connection, task_id: str, turn: int, step: int, call: int, claim: str | None, record: str | None
) -> None:
    now = connection.execute(sql.NOW).scalar_one()
    row = {"task_id": task_id, "turn": turn, "step": step, "call": call, "claim": claim, "record": record, "at": now}
    connection.execute(sql.INSERT_CALL, row)
