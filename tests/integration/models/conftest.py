"""Each of the wire formats that we speak, and server processes that speak it too."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tiny_harness.errors import ModelError
from tiny_harness.settings import Effort, Settings
from tiny_harness_engine.models import ModelMessage, ModelProvider, ModelReply, ModelRequest, open_provider

PATIENCE_S = 30


@dataclass(frozen=True)
class Wire:
    """A wire format."""

    provider: str
    key_variable: str
    path: str
    base: str = ""
    """What a base URL ends with."""
    section: dict[str, Any] = field(default_factory=dict[str, Any])

    def settings(self, url: str, **section: Any) -> Settings:
        """Point at a server."""
        told = {"base_url": url + self.base, "model": "m", **self.section, **section}
        return Settings.model_validate({"model": {"provider": self.provider}, self.provider: told})

    @asynccontextmanager
    async def model(self, url: str, key: str = "", **section: Any) -> AsyncGenerator[ModelProvider]:
        """Open the provider."""
        async with open_provider(self.settings(url, **section), {self.key_variable: key}) as model:
            yield model

    @asynccontextmanager
    async def server(self, *flags: str) -> AsyncGenerator[str]:
        """Run the server as a child process; gives its base URL."""
        module = ("-m", f"tiny_harness.testing.{self.provider}_server", "--port", "0")
        child = await asyncio.create_subprocess_exec(sys.executable, *module, *flags, stdout=asyncio.subprocess.PIPE)
        assert child.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                line = (await child.stdout.readline()).decode()
            assert line.startswith("listening on ")
            yield line.removeprefix("listening on ").strip()
        finally:
            child.terminate()
            async with asyncio.timeout(PATIENCE_S):
                await child.communicate()

    async def last_request(self, url: str) -> dict[str, Any]:
        """Give what the server was asked last."""
        async with httpx.AsyncClient() as client:
            return (await client.get(f"{url}/test/requests")).json()[-1]


OPENAI = ("openai", "OPENAI_API_KEY")
WIRES = {
    "responses": Wire(*OPENAI, "/v1/responses", "/v1", {"api": "responses"}),
    "chat_completions": Wire(*OPENAI, "/v1/chat/completions", "/v1", {"api": "chat_completions"}),
    "messages": Wire("anthropic", "ANTHROPIC_API_KEY", "/v1/messages"),
}


class Asking:
    """Asks a model, and checks what every answer keeps."""

    async def __call__(
        self, model: ModelProvider, text: str, effort: Effort | None = None
    ) -> tuple[ModelReply, list[str]]:
        """Ask with one message; gives the reply and the pieces in which its text came."""
        pieces: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            reply = await model.reply(ModelRequest(1, 1, 1, [ModelMessage("user", text, "m-1")], effort), pieces.append)
        assert "".join(pieces) == reply.text
        return reply, pieces

    async def failure(self, model: ModelProvider, text: str) -> ModelError:
        """Ask, and expect that the model fails."""
        with pytest.raises(ModelError) as failed:
            await self(model, text)
        return failed.value


@pytest.fixture
def ask() -> Asking:
    """How models are asked here."""
    return Asking()


@pytest.fixture(params=list(WIRES))
def wire(request: pytest.FixtureRequest) -> Wire:
    """Each wire format."""
    return WIRES[request.param]


@pytest.fixture(scope="session")
async def servers() -> AsyncGenerator[dict[str, str]]:
    """A server of each provider that accepts anybody: their base URLs."""
    async with WIRES["responses"].server() as openai, WIRES["messages"].server() as anthropic:
        yield {"openai": openai, "anthropic": anthropic}


@pytest.fixture
def url(wire: Wire, servers: dict[str, str]) -> str:
    """The server that speaks the wire format."""
    return servers[wire.provider]
