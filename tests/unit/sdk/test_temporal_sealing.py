"""The codec: everything sealed on the way to Temporal, nothing raised on the way back."""

from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import ActivitySerializationContext, DataConverter, WorkflowSerializationContext
from temporalio.exceptions import ApplicationError

from tiny_harness.contracts import Cancel
from tiny_harness.seal import UNSEALED_RING, SealRing, make_key, parse_ring
from tiny_harness.temporal.sealing import data_converter

RING = parse_ring(make_key(), "")
WORD = "confidential"


def of(ring: SealRing, workflow_id: str = "task:1") -> DataConverter:
    return data_converter(ring).with_context(WorkflowSerializationContext("default", workflow_id))


def of_activity(ring: SealRing, workflow_id: str) -> DataConverter:
    kinds: dict[str, Any] = {"activity_id": "1", "activity_type": "a", "activity_task_queue": "q"}
    return data_converter(ring).with_context(
        ActivitySerializationContext(
            namespace="default", workflow_id=workflow_id, workflow_type="w", is_local=True, **kinds
        )
    )


async def test_a_payload_is_sealed_for_its_workflow_and_its_activities_alike() -> None:
    [payload] = await of(RING).encode([Cancel(requested_by=WORD)])
    assert WORD.encode() not in payload.SerializeToString()
    assert await of(RING).decode([payload], [Cancel]) == [Cancel(requested_by=WORD)]
    assert await of_activity(RING, "task:1").decode([payload], [Cancel]) == [Cancel(requested_by=WORD)]


async def test_a_failure_is_sealed_with_its_words_and_its_trace() -> None:
    failure = Failure()
    try:
        try:
            raise ValueError(f"{WORD} cause")
        except ValueError as error:
            raise ApplicationError(f"{WORD} words", {"a": WORD}, type="kind") from error
    except ApplicationError as error:
        await of(RING).encode_failure(error, failure)
    assert WORD.encode() not in failure.SerializeToString()
    told = await of(RING).decode_failure(failure)
    assert isinstance(told, ApplicationError)
    assert (told.message, told.details, told.type) == (f"{WORD} words", ({"a": WORD},), "kind")
    assert WORD in str(told.__cause__)


async def forgeries() -> dict[str, Payload]:
    [plain] = await of(UNSEALED_RING).encode([Cancel(requested_by="mallory")])
    [foreign] = await of(parse_ring(make_key(), "")).encode([Cancel(requested_by="mallory")])
    [moved] = await of(RING, "task:2").encode([Cancel(requested_by="ann")])
    broken = Payload(metadata={"encoding": b"binary/sealed"}, data=b"x")
    empty = Payload()
    return {"plain": plain, "foreign": foreign, "moved": moved, "broken": broken, "empty": empty}


@pytest.mark.parametrize("name", ["plain", "foreign", "moved", "broken", "empty"])
async def test_what_does_not_open_is_an_argument_that_nobody_can_read(name: str) -> None:
    codec = of(RING).payload_codec
    assert codec is not None
    decoded = await codec.decode([(await forgeries())[name]])  # never an exception here: it would stop the task
    with pytest.raises(ApplicationError) as refused:
        of(RING).payload_converter.from_payloads(decoded, [Cancel])
    assert refused.value.type == "Unreadable"


async def test_a_ring_that_says_so_goes_on_with_histories_from_before() -> None:
    ring = parse_ring(f"{make_key()},unsealed", "")
    [before] = await of(UNSEALED_RING).encode([Cancel(requested_by="ann")])
    [after] = await of(ring).encode([Cancel(requested_by="ann")])
    assert await of(ring).decode([before], [Cancel]) == [Cancel(requested_by="ann")]
    assert b"ann" in before.data
    assert b"ann" not in after.data


async def test_without_keys_nothing_is_sealed_and_what_is_sealed_does_not_open() -> None:
    [sealed] = await of(RING).encode(["x"])
    with pytest.raises(ApplicationError):
        await of(UNSEALED_RING).decode([sealed], [str])
