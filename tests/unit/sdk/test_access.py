"""The one table of who may do what."""

import pytest

from tiny_harness.access import Act, check, strongest_role
from tiny_harness.errors import RoleNotPermitted, TaskNotFound
from tiny_harness.ext.task import Participant, Role

ACTS: tuple[Act, ...] = ("read the task", "send a message", "control the task", "change participants")
TABLE: dict[Role, tuple[bool, bool, bool, bool]] = {
    "admin": (True, True, True, True),
    "reporter": (True, True, True, True),
    "assignee": (True, True, True, False),
    "watcher": (True, False, False, False),
}


@pytest.mark.parametrize("role", TABLE)
@pytest.mark.parametrize("act", ACTS)
def test_a_role_may_do_what_the_table_says(role: Role, act: Act) -> None:
    people = [Participant(id="ann", role=role)]
    if TABLE[role][ACTS.index(act)]:
        assert check("t", people, "ann", act) == role
    else:
        with pytest.raises(RoleNotPermitted) as caught:
            check("t", people, "ann", act)
        assert caught.value.role == role


@pytest.mark.parametrize("act", ACTS)
def test_a_stranger_is_told_that_there_is_no_such_task(act: Act) -> None:
    with pytest.raises(TaskNotFound):
        check("t", [Participant(id="ann", role="admin")], "eve", act)


def test_the_strongest_of_several_roles_counts() -> None:
    people = [Participant(id="ann", role="watcher"), Participant(id="ann", role="reporter")]
    assert strongest_role(people, "ann") == "reporter"
