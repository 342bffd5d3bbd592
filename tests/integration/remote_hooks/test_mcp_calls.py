"""A remote executor over MCP: the same contract, another wire."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.integration.remote_hooks.contexts import command, remote, request
from tests.integration.remote_hooks.mcp_service import Guard, build, serving
from tests.integration.remote_hooks.server import Handler, Request, answer, listening, port_of
from tiny_harness.errors import HookAbort, HookFailed, HookTransportError

BODY = "command.invoked.in"
PATIENCE_S = 30


@pytest.fixture(params=[True, False], ids=["stateless", "sessions"])
async def service(request: pytest.FixtureRequest) -> AsyncGenerator[tuple[str, Guard]]:
    app, guard = build(stateless=request.param)
    async with serving(app) as url:
        yield url, guard


async def test_a_call_is_a_signed_tool_call(service: tuple[str, Guard]):
    url, guard = service
    async with remote(url, transport="mcp") as executor:
        context = request()
        assert await executor.call(context) == {"text": "changed"}
    (call,) = [call for call, body in guard.calls if b'"tools/call"' in body]
    assert (call.key_id, call.delivery_id, call.attempt) == ("test", context.delivery_id, 1)


async def test_a_body_answers_a_result(service: tuple[str, Guard]):
    async with remote(service[0], BODY, transport="mcp") as executor:
        assert await executor.call(command("prod")) == {"result": {"reply": "deployed prod"}}


async def test_an_executor_may_answer_nothing(service: tuple[str, Guard]):
    async with remote(service[0], transport="mcp") as executor:
        assert await executor.call(request("nothing")) is None


async def test_an_abort_refuses_with_its_reason(service: tuple[str, Guard]):
    async with remote(service[0], transport="mcp") as executor:
        with pytest.raises(HookAbort) as refused:
            await executor.call(request("abort"))
    assert refused.value.reason == "not on a Friday"


async def test_an_executor_that_raised_is_a_failure_and_not_one_of_the_transport(service: tuple[str, Guard]):
    async with remote(service[0], transport="mcp") as executor:
        with pytest.raises(HookFailed) as failed:
            await executor.call(request("raise"))
    assert type(failed.value) is HookFailed


@pytest.mark.parametrize(("text", "why"), [("nonsense", "structured content"), ("large", "1048576")])
async def test_an_answer_out_of_contract_is_a_transport_error(service: tuple[str, Guard], text: str, why: str):
    async with remote(service[0], transport="mcp") as executor:
        with pytest.raises(HookTransportError) as failed:
            await executor.call(request(text))
    assert why in failed.value.reason


async def test_a_tool_that_hangs_fails_at_its_deadline(service: tuple[str, Guard]):
    async with remote(service[0], transport="mcp", deadline_s=1.0) as executor:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(HookTransportError) as failed:
                await executor.call(request("hang"))
    assert "no answer within 1 s" in failed.value.reason


async def test_an_unsigned_session_is_refused_by_status(service: tuple[str, Guard]):
    url, guard = service
    guard._verifier = type(guard._verifier)(lambda _key: ())
    async with remote(url, transport="mcp") as executor:
        with pytest.raises(HookTransportError) as failed:
            await executor.call(request())
    assert "401" in failed.value.reason


async def test_a_dead_service_fails_at_once_and_is_used_when_it_is_back():
    app, _ = build(stateless=True)
    async with serving(app) as url, remote(url, BODY, transport="mcp") as executor:
        assert await executor.call(command())
    async with remote(url, BODY, transport="mcp") as executor:
        with pytest.raises(HookTransportError) as failed:
            await executor.call(command())
        assert "cannot be connected to" in failed.value.reason
        app, _ = build(stateless=True)
        async with serving(app, port=port_of(url)):
            assert await executor.call(command())


async def hang_up(_got: Request, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def redirect(_got: Request, writer: asyncio.StreamWriter) -> None:
    await answer(writer, None, "307 Temporary", {"Location": "/hooks/"})


async def broken(_got: Request, writer: asyncio.StreamWriter) -> None:
    await answer(writer, {"error": {"message": "x"}}, "500 Internal")


async def nonsense(_got: Request, writer: asyncio.StreamWriter) -> None:
    await answer(writer, b"<html>")


@pytest.mark.parametrize("fault", [hang_up, redirect, broken, nonsense])
@pytest.mark.parametrize("point", ["request.received.pre", BODY])
async def test_a_service_that_does_not_speak_mcp_is_a_transport_error(fault: object, point: str):
    async with listening(fault) as url, remote(url, point, transport="mcp") as executor:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(HookTransportError) as failed:
                await executor.call(command() if point == BODY else request())
    assert failed.value.reason.isprintable()
    if fault is redirect:
        assert "redirect" in failed.value.reason


class Older:
    """A service that speaks MCP as it was before 2026, with sessions, over a raw socket."""

    def __init__(self, at_call: Handler, at_end: Handler) -> None:
        self._at_call = at_call
        self._at_end = at_end
        self.calls = 0

    async def __call__(self, got: Request, writer: asyncio.StreamWriter) -> None:
        if got.method == "DELETE":
            await self._at_end(got, writer)
        elif got.method == "GET":
            await answer(writer, None, "405 Method Not Allowed")
        else:
            await self._post(got, writer)

    async def _post(self, got: Request, writer: asyncio.StreamWriter) -> None:
        call = got.call
        number = {"jsonrpc": "2.0", "id": call.get("id")}
        match call["method"]:
            case "tools/call":
                self.calls += 1
                await self._at_call(got, writer)
            case "initialize":
                result = {
                    "protocolVersion": call["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "older", "version": "1"},
                }
                await answer(writer, {**number, "result": result}, headers={"Mcp-Session-Id": "session-1"})
            case "notifications/initialized":
                await answer(writer, None, "202 Accepted")
            case _:
                await answer(writer, {**number, "error": {"code": -32601, "message": "unknown method"}})


async def deployed(got: Request, writer: asyncio.StreamWriter) -> None:
    result = {"content": [], "structuredContent": {"patch": {"result": {"reply": "done"}}}}
    await answer(writer, {"jsonrpc": "2.0", "id": got.call["id"], "result": result})


async def hang(_got: Request, _writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def test_a_body_is_called_once_when_its_connection_breaks():
    older = Older(hang_up, hang_up)
    async with listening(older) as url:
        async with remote(url, BODY, transport="mcp") as executor:
            with pytest.raises(HookTransportError):
                await executor.call(command())
        assert older.calls == 1
        async with remote(url, transport="mcp") as executor:
            with pytest.raises(HookTransportError):
                await executor.call(request())
        assert older.calls == 3, "pre and post are tried once more"


async def test_an_answer_is_not_lost_when_the_session_does_not_end():
    older = Older(deployed, hang)
    async with listening(older) as url, remote(url, BODY, transport="mcp") as executor:
        async with asyncio.timeout(PATIENCE_S):
            assert await executor.call(command()) == {"result": {"reply": "done"}}
    assert older.calls == 1
