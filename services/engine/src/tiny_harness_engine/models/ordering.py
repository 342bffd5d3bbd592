"""The window in the order that every provider demands, whatever was cut out of it. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from tiny_harness_engine.models.port import ModelMessage

NO_RESULT: Final = "There is no result: the call was cut."


def in_order(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Put each call's result right behind the message that asked for it, in the order of the calls.

    A result without its call is left out, since the window was cut between them. A call without a result gets one that
    says so, since its turn was cut. Providers refuse the whole request otherwise.
    """
    ordered: list[ModelMessage] = []
    for place, message in enumerate(messages):
        if message.role == "tool":
            continue
        ordered.append(message)
        if message.tool_calls:
            ordered += _results(message, messages[place + 1 :])
    return ordered


def _results(asking: ModelMessage, later: Iterable[ModelMessage]) -> Iterator[ModelMessage]:
    """Find the results before the model speaks again: a provider may use an id once more after that."""
    found: dict[str, ModelMessage] = {}
    for message in takewhile(lambda message: message.role != "assistant", later):
        if message.role == "tool":
            found.setdefault(message.call_id, message)
    for call in asking.tool_calls:
        yield found.get(call.call_id) or ModelMessage("tool", NO_RESULT, call_id=call.call_id, is_error=True)
