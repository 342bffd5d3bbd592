"""A message on its way into a task, understood. Pure."""

import json
from dataclasses import dataclass, replace
from typing import Any

from tiny_harness.contracts import Delivery, TaskSnapshot
from tiny_harness.errors import InvalidInput
from tiny_harness.intake import Intake, fingerprint, message_cause, read_message
from tiny_harness_engine.core import lifecycle, supervision
from tiny_harness_engine.core.drafts import Decision


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message and what was read in it."""

    task_id: str
    delivery: Delivery
    intake: Intake

    @property
    def cause(self) -> str:
        """Names its commit."""
        return message_cause(self.intake.message_id)

    @property
    def digest(self) -> str:
        """Tells it from another message under the same id."""
        return fingerprint(self.delivery.sender.id, self.intake)

    def record(self, state: TaskSnapshot | None, *, is_command: bool = False) -> Decision:
        """Decide what it does to the task: it starts it, or goes to it."""
        if state is None:
            new = self.delivery.new_task
            if new is not None and new.worker is not None:
                return supervision.open_task(self.task_id, self.delivery, self.intake)
            return lifecycle.open_task(self.task_id, self.delivery, self.intake, is_command=is_command)
        if self.intake.patch is not None and self.intake.patch.worker is not None:
            raise InvalidInput("invalid_envelope", "payload.worker", "is set when a task starts")
        if state.supervision is not None:
            return supervision.accept(state, self.delivery, self.intake, is_command=is_command)
        return lifecycle.accept(state, self.delivery, self.intake, is_command=is_command)

    def with_text(self, text: str) -> "Incoming":
        """Put other words in the place of its own; it stays the same message to its sender."""
        if text == self.intake.text:
            return self
        message: dict[str, Any] = json.loads(self.delivery.message)
        others = [part for part in message["parts"] if "text" not in part]
        changed = json.dumps({**message, "parts": [{"text": text}, *others]}, ensure_ascii=False)
        delivery = self.delivery.model_copy(update={"message": changed})
        return replace(self, delivery=delivery, intake=self.intake.model_copy(update={"text": text}))


def read_delivery(task_id: str, delivery: Delivery) -> Incoming:
    """Understand a delivery.

    Raises:
        InvalidInput, UnsupportedContent: See `intake.read_message`.
    """
    try:
        message = json.loads(delivery.message)
    except ValueError:
        raise InvalidInput("invalid_params", "message", "is no JSON") from None
    return Incoming(task_id, delivery, read_message(message))
