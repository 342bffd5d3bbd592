"""Our errors as A2A's: one table, exact classes."""

from dataclasses import fields

import pytest
from a2a.utils.errors import A2A_ERROR_MAPPING, JSON_RPC_ERROR_CODE_MAP

from tiny_harness import errors as ours
from tiny_harness.errors import HarnessError
from tiny_harness_gateway.errors import http_response, to_a2a

SAMPLES = {float | None: 1.5, str: "x", int: 7, bool: True, tuple[str, ...]: ("x", "y")}


def make(kind: type[HarnessError]) -> HarnessError:
    return kind(**{field.name: SAMPLES[field.type] for field in fields(kind)})  # pyright: ignore[reportArgumentType]


def tree(root: type[HarnessError] = HarnessError) -> list[type[HarnessError]]:
    return [root, *(found for child in root.__subclasses__() for found in tree(child))]


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_every_error_becomes_one_that_the_sdk_looks_up_by_its_exact_class(kind: type[HarnessError]) -> None:
    told = to_a2a(make(kind))
    assert type(told) in JSON_RPC_ERROR_CODE_MAP
    assert type(told) in A2A_ERROR_MAPPING


@pytest.mark.parametrize(
    ("kind", "code", "metadata"),
    [
        (ours.TaskNotFound, -32001, {}),
        (ours.TaskNotCancelable, -32002, {"code": "task_ended", "state": "x"}),
        (ours.TaskEnded, -32004, {"code": "task_ended", "state": "x"}),
        (ours.RoleNotPermitted, -32004, {"code": "role_not_permitted", "role": "x"}),
        (ours.QueueFull, -32004, {"code": "queue_full", "limit": "7"}),
        (ours.RefusedByPolicy, -32004, {"code": "refused_by_policy", "reason": "x"}),
        (ours.UnresolvedSubTasks, -32004, {"code": "unresolved_sub_tasks", "ids": "x,y"}),
        (ours.InvalidInput, -32602, {"code": "x", "field": "x"}),
        (ours.UnsupportedContent, -32005, {"code": "unsupported_content", "field": "x"}),
    ],
)
def test_a_refusal_has_the_code_of_the_table(kind: type[HarnessError], code: int, metadata: dict[str, str]) -> None:
    told = to_a2a(make(kind))
    assert (JSON_RPC_ERROR_CODE_MAP[type(told)], told.data) == (code, metadata)
    assert all(isinstance(value, str) for value in metadata.values())


@pytest.mark.parametrize(("kind", "status"), [(ours.Unavailable, 503), (ours.DiskFull, 507)])
def test_what_only_http_can_say_is_a_status(kind: type[HarnessError], status: int) -> None:
    assert http_response(make(kind)).status_code == status


def test_an_error_that_is_not_in_the_table_says_nothing_of_itself() -> None:
    assert to_a2a(ours.ConfigError("secret", "/home/ann/file")).message == str(HarnessError())
