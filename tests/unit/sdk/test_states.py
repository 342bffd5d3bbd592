"""The words for states."""

from tiny_harness.states import OPEN_STATES, STATE_LABELS, TERMINAL_STATES, TaskState, describe


def test_every_state_has_a_label_and_is_open_or_ended() -> None:
    assert set(STATE_LABELS) == set(TaskState) == OPEN_STATES | TERMINAL_STATES
    assert not OPEN_STATES & TERMINAL_STATES


def test_a_sub_state_shows_only_while_input_is_required() -> None:
    assert describe(TaskState.INPUT_REQUIRED, "awaiting-next-message") == "Input required · Your turn"
    assert describe(TaskState.WORKING, "awaiting-next-message") == "Working"


def test_an_unknown_sub_state_shows_as_plain_input_required() -> None:
    assert describe(TaskState.INPUT_REQUIRED, "awaiting-full-moon") == "Input required"
