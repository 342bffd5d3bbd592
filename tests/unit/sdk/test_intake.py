"""What a message is taken for."""

import itertools
import re
from typing import Any

import pytest

from tiny_harness.envelope import MEDIA_TYPE, control_part
from tiny_harness.errors import InvalidInput, RoleNotPermitted, TaskNotFound, UnsupportedContent
from tiny_harness.ext import commands
from tiny_harness.ext.task import Participant
from tiny_harness.intake import (
    MAX_PARTS,
    CommandCall,
    authorise,
    fingerprint,
    message_cause,
    read_command,
    read_message,
)


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


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("/status", "status", ""),
        ("/a", "a", ""),
        ("/sub-task", "sub-task", ""),
        ("/a1-2-", "a1-2-", ""),
        ("/x--y", "x--y", ""),
        ("/status ", "status", ""),
        ("/status \t\r\n ", "status", ""),
        ("/model big", "model", "big"),
        ("/model\tbig", "model", "big"),
        ("/model\nbig", "model", "big"),
        ("/model\r\n\r\nbig\r\n", "model", "big"),
        ("/model   big  and  small  ", "model", "big  and  small"),
        ("/sub-task one\n\n  two\n", "sub-task", "one\n\n  two"),
        ("/echo /model big", "echo", "/model big"),
        ("/echo \u00a0x\u00a0", "echo", "\u00a0x\u00a0"),
        ("/echo \x00\x1b[2J", "echo", "\x00\x1b[2J"),
        ("/echo \u202eabc", "echo", "\u202eabc"),
        ("/echo 💥", "echo", "💥"),
    ],
)
def test_a_text_of_a_commands_shape_is_taken_apart(text: str, name: str, arguments: str) -> None:
    assert read_command(text) == CommandCall(name=name, arguments=arguments)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "//status",
        "/ status",
        "/\nstatus",
        " /status",
        "\n/status",
        "\ufeff/status",
        "/Status",
        "/STATUS",
        "/1a",
        "/-a",
        "/stätus",
        "/status!",
        "/status.",
        "/status/x",
        "/sub_task x",
        "/subTask x",
        "/status\u00a0x",
        "/status\u2028x",
        "/status\x0bx",
        "/status\x00",
        "status",
        "please /status",
        "\\/status",
        "⁄status",
    ],
)
def test_any_other_text_is_none(text: str) -> None:
    assert read_command(text) is None


def test_the_shape_is_the_one_that_the_design_writes_down() -> None:
    written_down = re.compile(r"\A/([a-z][a-z0-9-]*)(?:[ \t\r\n]+(.*?))?[ \t\r\n]*\Z", re.DOTALL)
    letters = ("/", "a", "b1", "-", " ", "\n", "\t", "\r", "A", "é", "\u00a0", ".")
    for pieces in itertools.product(letters, repeat=5):
        text = "".join(pieces)
        found, call = written_down.match(text), read_command(text)
        assert (call is None) == (found is None), repr(text)
        if call is not None and found is not None:
            assert (call.name, call.arguments) == (found[1], found[2] or ""), repr(text)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("blanks", [" ", "\n", "\t \r\n"])
def test_blanks_by_the_megabyte_cost_nothing(blanks: str) -> None:
    # With a pattern that tries every blank again this takes hours: the test's own time limit tells.
    many = blanks * (1_400_000 // len(blanks))
    assert read_command(f"/status{many}") == CommandCall(name="status")
    assert read_command(f"/echo{many}x{many}") == CommandCall(name="echo", arguments="x")
    assert read_command(f"{many}/status") is None
    call = read_command(f"/echo x{many}x")
    assert call is not None
    assert len(call.arguments) == len(many) + 2


@pytest.mark.timeout(20)
def test_a_name_of_a_megabyte_costs_nothing() -> None:
    call = read_command("/" + "a" * 1_400_000)
    assert call is not None
    assert len(call.name) == 1_400_000
    assert read_command("/" + "a" * 1_400_000 + "!") is None


TASK_PART = envelope({"kind": "task", "payload": {"name": "n"}})


@pytest.mark.parametrize(
    "parts",
    [
        [{"text": "/status"}, {"text": "x"}],
        [{"text": "/status"}, {"text": " "}],
        [{"text": "/status"}, {}],
        [{"text": "/status"}, {"data": {}}],
        [{"text": "/status"}, TASK_PART],
        [TASK_PART, {"text": "/status"}],
        [{"data": {"text": "/status"}}],
    ],
)
def test_only_a_text_that_stands_alone_is_a_command(parts: list[dict[str, Any]]) -> None:
    intake = read_message(message(*parts))
    assert (intake.kind, intake.command) == ("message", None)


def test_a_text_alone_is_a_command_call_and_keeps_its_words() -> None:
    intake = read_message(message({"text": "/model big"}))
    assert intake.command == CommandCall(name="model", arguments="big")
    assert (intake.kind, intake.text) == ("message", "/model big")


@pytest.mark.parametrize(
    ("metadata", "is_command"),
    [
        ({commands.KEY: {"literal": True}}, False),
        ({commands.KEY: {"literal": False}}, True),
        ({commands.KEY: {"literal": "true"}}, True),
        ({commands.KEY: {"literal": 1}}, True),
        ({commands.KEY: {}}, True),
        ({commands.KEY: None}, True),
        ({commands.KEY: [True]}, True),
        ({"literal": True}, True),
        ({}, True),
        (None, True),
        ("literal", True),
    ],
)
def test_a_message_that_says_that_it_is_words_is_no_command(metadata: Any, is_command: bool) -> None:
    intake = read_message(message({"text": "/status"}, metadata=metadata))
    assert (intake.command is not None) == is_command


PEOPLE = (
    Participant(id="ann", role="reporter"),
    Participant(id="al", role="assignee"),
    Participant(id="wanda", role="watcher"),
)


@pytest.mark.parametrize(
    ("parts", "may"),
    [
        ([{"text": "hi"}], {"ann", "al"}),
        ([{"text": "/status"}], {"ann", "al", "wanda"}),
        ([control_part("complete")], {"ann", "al"}),
        ([envelope({"kind": "task", "payload": {"name": "n"}})], {"ann", "al"}),
        ([envelope({"kind": "task", "payload": {"participants": [{"id": "x", "role": "watcher"}]}})], {"ann"}),
        (
            [
                {"text": "/status"},
                envelope({"kind": "task", "payload": {"participants": [{"id": "x", "role": "admin"}]}}),
            ],
            {"ann"},
        ),
    ],
)
def test_who_may_send_what(parts: list[dict[str, Any]], may: set[str]) -> None:
    intake = read_message(message(*parts))
    for who in ("ann", "al", "wanda"):
        if who in may:
            authorise("t", PEOPLE, who, intake)
        else:
            with pytest.raises(RoleNotPermitted):
                authorise("t", PEOPLE, who, intake)
    with pytest.raises(TaskNotFound):
        authorise("t", PEOPLE, "eve", intake)
