"""Seals every payload that Temporal keeps or carries (see `tiny_harness.seal`).

What does not open becomes an argument that nobody can read, and the call that it belongs to is refused. An exception in
the codec would stop the task instead.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final

from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    EncodingPayloadConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
)
from temporalio.exceptions import ApplicationError

from tiny_harness.seal import SealRing

SEALED: Final = b"binary/sealed"
UNREADABLE: Final = b"binary/unreadable"
_ENCODING: Final = "encoding"

log = logging.getLogger(__name__)


class SealCodec(PayloadCodec, WithSerializationContext):
    """Seals on the way to Temporal and opens on the way back, for the workflow that a payload belongs to."""

    def __init__(self, ring: SealRing, workflow_id: str = "") -> None:
        self._ring = ring
        self._workflow_id = workflow_id

    def with_context(self, context: SerializationContext) -> "SealCodec":
        """Bind the codec to the workflow whose payloads it sees: its own and its activities' alike."""
        return SealCodec(self._ring, getattr(context, "workflow_id", None) or "")

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Seal; without keys, pass on."""
        return list(payloads) if self._ring.is_empty else [self._seal(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Open; never raises."""
        return [self._open(payload) for payload in payloads]

    def _seal(self, payload: Payload) -> Payload:
        sealed = self._ring.seal(payload.SerializeToString(), self._place)
        return Payload(metadata={_ENCODING: SEALED}, data=sealed)

    def _open(self, payload: Payload) -> Payload:
        if payload.metadata.get(_ENCODING) != SEALED:
            return payload if self._ring.opens_unsealed else self._unreadable("is not sealed")
        opened = self._ring.open(payload.data, self._place)
        return self._unreadable("opens with no key of ours") if opened is None else Payload.FromString(opened)

    def _unreadable(self, why: str) -> Payload:
        log.warning("a payload of workflow %s %s: the call that it belongs to is refused", self._workflow_id, why)
        return Payload(metadata={_ENCODING: UNREADABLE})

    @property
    def _place(self) -> str:
        return f"temporal:{self._workflow_id}"


class _RefusingConverter(EncodingPayloadConverter):
    """Refuses what did not open."""

    @property
    def encoding(self) -> str:
        return UNREADABLE.decode()

    def to_payload(self, value: Any) -> Payload | None:
        del value
        return None

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        # This error refuses an update and drops a signal. Where it meets a run's start or an activity's result it ends
        # the run, and housekeeping starts another one from the store; any other error would stop the task for good.
        raise ApplicationError("a payload could not be opened", type="Unreadable", non_retryable=True)


class SealedPayloadConverter(CompositePayloadConverter):
    """Pydantic's converter, and what refuses the unreadable."""

    def __init__(self) -> None:
        super().__init__(*PydanticPayloadConverter().converters.values(), _RefusingConverter())


def data_converter(ring: SealRing) -> DataConverter:
    """Make the converter that every client of our Temporal uses; failures are sealed with their words and traces."""
    return DataConverter(
        payload_converter_class=SealedPayloadConverter,
        payload_codec=SealCodec(ring),
        failure_converter_class=DataConverter.default.failure_converter_class
        if ring.is_empty
        else DefaultFailureConverterWithEncodedAttributes,
    )
