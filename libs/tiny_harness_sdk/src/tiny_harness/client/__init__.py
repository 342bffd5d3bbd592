"""A client of a harness: the official A2A client, with our extensions understood and broken streams healed.

Nothing of ours is on the wire but metadata and headers, so it talks to any A2A 1.0 server and any A2A client can do
what it does.
"""

from tiny_harness.address import Address
from tiny_harness.client.connection import connect
from tiny_harness.client.events import (
    Changed,
    Connected,
    DeltaText,
    Received,
    Reconnecting,
    Replied,
    StateChanged,
    Stepped,
    TaskEvent,
    TaskShown,
)
from tiny_harness.client.fold import fold
from tiny_harness.client.result import TurnResult
from tiny_harness.client.session import HarnessClient
from tiny_harness.client.views import CommandAnswer, MessageView, Question, TaskList, TaskView
from tiny_harness.ext.commands import CommandOffer

__all__ = [
    "Address",
    "Changed",
    "CommandAnswer",
    "CommandOffer",
    "Connected",
    "DeltaText",
    "HarnessClient",
    "MessageView",
    "Question",
    "Received",
    "Reconnecting",
    "Replied",
    "StateChanged",
    "Stepped",
    "TaskEvent",
    "TaskList",
    "TaskShown",
    "TaskView",
    "TurnResult",
    "connect",
    "fold",
]
