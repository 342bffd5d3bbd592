"""Looking after remote services: found down at the start, up when they are, and told apart from missing executors."""

import asyncio

import pytest

from tests.integration.remote_hooks.contexts import declared, request, secrets
from tests.integration.remote_hooks.mcp_service import build, serving
from tests.integration.remote_hooks.server import Request, answer, listening, port_of, result
from tests.integration.remote_hooks.small_service import SmallService
from tiny_harness.errors import HookFailed
from tiny_harness.hooks import Hooks
from tiny_harness.hooks.declaration import RemoteDeclaration
from tiny_harness.hooks.health import HookHealth
from tiny_harness.hooks.remote import RemoteExecutors

POINT = "request.received.pre"
PATIENCE_S = 30


def states(health: HookHealth) -> dict[str, str]:
    return {each["name"]: each["state"] for each in health.snapshot()}


async def test_a_service_that_is_down_at_start_is_seen_down_and_then_up():
    async with listening(SmallService()) as url:
        port = port_of(url)
    async with RemoteExecutors(secrets=secrets) as remotes:
        health = HookHealth([remotes.executor(declared(url))])
        await health.probe_once(remotes.look)
        assert states(health) == {"test/one": "down"}
        assert "cannot be connected to" in health.snapshot()[0]["last_error"]
        async with listening(SmallService(), port):
            await health.probe_once(remotes.look)
            assert states(health) == {"test/one": "up"}
        await health.probe_once(remotes.look)
        assert states(health) == {"test/one": "down"}


async def test_an_executor_that_its_service_does_not_have_is_named():
    async with listening(SmallService()) as url, RemoteExecutors(secrets=secrets) as remotes:
        there = declared(url, "command.invoked.in", name="a", command="deploy")
        no_body = declared(url, "command.invoked.in", name="b", command="restart")
        no_point = declared(url, "task.complete.pre", name="c")
        health = HookHealth([remotes.executor(each) for each in (there, no_body, no_point)])
        await health.probe_once(remotes.look)
    assert states(health) == {"a": "up", "b": "failing", "c": "failing"}
    errors = [each["last_error"] for each in health.snapshot()]
    assert errors == [
        None,
        "the service does not offer the command restart",
        "the service does not offer task.complete.pre",
    ]


async def test_a_service_is_asked_once_for_all_its_executors():
    asked: list[str] = []
    small = SmallService()

    async def handler(got: Request, writer: asyncio.StreamWriter) -> None:
        asked.append(got.call["method"])
        await small(got, writer)

    async with listening(handler) as url, RemoteExecutors(secrets=secrets) as remotes:
        for name in ("a", "b", "c"):
            remotes.executor(declared(url, name=name))
        assert set((await remotes.look()).values()) == {None}
    assert asked == ["hooks.health"]


async def hang(_got: Request, _writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def nonsense(got: Request, writer: asyncio.StreamWriter) -> None:
    await result(got, writer, {"points": "all"})


async def unknown(got: Request, writer: asyncio.StreamWriter) -> None:
    await answer(writer, {"jsonrpc": "2.0", "id": got.call["id"], "error": {"code": -32601, "message": "no"}})


@pytest.mark.parametrize("handler", [hang, nonsense, unknown])
async def test_a_service_that_does_not_tell_its_health_is_down(handler: object, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tiny_harness.hooks.remote.PROBE_DEADLINE_S", 0.3)
    async with listening(handler) as url, RemoteExecutors(secrets=secrets) as remotes:
        health = HookHealth([remotes.executor(declared(url))])
        async with asyncio.timeout(PATIENCE_S):
            await health.probe_once(remotes.look)
    assert states(health) == {"test/one": "down"}


async def test_services_over_mcp_are_looked_after_too():
    app, _ = build(stateless=True)
    async with RemoteExecutors(secrets=secrets) as remotes:
        async with serving(app) as url:
            health = HookHealth(
                [
                    remotes.executor(declared(url, transport="mcp", name="a")),
                    remotes.executor(declared(url, "task.complete.pre", transport="mcp", name="b")),
                ]
            )
            await health.probe_once(remotes.look)
            assert states(health) == {"a": "up", "b": "failing"}
        await health.probe_once(remotes.look)
        assert states(health) == {"a": "down", "b": "down"}


async def test_a_chain_tells_health_how_its_calls_went():
    async with listening(SmallService()) as url, RemoteExecutors(secrets=secrets) as remotes:
        declarations: list[RemoteDeclaration] = [
            declared(url, name="good"),
            declared("http://127.0.0.1:1/", name="dead", on_failure="open", priority=1),
        ]
        executors = [remotes.executor(each) for each in declarations]
        health = HookHealth(executors)
        outcome = await Hooks(executors, watch=health.watch).run(request())
    assert outcome.failure is None, "an observer that is down stops nothing"
    assert states(health) == {"good": "up", "dead": "down"}


async def test_a_policy_that_is_down_lets_nothing_through():
    async with RemoteExecutors(secrets=secrets) as remotes:
        outcome = await Hooks([remotes.executor(declared("http://127.0.0.1:1/"))]).run(request())
    assert isinstance(outcome.failure, HookFailed)
    assert outcome.failure.code == "hook_transport"
