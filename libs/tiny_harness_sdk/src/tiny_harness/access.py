"""Who may do what to a task: the one table, used by every method of every service (DESIGN: security).

Pure: it sees the participants of a task and nothing else.
"""

from collections.abc import Iterable
from typing import Final, Literal

from tiny_harness.errors import RoleNotPermitted, TaskNotFound
from tiny_harness.ext.task import Participant, Role

Act = Literal[
    "read the task",
    "send a message",
    "control the task",
    "change participants",
    "approve",
    "acknowledge",
    "be told by push",
]

_RANK: Final[tuple[Role, ...]] = ("admin", "reporter", "assignee", "watcher")

_ALLOWED: Final[dict[Act, frozenset[Role]]] = {
    "read the task": frozenset(_RANK),
    "send a message": frozenset({"admin", "reporter", "assignee"}),
    "control the task": frozenset({"admin", "reporter", "assignee"}),
    "change participants": frozenset({"admin", "reporter"}),
    "approve": frozenset({"admin", "reporter"}),
    "acknowledge": frozenset({"admin", "reporter"}),
    "be told by push": frozenset({"admin", "reporter", "assignee"}),
}


def strongest_role(participants: Iterable[Participant], participant_id: str) -> Role | None:
    """Find the strongest role that somebody holds on a task, `None` if they are not on it."""
    held = {participant.role for participant in participants if participant.id == participant_id}
    return next((role for role in _RANK if role in held), None)


def may(role: Role, act: Act) -> bool:
    """Whether a role allows an act."""
    return role in _ALLOWED[act]


def check(task_id: str, participants: Iterable[Participant], participant_id: str, act: Act) -> Role:
    """Let an act pass, or refuse it.

    Returns:
        The strongest role that the participant holds.

    Raises:
        TaskNotFound: They are not on the task, which looks as if it did not exist.
        RoleNotPermitted: They are, but in no role that may do this.
    """
    role = strongest_role(participants, participant_id)
    if role is None:
        raise TaskNotFound(task_id)
    if not may(role, act):
        raise RoleNotPermitted(role, act)
    return role
