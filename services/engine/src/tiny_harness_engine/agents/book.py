"""The agents of the configuration, by name; each is opened when it is first asked, and with it the A2A library."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tiny_harness.settings import AgentSettings
from tiny_harness_engine.core.remote import Fault

if TYPE_CHECKING:
    from tiny_harness_engine.agents.agent import RemoteAgent


class AgentBook:
    """Remote agents. Made by `open_agent_book`, which closes them."""

    def __init__(self, settings: Mapping[str, AgentSettings]) -> None:
        self._settings = settings
        self._open: dict[str, RemoteAgent] = {}

    def agent(self, name: str | None) -> "RemoteAgent | None":
        """Give an agent; `None` if there is none of that name (any more)."""
        found = self._settings.get(name or "")
        if name is None or found is None:
            return None
        if name not in self._open:
            from tiny_harness_engine.agents.agent import RemoteAgent

            self._open[name] = RemoteAgent(found)
        return self._open[name]

    def patience_s(self, name: str | None) -> float:
        """Say how long an agent may be away; one that is not configured, not at all."""
        found = self._settings.get(name or "")
        return found.patience if found else 0.0

    async def close(self) -> None:
        """Close all connections."""
        for agent in self._open.values():
            await agent.close()


def unknown_agent(name: str | None) -> Fault:
    """Say that an agent is not configured."""
    return Fault(kind="final", reason=f"there is no agent {name} in the configuration")


@asynccontextmanager
async def open_agent_book(settings: Mapping[str, AgentSettings]) -> AsyncGenerator[AgentBook]:
    """Keep agents at hand while the block runs."""
    book = AgentBook(settings)
    try:
        yield book
    finally:
        await book.close()
