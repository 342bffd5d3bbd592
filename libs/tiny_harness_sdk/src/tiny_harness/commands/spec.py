"""What a command is called and how it is offered to people."""

import re
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from tiny_harness.access import Act
from tiny_harness.errors import RegistryError

COMMAND_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")


class CommandSpec(BaseModel):
    """A command as the card lists it, and what a participant must be allowed to do to run it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Matched case-sensitively."""
    description: str = Field(default="", max_length=200)
    """One line."""
    argument_hint: str = Field(default="", max_length=100)
    """What stands behind the name, such as `<env>`."""
    act: Act = "send a message"
    """What the sender's role must allow (`tiny_harness.access`)."""


def check_name(name: str) -> None:
    """Refuse a name that no message could ever match.

    Raises:
        RegistryError: It is invalid.
    """
    if not COMMAND_NAME.fullmatch(name):
        raise RegistryError("command", name, "must match [a-z][a-z0-9-]* and have at most 64 characters")
