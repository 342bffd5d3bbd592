"""The tables of requirements and of faults are complete and true."""

import ast
from pathlib import Path

import pytest

from tests.contract.faults import AGENT_CORE, HOOKS_AND_COMMANDS, PUSH
from tests.contract.requirements import OPEN_ISSUES, REQUIREMENTS, pending

TESTS = Path(__file__).parents[1]

COUNTS = {"R1": 5, "R2": 8, "R3": 6, "R4": 4, "R5": 7, "R6": 8, "R6a": 9, "R7": 5, "R8": 5, "R9": 4, "R10": 2, "R11": 4}
"""How many criteria each requirement of the specification has."""


def test_no_requirement_is_missing_and_none_is_invented() -> None:
    numbered = {f"{name}.{n}" for name, count in COUNTS.items() for n in range(1, count + 1)}
    others = {"A": 10, "F": 3, "D": 4, "C": 12, "S": 5}
    numbered |= {f"{letter}{n}" for letter, count in others.items() for n in range(1, count + 1)}
    assert set(REQUIREMENTS) == numbered


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_a_requirement_has_tests_or_an_open_issue(requirement: str) -> None:
    row = REQUIREMENTS[requirement]
    if isinstance(row, pending):
        assert row.issue in OPEN_ISSUES
        return
    assert row
    assert_there(row)


FAULTS = {**HOOKS_AND_COMMANDS, **AGENT_CORE, **PUSH}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_tests_that_plant_it(fault: str) -> None:
    assert FAULTS[fault]
    assert_there(FAULTS[fault])


def test_what_is_pending_waits_for_an_open_issue() -> None:
    assert {row.issue for row in REQUIREMENTS.values() if isinstance(row, pending)} <= OPEN_ISSUES


def assert_there(names: tuple[str, ...]) -> None:
    """Check that each `file::test`, or file, exists."""
    for name in names:
        path, _, test = name.partition("::")
        tree = ast.parse((TESTS / path).read_text())
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert not test or test in functions, f"{name} does not exist"
