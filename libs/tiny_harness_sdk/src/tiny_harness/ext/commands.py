"""The `commands` extension: which slash commands there are, and what became of one (R6.7, decision-007 point 4)."""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from tiny_harness.ext.names import extension_uri, metadata_key

NAME: Final = "commands"
URI: Final = extension_uri(NAME)
KEY: Final = metadata_key(NAME)


class CommandOffer(BaseModel):
    """One command, as a client offers it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    description: str = ""
    argument_hint: str = ""


class CommandsParams(BaseModel):
    """The extension's `params` on the agent card: the frozen list of commands."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    commands: tuple[CommandOffer, ...] = ()


class CommandsData(BaseModel):
    """What stands under the extension's key: in the metadata of a command's reply, or of a message that is none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str | None = None
    """On a reply: the command that it answers."""
    outcome: Literal["done", "refused", "failed"] | None = None
    """On a reply: what became of it."""
    literal: bool = False
    """On a message: its text is words, whatever it looks like. Forwarders and models set it."""


def is_literal(message: dict[str, Any]) -> bool:
    """Whether a message says of itself that it is never a command."""
    metadata = message.get("metadata")
    data = metadata.get(KEY) if isinstance(metadata, dict) else None
    return isinstance(data, dict) and data.get("literal") is True
