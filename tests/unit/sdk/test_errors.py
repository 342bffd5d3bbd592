"""The tree of errors."""

import json
from dataclasses import fields

import pytest

from tiny_harness import errors
from tiny_harness.errors import HarnessError, TaskEnded, pack, unpack

SAMPLES = {str: "x", int: 7, bool: True, float | None: 1.5, tuple[str, ...]: ("x", "y")}


def tree(root: type[HarnessError] = HarnessError) -> list[type[HarnessError]]:
    return [root, *(found for child in root.__subclasses__() for found in tree(child))]


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = [line.split()[-3:] for line in (errors.__doc__ or "").splitlines() if "──" in line]
    assert drawn
    for kind in tree()[1:]:
        assert any(kind.__name__ in line for line in (errors.__doc__ or "").splitlines()), kind


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_every_error_crosses_a_border_and_comes_back(kind: type[HarnessError]) -> None:
    error = kind(**{field.name: SAMPLES[field.type] for field in fields(kind)})  # pyright: ignore[reportArgumentType] - types stand there as themselves
    name, data = pack(error)
    back = unpack(name, json.loads(json.dumps(data)))
    assert type(back) is kind
    assert back.__dict__ == error.__dict__
    assert str(back) == str(error)


def test_an_unknown_name_comes_back_as_the_root() -> None:
    assert type(unpack("FromTheFuture", {"a": 1})) is HarnessError


def test_unknown_data_of_a_newer_peer_is_left_out() -> None:
    back = unpack("TaskEnded", {"task_id": "t", "state": "COMPLETED", "shoe_size": 43})
    assert isinstance(back, TaskEnded)
