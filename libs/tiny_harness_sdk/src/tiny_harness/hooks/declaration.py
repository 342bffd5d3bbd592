"""An executor that is somebody else's service, as a plugin declares it. What calls it is the engine's business."""

from dataclasses import dataclass
from typing import Literal

from tiny_harness.hooks.executor import DEFAULT_DEADLINE_S, DEFAULT_PRIORITY, OnFailure

Transport = Literal["jsonrpc", "mcp"]


@dataclass(frozen=True, slots=True)
class RemoteDeclaration:
    """A remote executor: where it is, and when it is called."""

    name: str
    """Unique, such as `deploys/run`."""
    point: str
    """A point that exists, such as `command.invoked.in`."""
    url: str
    """https, or http on loopback; without credentials."""
    key_id: str
    """Names the secret that its requests are signed with."""
    transport: Transport = "jsonrpc"
    command: str | None = None
    """On `command.invoked`: the only command that it is called for."""
    priority: int = DEFAULT_PRIORITY
    deadline_s: float = DEFAULT_DEADLINE_S
    """Seconds that a call may take."""
    on_failure: OnFailure = "closed"
    plugin: str = ""
    """The plugin's name."""
