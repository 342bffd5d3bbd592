"""What a message is taken for."""

from typing import Any

import pytest

from tiny_harness.envelope import MEDIA_TYPE, control_part
from tiny_harness.errors import InvalidInput, UnsupportedContent
from tiny_harness.intake import MAX_PARTS, fingerprint, message_cause, read_message


def message(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"messageId": "m1", "role": "ROLE_USER", "parts": list(parts), **fields}


def envelope(data: Any) -> dict[str, Any]:
    return {"data": data, "mediaType": MEDIA_TYPE}


def test_text_is_words_for_the_model() -> None:
    intake = read_message(message({"text": "a"}, {"text": "b"}))
    assert (intake.kind, intake.text) == ("message", "a\n\nb")


def test_data_without_our_media_type_is_words_for_the_model() -> None:
    assert read_message(message({"data": {"kind": "control", "action": "complete"}})).kind == "message"


def test_a_control_is_read_with_its_reason() -> None:
    intake = read_message(message(control_part("complete", "all done")))
    assert (intake.kind, intake.control, intake.reason) == ("control", "complete", "all done")


def test_task_data_may_stand_beside_text() -> None:
    intake = read_message(message({"text": "go"}, envelope({"kind": "task", "payload": {"name": "Trip"}})))
    assert intake.kind == "message"
    assert intake.patch is not None
    assert intake.patch.name == "Trip"


def test_task_data_alone_has_no_words() -> None:
    assert read_message(message(envelope({"kind": "task", "payload": {"goal": "g"}}))).kind == "data"


@pytest.mark.parametrize(
    ("parts", "kind", "field"),
    [
        ([], "empty_message", "message.parts"),
        ([{"text": " \n"}], "empty_message", "message.parts"),
        ([{}], "empty_message", "message.parts"),
        ([control_part("complete"), {"text": "x"}], "invalid_envelope", "message.parts"),
        ([envelope({"kind": "control", "action": "explode"})], "invalid_envelope", "message.parts[0].data.action"),
        ([envelope({"kind": "party"})], "invalid_envelope", "message.parts[0].data"),
        ([envelope("text")], "invalid_envelope", "message.parts[0].data"),
        (
            [envelope({"kind": "task", "payload": {"nmae": "x"}})],
            "invalid_envelope",
            "message.parts[0].data.payload.nmae",
        ),
        ([envelope({"kind": "task", "payload": {}}), control_part("complete")], "invalid_envelope", "message.parts[1]"),
        ([{"text": "x"}] * (MAX_PARTS + 1), "invalid_params", "message.parts"),
    ],
)
def test_a_malformed_message_names_the_field_at_fault(parts: list[dict[str, Any]], kind: str, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_message(message(*parts))
    assert (caught.value.kind, caught.value.field) == (kind, field)


@pytest.mark.parametrize("field", ["lifecycle", "model", "reasoning_effort"])
def test_an_envelope_with_a_server_controlled_field_is_refused_whole(field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_message(message(envelope({"kind": "task", "payload": {"name": "n", field: "delegated"}})))
    assert caught.value.field == f"message.parts[0].data.payload.{field}"


@pytest.mark.parametrize("part", [{"raw": "AAAA"}, {"url": "file:///etc/passwd"}])
def test_a_file_is_not_read(part: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedContent):
        read_message(message(part))


@pytest.mark.parametrize("fields", [{"messageId": ""}, {"messageId": "x" * 300}, {"role": "ROLE_AGENT"}])
def test_a_message_needs_an_id_and_the_users_role(fields: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        read_message({**message({"text": "x"}), **fields})


def test_the_digest_is_over_the_parts_alone() -> None:
    first = read_message(message({"text": "x"}, metadata={"a": 1}))
    assert first.digest == read_message(message({"text": "x"})).digest
    assert first.digest != read_message(message({"text": "y"})).digest


def test_a_cause_is_of_one_message_and_a_fingerprint_of_one_sender_too() -> None:
    assert message_cause("m1") == message_cause("m1") != message_cause("m2")
    intake = read_message(message({"text": "x"}))
    assert fingerprint("ann", intake) == fingerprint("ann", intake) != fingerprint("bob", intake)
