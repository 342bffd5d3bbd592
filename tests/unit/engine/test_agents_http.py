"""What arrives from an agent is bounded: answers as a whole, streams by the event."""

import pytest

from tiny_harness_engine.agents.http import _since_event, origin  # pyright: ignore[reportPrivateUsage]


def counted(*chunks: bytes) -> list[int]:
    """Count as the transport does: the bytes of the event that is still open, after each chunk."""
    sizes: list[int] = []
    size, is_line_end = 0, False
    for chunk in chunks:
        size, is_line_end = _since_event(chunk, size + len(chunk), is_line_end)
        sizes.append(size)
    return sizes


def test_an_event_that_ends_starts_the_count_anew() -> None:
    assert counted(b"data: 1\n\n", b"data: 22\n\nda") == [0, 2]
    assert counted(b"data: 1\r\n\r\n") == [0]


def test_an_events_end_may_come_in_two_pieces() -> None:
    assert counted(b"data: 1\n", b"\ndata") == [8, 4]


def test_an_event_without_end_is_counted_over_all_its_pieces() -> None:
    assert counted(b"data: 1", b"111", b"111") == [7, 10, 13]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("https://a.example", "https://a.example:443/x?y", True),
        ("http://127.0.0.1:80/a", "http://127.0.0.1/b", True),
        ("https://a.example", "http://a.example", False),
        ("https://a.example", "https://b.example", False),
        ("https://a.example", "https://a.example:444", False),
        ("https://a.example", "https://A.EXAMPLE/x", True),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, is_same: bool) -> None:
    assert (origin(one) == origin(other)) is is_same
