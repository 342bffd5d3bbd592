"""A real server on a loopback port, with one executor of each kind of trouble."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import httpx
import pytest

from tests.integration.executors.calls import SECRET, Peer
from tiny_harness.effects import CommandResult
from tiny_harness.errors import HookAbort
from tiny_harness.executors import ExecutorApp, serving_executors
from tiny_harness.hooks.contexts import CommandContext


@dataclass
class Site:
    """A server that runs, and what its executors have done."""

    url: str
    deployed: list[str] = field(default_factory=list[str])
    may_deploy: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def mcp_url(self) -> str:
        """Where it speaks MCP."""
        return self.url.removesuffix("rpc") + "mcp"


def make_app(site: Site) -> ExecutorApp:
    """Make the app."""
    app = ExecutorApp("deploys")

    @app.command("deploy", argument_hint="<env>", description="Deploy the current build")
    async def deploy(context: CommandContext) -> CommandResult:
        site.deployed.append(context.delivery_id)
        await site.may_deploy.wait()
        return CommandResult(reply=f"Deployed to {context.arguments}.")

    @app.command("boom")
    def boom(context: CommandContext) -> str:
        raise ValueError("a secret path: /etc/passwd")

    @app.command("hang", deadline_s=0.1)
    async def hang(context: CommandContext) -> None:
        await asyncio.Event().wait()

    @app.hook("command.invoked.pre")
    def guard(context: CommandContext) -> dict[str, str] | None:
        if "forbidden" in context.arguments:
            raise HookAbort("that word is forbidden")
        return {"arguments": context.arguments.strip()}

    return app


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Site]:
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_DEPLOYS", f"{SECRET.get_secret_value()},an older one")
    site = Site("")
    site.may_deploy.set()
    async with serving_executors(make_app(site), "127.0.0.1:0") as site.url:
        yield site


@pytest.fixture
async def peer(site: Site) -> AsyncGenerator[Peer]:
    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
        yield Peer(client, site.url, "deploys")
