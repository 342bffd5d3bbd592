"""Strangers' text, made safe for a terminal."""

import pytest

from tiny_harness.tui.printable import one_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\tb\nc\r\n", "a\tb\nc\n"),
        ("\x1b]0;owned\x07title", "]0;ownedtitle"),
        ("\x9b31mred", "31mred"),
        ("back\u202eward", "backward"),
        ("half \ud83d pair", "half  pair"),
        ("wide 漢字 👩‍👩‍👧 é", "wide 漢字 👩‍👩‍👧 é"),
    ],
)
def test_control_characters_go_and_words_stay(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_name_is_one_line() -> None:
    assert one_line(" a\n\tb\x00 ") == "a b"
