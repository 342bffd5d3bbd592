"""What is shown of a provider's words."""

import pytest

from tiny_harness_engine.models.reason import MAX_REASON_CHARS, plain_reason


def test_the_key_is_hidden_wherever_it_stands() -> None:
    assert plain_reason("bad key sk-1 (Bearer sk-1)", "sk-1") == "bad key *** (Bearer ***)"


def test_a_key_at_the_cut_leaves_no_beginning() -> None:
    key = "k" * 50
    assert "k" not in plain_reason("x" * (MAX_REASON_CHARS - 20) + " " + key, key)


@pytest.mark.parametrize("text", ["a\nb", "a\x1b\x00 b", "a‮b", "a\r\n\t b"])
def test_control_characters_become_a_space(text: str) -> None:
    assert plain_reason(text) == "a b"


def test_long_words_are_cut() -> None:
    assert len(plain_reason("x" * 1_000_000)) == MAX_REASON_CHARS
