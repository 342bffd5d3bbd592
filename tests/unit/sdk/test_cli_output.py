"""What commands print is safe for a terminal, and whole."""

import json

import pytest

from tiny_harness.cli.output import show, show_error, show_json, show_table

HOSTILE = "\x1b]0;owned\x07\x9b31m\u202ered"


def test_controls_are_removed_on_both_streams(capsys: pytest.CaptureFixture[str]) -> None:
    show(HOSTILE)
    show_error(HOSTILE)
    assert capsys.readouterr() == ("]0;owned31mred\n", "]0;owned31mred\n")


@pytest.mark.parametrize("text", ["10\u00a0000 €", "あ\u3000い", "می\u200cخواهم", "👩\u200d💻", "a\tb\nc"])
def test_letters_and_spaces_of_all_scripts_stay(capsys: pytest.CaptureFixture[str], text: str) -> None:
    show(text)
    assert capsys.readouterr().out == text + "\n"


def test_json_says_everything_and_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"text": HOSTILE + "\ud800 あ"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"text": HOSTILE + "\ud800 あ"}
    assert "あ" in out
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\ud800"} & set(out)


def test_a_row_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("A", "B"), [("1", "two\nlines"), ("100", "\x1b[2J")])
    assert capsys.readouterr().out == "A    B\n1    two lines\n100  [2J\n"
