"""The conversation as the model reads it."""

import json
from typing import Any

from tiny_harness.envelope import MEDIA_TYPE
from tiny_harness.events import Event, EventKind
from tiny_harness.ext import commands
from tiny_harness.ext.stream import KEY
from tiny_harness_engine.core.transcript import read_conversation
from tiny_harness_engine.records import GateRecord


class Log:
    """Builds a task's events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, kind: EventKind, payload: dict[str, Any]) -> "Log":
        self.events.append(Event("t", len(self.events) + 1, f"m:{len(self.events)}", kind, json.dumps(payload)))
        return self

    def user(self, message_id: str, *parts: dict[str, Any]) -> "Log":
        message = {"messageId": message_id, "parts": list(parts) or [{"text": message_id}]}
        if not self.events:
            return self.add("task", {"task": {"history": [message], "metadata": {KEY: {}}}})
        return self.add("input", {"statusUpdate": {"status": {}, "metadata": {KEY: {"received": message}}}})

    def reply(self, text: str | None, *answers: str) -> "Log":
        status = {"message": {"messageId": "r", "parts": [{"text": text}]}} if text else {}
        update = {"status": status, "metadata": {KEY: {"in_reply_to": list(answers)}}}
        return self.add("reply" if text else "state", {"statusUpdate": update})

    def command(self, message_id: str, answer: str) -> "Log":
        message = {"messageId": message_id, "parts": [{"text": f"/{message_id}"}]}
        data = {"received": message, "received_as": "command"}
        if self.events:
            self.add("input", {"statusUpdate": {"status": {}, "metadata": {KEY: data}}})
        else:
            self.add("task", {"task": {"history": [message], "metadata": {KEY: {"received_as": "command"}}}})
        metadata = {KEY: {"in_reply_to": [message_id]}, commands.KEY: {"name": message_id, "outcome": "done"}}
        status = {"message": {"messageId": "r", "parts": [{"text": answer}]}}
        return self.add("reply", {"statusUpdate": {"status": status, "metadata": metadata}})

    def read(self, *reading: str, gates: dict[int, GateRecord] | None = None) -> list[str]:
        window = read_conversation(self.events, reading).gated(gates or {}).window(turn=1, fixed_tokens=0)
        return [f"{'>' if message.role == 'user' else '<'}{message.text}" for message in window.messages]


def test_a_first_turn_reads_the_first_message() -> None:
    assert Log().user("a").read("a") == [">a"]


def test_a_message_that_waited_stands_behind_the_reply_that_it_waited_for() -> None:
    log = Log().user("a").user("b").reply("A", "a")
    assert log.read("b") == [">a", "<A", ">b"]


def test_a_message_that_still_waits_is_not_read() -> None:
    assert Log().user("a").user("b").read("a") == [">a"]


def test_messages_read_in_one_turn_stand_in_the_given_order() -> None:
    log = Log().user("a").user("b").user("c").reply("A", "a")
    assert log.read("b", "c") == [">a", "<A", ">b", ">c"]


def test_an_interrupted_turn_leaves_its_message_without_a_reply() -> None:
    assert Log().user("a").reply(None, "a").user("b").read("b") == [">a", ">b"]


def test_text_with_a_media_type_is_read_and_an_envelope_is_not() -> None:
    log = Log().user(
        "a", {"text": "hi", "mediaType": "text/plain"}, {"data": {"kind": "task"}, "mediaType": MEDIA_TYPE}
    )
    assert log.read("a") == [">hi"]


def test_data_is_shown_in_a_delimited_block() -> None:
    assert Log().user("a", {"data": {"n": 1}}).read("a") == ['><data>\n{"n": 1}\n</data>']


def test_a_log_that_starts_in_the_middle_is_read_from_there() -> None:
    log = Log().user("a").reply("A", "a").user("b").reply("B", "b").user("c")
    log.events = log.events[1:]
    assert log.read("c") == ["<A", ">b", "<B", ">c"]


def test_commands_and_their_replies_are_not_read() -> None:
    log = Log().command("status", "fine").user("a").command("model", "big").reply("A", "a").user("b")
    assert log.read("b") == [">a", "<A", ">b"]


def test_a_task_without_a_first_message_is_read_from_its_second_event() -> None:
    log = Log().add("task", {"task": {"history": [], "metadata": {KEY: {}}}}).user("a")
    assert log.read("a") == [">a"]


def test_a_refused_message_is_never_read_and_a_replaced_one_in_its_new_words() -> None:
    log = Log().user("a").reply("Refused", "a").user("b").reply("B", "b").user("c")
    gates = {1: GateRecord(refusal="no"), 5: GateRecord(text="C")}
    assert log.read("c", gates=gates) == ["<Refused", ">b", "<B", ">C"]


def test_new_are_the_messages_that_are_asked_and_those_whose_turn_was_cut() -> None:
    log = Log().user("a").reply("A", "a").user("b").reply(None, "b").user("c")
    conversation = read_conversation(log.events, ["c"])
    assert [line.message.text for line in conversation.new] == ["b", "c"]


def test_the_refusals_are_those_of_the_messages_that_are_asked() -> None:
    log = Log().user("a").reply("A", "a").user("b").user("c")
    conversation = read_conversation(log.events, ["b", "c"])
    gates = {1: GateRecord(refusal="old"), 3: GateRecord(refusal="no"), 4: GateRecord()}
    assert conversation.refusals(gates) == {"b": "no"}
