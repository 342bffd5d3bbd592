"""The conversation as the model reads it, put together from events. Pure.

The log is in the order of arrival; the model reads in the order of answering: a message that waited for a running turn
stands behind that turn's reply. So a message's place is set by the event that ends its turn, never by its number.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tiny_harness.envelope import MEDIA_TYPE
from tiny_harness.events import Event
from tiny_harness.ext.stream import KEY
from tiny_harness_engine.models.port import ModelMessage

CHARS_PER_TOKEN = 4
"""A rough estimate, good enough to stay below a provider's limit."""


def read_transcript(events: Iterable[Event], reading: Sequence[str], max_tokens: int) -> list[ModelMessage]:
    """Order a task's messages for a step.

    Args:
        events: The task's last events, in order.
        reading: Ids of the messages that the step answers, in order.
        max_tokens: What the window holds; the oldest messages are left out first, those in `reading` never.
    """
    waiting: dict[str, ModelMessage] = {}
    told: list[ModelMessage] = []
    for event in events:
        payload = json.loads(event.payload)
        received, data = _received(payload)
        if received is not None and event.kind in ("task", "input"):
            waiting[received["messageId"]] = ModelMessage("user", _text(received), received["messageId"])
        for message_id in data.get("in_reply_to", ()):
            if message_id in waiting:
                told.append(waiting.pop(message_id))
        reply = payload.get("statusUpdate", {}).get("status", {}).get("message")
        if reply is not None:
            told.append(ModelMessage("assistant", _text(reply), reply["messageId"]))
    asked = [waiting[message_id] for message_id in reading if message_id in waiting]
    return [*_newest(told, max_tokens - _tokens(asked)), *asked]


def _received(payload: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    task = payload.get("task")
    data = (task or payload.get("statusUpdate", {})).get("metadata", {}).get(KEY, {})
    return (task["history"][0] if task else data.get("received")), data


def _text(message: dict[str, Any]) -> str:
    parts = message.get("parts", ())
    return "\n\n".join(
        part["text"] if "text" in part else _data(part) for part in parts if part.get("mediaType") != MEDIA_TYPE
    )


def _data(part: dict[str, Any]) -> str:
    return f"<data>\n{json.dumps(part.get('data'), ensure_ascii=False)}\n</data>"


def _newest(messages: list[ModelMessage], max_tokens: int) -> list[ModelMessage]:
    kept = len(messages)
    while kept > 0 and (max_tokens := max_tokens - _tokens(messages[kept - 1 : kept])) >= 0:
        kept -= 1
    return messages[kept:]


def _tokens(messages: Sequence[ModelMessage]) -> int:
    return sum(len(message.text) // CHARS_PER_TOKEN + 4 for message in messages)
