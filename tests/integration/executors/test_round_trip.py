"""The engine's clients and the SDK's server understand each other, over both transports."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.integration.executors.calls import SECRET
from tests.integration.executors.conftest import Site
from tests.unit.hooks.samples import command_context
from tiny_harness.hooks.chain import Hooks, Outcome
from tiny_harness.hooks.contexts import CommandContext
from tiny_harness.hooks.declaration import RemoteDeclaration, Transport
from tiny_harness.hooks.remote import RemoteExecutors

TRANSPORTS: tuple[Transport, ...] = ("jsonrpc", "mcp")


class Harness:
    """As much of an engine as calls hooks."""

    def __init__(self, remote: RemoteExecutors, url: str, transport: Transport) -> None:
        self.remote = remote
        self._url = url
        self._transport: Transport = transport

    async def run(self, command: str, **changes: Any) -> Outcome[CommandContext]:
        points = ("command.invoked.pre", "command.invoked.in")
        hooks = Hooks([self.remote.executor(self._declare(point, command)) for point in points])
        return await hooks.run(CommandContext.model_validate(command_context(command, **changes)))

    def _declare(self, point: str, command: str) -> RemoteDeclaration:
        return RemoteDeclaration(
            name=f"deploys/{command}-{point}",
            point=point,
            url=self._url,
            key_id="deploys",
            transport=self._transport,
            command=command if point.endswith(".in") else None,
        )


@pytest.fixture(params=TRANSPORTS)
async def harness(site: Site, request: pytest.FixtureRequest) -> AsyncGenerator[Harness]:
    transport: Transport = request.param
    async with RemoteExecutors(secrets=lambda _: (SECRET,), deadline_s=30) as remote:
        yield Harness(remote, site.url if transport == "jsonrpc" else site.mcp_url, transport)


async def test_a_command_runs_in_the_service_with_what_its_hook_made_of_the_arguments(harness: Harness) -> None:
    outcome = await harness.run("deploy", arguments="  staging ")
    assert outcome.failure is None
    assert outcome.context.result is not None
    assert outcome.context.result.reply == "Deployed to staging."


async def test_the_services_hook_refuses_with_its_reason(site: Site, harness: Harness) -> None:
    outcome = await harness.run("deploy", arguments="forbidden")
    assert outcome.refusal == "that word is forbidden"
    assert site.deployed == []


@pytest.mark.parametrize("command", ["boom", "hang", "unknown"])
async def test_a_failing_body_is_a_failure_that_tells_nothing(harness: Harness, command: str) -> None:
    outcome = await harness.run(command)
    assert outcome.failure is not None
    assert "secret" not in outcome.failure.reason
    assert outcome.context.result is None


async def test_health_says_which_executors_are_there(harness: Harness) -> None:
    await harness.run("deploy")
    await harness.run("unknown")
    looks = await harness.remote.look()
    assert looks["deploys/deploy-command.invoked.in", "command.invoked.in"] is None
    assert looks["deploys/deploy-command.invoked.pre", "command.invoked.pre"] is None
