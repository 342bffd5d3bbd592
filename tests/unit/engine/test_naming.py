"""How tasks are named."""

from tiny_harness.envelope import TaskPatch
from tiny_harness_engine.core.naming import MAX_NAME_CHARS, apply_patch, first_text, name_from


def test_a_task_is_named_by_its_first_words() -> None:
    assert name_from("\n  Book   a trip\nto Rome") == "Book a trip"


def test_long_words_are_cut_at_a_words_end() -> None:
    name = name_from("word " * 40)
    assert len(name) <= MAX_NAME_CHARS
    assert name.endswith("word…")


def test_one_very_long_word_is_cut_anyway() -> None:
    assert len(name_from("x" * 500)) == MAX_NAME_CHARS


def test_a_task_without_words_has_a_name() -> None:
    assert name_from(" \n ") == "New task"


def test_an_envelope_names_the_task_and_renames_it() -> None:
    text = first_text(TaskPatch(name="Trip", goal="Rome"), "hello")
    assert (text.name, text.goal) == ("Trip", "Rome")
    assert apply_patch(text, TaskPatch(name="Holiday")).model_dump(exclude_none=True) == {
        "name": "Holiday",
        "goal": "Rome",
    }
