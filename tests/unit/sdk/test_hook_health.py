"""The health of hooks, as `/status` and `/_monitor` show it."""

import asyncio
from typing import Any

import pytest

from tiny_harness.errors import HookFailed, HookTransportError
from tiny_harness.hooks.executor import Executor
from tiny_harness.hooks.health import HookHealth

PATIENCE_S = 10


async def nothing(_context: object) -> None:
    return None


def executor(name: str = "test/one", **changes: Any) -> Executor:
    return Executor(**{"name": name, "operation": "request.received", "phase": "pre", "call": nothing, **changes})


def failed(name: str = "test/one", reason: str = "it raised") -> HookFailed:
    return HookFailed("request.received.pre", name, reason)


def down(name: str = "test/one", reason: str = "no answer") -> HookTransportError:
    return HookTransportError("request.received.pre", name, reason)


def states(health: HookHealth) -> dict[str, str]:
    return {each["name"]: each["state"] for each in health.snapshot()}


def test_nothing_is_known_before_a_call():
    health = HookHealth([executor(plugin="p", is_remote=True, on_failure="open")])
    assert health.snapshot() == [
        {
            "name": "test/one",
            "point": "request.received.pre",
            "command": None,
            "plugin": "p",
            "remote": True,
            "on_failure": "open",
            "state": "unknown",
            "calls": 0,
            "failures": 0,
            "last_error": None,
        }
    ]


def test_calls_are_counted_and_the_last_one_decides():
    one = executor()
    health = HookHealth([one])
    seen: list[str] = []
    for failure in (None, failed(), down(), None):
        health.watch(one, failure)
        seen.append(health.snapshot()[0]["state"])
    assert seen == ["up", "failing", "down", "up"]
    (shown,) = health.snapshot()
    assert (shown["calls"], shown["failures"], shown["last_error"]) == (4, 2, None)


def test_the_last_error_is_kept_until_a_call_goes_well():
    one = executor()
    health = HookHealth([one])
    health.watch(one, failed(reason="first"))
    health.watch(one, failed(reason="second"))
    assert health.snapshot()[0]["last_error"] == "second"


def test_secrets_in_an_error_are_masked():
    one = executor()
    health = HookHealth([one], redact=lambda document: document.replace("hush", "***"))
    health.watch(one, failed(reason="the key hush is wrong"))
    assert health.snapshot()[0]["last_error"] == "the key *** is wrong"


def test_what_ships_with_the_harness_is_not_listed():
    builtin = executor(is_builtin=True)
    health = HookHealth([builtin, executor("test/two")])
    health.watch(builtin, None)
    assert list(states(health)) == ["test/two"]


def test_one_name_may_stand_at_two_points():
    one, two = executor(), executor(operation="command.invoked")
    health = HookHealth([one, two])
    health.watch(two, failed())
    assert [each["state"] for each in health.snapshot()] == ["unknown", "failing"]


async def test_a_look_finds_services_down_and_up_again():
    health = HookHealth([executor("a"), executor("b")])
    answers: list[dict[tuple[str, str], HookFailed | None]] = [
        {("a", "request.received.pre"): down("a"), ("b", "request.received.pre"): None},
        {("a", "request.received.pre"): None, ("b", "request.received.pre"): failed("b", "not offered")},
    ]

    async def look() -> dict[tuple[str, str], HookFailed | None]:
        return answers.pop(0)

    await health.probe_once(look)
    assert states(health) == {"a": "down", "b": "up"}
    await health.probe_once(look)
    assert states(health) == {"a": "up", "b": "failing"}
    assert [each["calls"] for each in health.snapshot()] == [0, 0]


async def test_a_look_does_not_hide_that_the_last_call_failed():
    one = executor()
    health = HookHealth([one])
    health.watch(one, failed())

    async def look() -> dict[tuple[str, str], HookFailed | None]:
        return {("test/one", "request.received.pre"): None, ("gone", "request.received.pre"): None}

    await health.probe_once(look)
    assert states(health) == {"test/one": "failing"}


async def test_looks_go_on_after_one_that_broke():
    health = HookHealth([executor()])
    looked = asyncio.Event()
    looks = 0

    async def look() -> dict[tuple[str, str], HookFailed | None]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("a defect")
        looked.set()
        return {("test/one", "request.received.pre"): None}

    probing = asyncio.ensure_future(health.probe(look, 0))
    async with asyncio.timeout(PATIENCE_S):
        await looked.wait()
    probing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probing
