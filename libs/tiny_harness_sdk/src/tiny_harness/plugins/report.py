"""What became of a plugin and of each of its parts: what an operator reads when something is missing (R6a.8)."""

import logging
from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

PluginState = Literal["loaded", "rejected"]
ComponentKind = Literal["manifest", "command", "executor", "prompt", "system prompt", "skills", "skill", "mcp", "file"]
ComponentState = Literal["loaded", "skipped", "unused"]

log = logging.getLogger(__name__)


class Component(BaseModel):
    """One part of a plugin."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ComponentKind
    name: str
    state: ComponentState
    """`skipped`: it is wrong; `unused`: it is right, and nobody asks for it."""
    reason: str = ""
    """Why, unless it was loaded."""


class PluginReport(BaseModel):
    """How loading a plugin went."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plugin: str
    """Its name; the folder's, if the manifest does not tell."""
    path: str | None = None
    """Its folder; `None` for one made in code."""
    version: str | None = None
    digest: str = ""
    """SHA-256 over its files."""
    state: PluginState
    reason: str = ""
    """Why it was rejected."""
    components: tuple[Component, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that was left out, a line each."""
        lines = [f"{part.kind} {part.name}: {part.reason}" for part in self.components if part.state == "skipped"]
        return (self.reason, *lines) if self.state == "rejected" else tuple(lines)


def log_reports(reports: Iterable[PluginReport]) -> None:
    """Log what was loaded, and as warnings what was left out."""
    for report in reports:
        name = f"{report.plugin} {report.version}" if report.version else report.plugin
        log.info("plugin %s %s from %s, digest %.12s", name, report.state, report.path or "code", report.digest)
        for problem in report.problems:
            log.warning("plugin %s: %s", report.plugin, problem)
