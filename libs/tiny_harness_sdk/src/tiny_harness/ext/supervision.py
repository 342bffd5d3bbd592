"""The `supervision` extension: how a supervised task stands with its worker (adr-042)."""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from tiny_harness.ext.names import extension_uri, metadata_key

NAME: Final = "supervision"
URI: Final = extension_uri(NAME)
KEY: Final = metadata_key(NAME)

INSTRUCTIONS: Final = (
    "This task is open until you say how it ended: call task_update with done, blocked or failed and a summary."
    " A message alone does not end it."
)
"""What every worker is told."""


class SupervisionData(BaseModel):
    """What stands under the extension's key in a supervised task's `Task.metadata` and in each of its events."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    worker: str
    """Id of the participant that works on it; only they may send a `task_update`."""
    queue_position: int | None = Field(default=None, ge=1)
    """Its place among the tasks that wait for this worker; absent once it was given."""
    reminders: int = Field(default=0, ge=0)
    """How often the worker was reminded of it since its last activity."""
    stalled: bool = False
    """Whether reminders did not help: a person is to look."""
    stopped: bool = False
    """Whether its people stopped the worker (`interrupt`); a message sets it going again."""
    warnings: int = Field(default=0, ge=0)
    """How often its people were warned that it will expire, since its last activity."""
    expired: bool = False
    """Whether it was canceled because nothing happened for too long."""
    acknowledged: tuple[str, ...] = ()
    """Who said that they have what they needed. Only in `Task.metadata`."""
    last_worker_line: str | None = None
    """What the worker said at last, cut to a line."""
    instructions: str = INSTRUCTIONS
    """For the worker."""


def marks(data: SupervisionData) -> tuple[str, ...]:
    """Put what is worth a look into words, the same on every surface."""
    found = [
        (f"place {data.queue_position} in the queue", data.queue_position is not None),
        (f"reminded {data.reminders} times" if data.reminders > 1 else "reminded once", data.reminders > 0),
        ("stalled", data.stalled),
        ("stopped", data.stopped),
        ("about to expire", data.warnings > 0 and not data.expired),
        ("expired", data.expired),
    ]
    return tuple(words for words, applies in found if applies)
