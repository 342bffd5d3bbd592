"""Strangers' text, made fit to be read."""

import time

import pytest

from tiny_harness_engine.tools.line import Lines
from tiny_harness_engine.tools.words import one_line, readable


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("\x1b[31mred\x07\x00\x9b", "[31mred"),
        ("\u202eevil\u2066\ufeff", "evil"),
        ("tool_\u200dres\u200b\u200cult", "tool_result"),
        ("hidden\U000e0041\U000e0042", "hidden"),
        ("half \ud800", "half "),
        ("family 👨\u200d👩\u200d👧", "family 👨\u200d👩\u200d👧"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("é ü 漢字", "é ü 漢字"),
    ],
)
def test_what_cannot_be_seen_is_taken_out(text: str, clean: str) -> None:
    assert readable(text) == clean
    assert readable(clean) == clean


def test_hostile_text_takes_linear_time() -> None:
    began = time.process_time()
    assert readable("a" + "\u200d" * 1_000_000 + "b") == "ab"
    assert time.process_time() - began < 10  # a quadratic one takes hours


def test_a_line_is_one_and_bounded() -> None:
    assert one_line("  two\n\nlines\x1b ", 100) == "two lines"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"


def test_lines_are_put_together_from_pieces() -> None:
    lines = Lines(10)
    assert list(lines.feed(b"one\ntw")) == [b"one"]
    assert list(lines.feed(b"o\n\n \nthree\n")) == [b"two", b"three"]
    assert list(lines.feed(b"x" * 10 + b"\n")) == [b"x" * 10]
    assert not lines.is_over


def test_a_line_that_is_too_long_is_the_end() -> None:
    lines = Lines(10)
    assert list(lines.feed(b"one\n" + b"x" * 11 + b"\ntwo\n")) == [b"one"]
    assert lines.is_over
    endless = Lines(10)
    for _ in range(3):
        assert list(endless.feed(b"xxxxx")) == []
    assert endless.is_over


def test_a_line_that_is_too_long_may_be_cut_instead() -> None:
    lines = Lines(4, keeps_long=True)
    assert list(lines.feed(b"123456\n1234567")) == [b"1234"]
    assert list(lines.feed(b"89\nab\n")) == [b"1234", b"ab"]
