"""A remote executor over JSON-RPC, against a real socket: good calls, and each way in which a service can be bad."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from tests.integration.remote_hooks.contexts import SECRET, command, declared, remote, request, secrets
from tests.integration.remote_hooks.server import Request, answer, listening, port_of, result
from tiny_harness.errors import HookAbort, HookFailed, HookTransportError, RegistryError
from tiny_harness.hooks import Hooks
from tiny_harness.hooks.remote import RemoteExecutors
from tiny_harness.hooks.signature import Verifier

BODY = "command.invoked.in"
SHORT_S = 0.3
PATIENCE_S = 30


class Scripted:
    """A handler that counts calls and answers by a list; the last entry is repeated."""

    def __init__(self, *steps: object) -> None:
        self.steps = steps
        self.seen: list[Request] = []

    async def __call__(self, got: Request, writer: asyncio.StreamWriter) -> None:
        step = self.steps[min(len(self.seen), len(self.steps) - 1)]
        self.seen.append(got)
        if callable(step):
            await step(got, writer)
        else:
            await result(got, writer, step)


async def hang(_got: Request, _writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def hang_up(_got: Request, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def die_in_the_middle(_got: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"jsonrpc": "2.0", ')
    await writer.drain()
    writer.close()


async def unavailable(_got: Request, writer: asyncio.StreamWriter) -> None:
    await answer(writer, {"error": {"code": 503, "status": "UNAVAILABLE", "message": "later"}}, "503 Unavailable")


def error(code: int, message: str, data: object = None):
    async def step(got: Request, writer: asyncio.StreamWriter) -> None:
        body = {"code": code, "message": message, "data": data}
        await answer(writer, {"jsonrpc": "2.0", "id": got.call["id"], "error": body})

    return step


async def test_a_call_carries_the_context_and_a_signature_that_a_receiver_believes():
    service = Scripted({"text": "changed"})
    async with listening(service) as url, remote(f"{url}?a=b%20c") as executor:
        context = request()
        assert await executor.call(context) == {"text": "changed"}
    (got,) = service.seen
    assert got.call["method"] == "request.received.pre"
    assert got.call["id"] == context.delivery_id
    assert got.call["params"]["context"] == context.model_dump(mode="json")
    believed = Verifier(secrets).check(got.method, got.path, got.headers, got.body)
    assert (believed.key_id, believed.delivery_id, believed.attempt) == ("test", context.delivery_id, 1)
    assert SECRET.get_secret_value() not in str(got)


@pytest.mark.parametrize("patch", [None, {}])
async def test_an_executor_may_answer_nothing(patch: object):
    async with listening(Scripted(patch)) as url, remote(url) as executor:
        assert not await executor.call(request())


async def test_a_typed_abort_refuses_with_its_reason():
    service = Scripted(error(-32010, "short", {"reason": "not on a Friday"}))
    async with listening(service) as url, remote(url) as executor:
        with pytest.raises(HookAbort) as refused:
            await executor.call(request())
    assert refused.value.reason == "not on a Friday"


async def test_an_executor_that_raised_is_a_failure_and_not_one_of_the_transport():
    service = Scripted(error(-32603, "the executor failed", {"correlation_id": "c-7"}))
    async with listening(service) as url, remote(url) as executor:
        for _ in range(7):  # the service answers: its breaker stays closed
            with pytest.raises(HookFailed) as failed:
                await executor.call(request())
    assert type(failed.value) is HookFailed
    assert "c-7" in failed.value.reason
    assert len(service.seen) == 7


async def test_a_reply_of_the_wrong_type_fails_at_the_chain():
    async with listening(Scripted({"text": 7})) as url, remote(url) as executor:
        outcome = await Hooks([executor]).run(request())
    assert outcome.failure is not None
    assert "text" in outcome.failure.reason


REPLIES = {
    "not JSON": b"<html>",
    "not an object": [],
    "no version": {"id": "ID", "result": None},
    "an old version": {"jsonrpc": "1.0", "id": "ID", "result": None},
    "another id": {"jsonrpc": "2.0", "id": "another", "result": None},
    "no id": {"jsonrpc": "2.0", "id": None, "result": None},
    "a result that is a list": {"jsonrpc": "2.0", "id": "ID", "result": []},
    "a result that is text": {"jsonrpc": "2.0", "id": "ID", "result": "yes"},
    "neither result nor error": {"jsonrpc": "2.0", "id": "ID"},
    "both": {"jsonrpc": "2.0", "id": "ID", "result": None, "error": {"code": -32603, "message": "x"}},
    "an error that is text": {"jsonrpc": "2.0", "id": "ID", "error": "no"},
    "more than it may hold": {"jsonrpc": "2.0", "id": "ID", "result": None, "extra": 1},
    "a number that JSON does not have": b'{"jsonrpc": "2.0", "id": "ID", "result": {"text": NaN}}',
    "half a character": rb'{"jsonrpc": "2.0", "id": "ID", "result": {"text": "\ud800"}}',
    "endless depth": b'{"jsonrpc": "2.0", "id": "ID", "result": {"text": ' + b"[" * 500_000,
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("point", ["request.received.pre", BODY])
async def test_a_reply_that_is_out_of_contract_is_a_transport_error(point: str, reply: object):
    raw = reply if isinstance(reply, bytes) else json.dumps(reply).encode()

    async def step(got: Request, writer: asyncio.StreamWriter) -> None:
        await answer(writer, raw.replace(b'"ID"', json.dumps(got.call["id"]).encode()))

    service = Scripted(step)
    async with listening(service) as url, remote(url, point) as executor:
        with pytest.raises(HookTransportError) as failed:
            await executor.call(command() if point == BODY else request())
    assert (failed.value.point, failed.value.executor) == (point, "test/one")
    assert len(service.seen) == 1, "a bad reply does not become better"


@pytest.mark.parametrize("status", ["201 Created", "204 No Content", "401 Unauthorized", "404 Not Found"])
async def test_any_other_status_than_200_is_a_transport_error(status: str):
    async def step(_got: Request, writer: asyncio.StreamWriter) -> None:
        await answer(writer, None if status.startswith("204") else {"error": {"message": "because"}}, status)

    service = Scripted(step)
    async with listening(service) as url, remote(url) as executor:
        with pytest.raises(HookTransportError) as failed:
            await executor.call(request())
    assert status[:3] in failed.value.reason
    assert len(service.seen) == 1


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_never_followed(status: str):
    elsewhere = Scripted(None)

    async with listening(elsewhere) as target:

        async def step(_got: Request, writer: asyncio.StreamWriter) -> None:
            await answer(writer, None, status, {"Location": target})

        async with listening(Scripted(step)) as url, remote(url) as executor:
            with pytest.raises(HookTransportError) as failed:
                await executor.call(request())
    assert "redirect" in failed.value.reason
    assert not elsewhere.seen


async def test_ten_megabytes_are_cut_at_the_bound():
    cut = asyncio.Event()

    async def step(_got: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10485760\r\n\r\n")
        try:
            for _ in range(160):
                writer.write(b" " * 65_536)
                await writer.drain()
            await asyncio.Event().wait()
        except ConnectionError:
            cut.set()
            raise

    service = Scripted(step)
    async with listening(service) as url, remote(url) as executor:
        with pytest.raises(HookTransportError) as failed:
            await executor.call(request())
        async with asyncio.timeout(PATIENCE_S):
            await cut.wait()
    assert "1048576" in failed.value.reason


async def test_an_answer_that_unpacks_to_megabytes_is_not_unpacked():
    async def step(_got: Request, writer: asyncio.StreamWriter) -> None:
        await answer(writer, b"\x1f\x8b", headers={"Content-Encoding": "gzip"})

    service = Scripted(step)
    async with listening(service) as url, remote(url) as executor:
        with pytest.raises(HookTransportError) as failed:
            await executor.call(request())
    assert "compressed" in failed.value.reason
    assert service.seen[0].headers["accept-encoding"] == "identity"


async def test_a_context_beyond_the_bound_is_not_sent():
    service = Scripted(None)
    async with listening(service) as url, remote(url) as executor:
        with pytest.raises(HookFailed):
            await executor.call(request("x" * (1 << 20)))
    assert not service.seen


@pytest.mark.parametrize("point", ["request.received.pre", BODY])
async def test_an_executor_that_hangs_fails_at_its_deadline(point: str):
    service = Scripted(hang)
    async with listening(service) as url, remote(url, point, deadline_s=SHORT_S) as executor:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(HookTransportError) as failed:
                await executor.call(command() if point == BODY else request())
    assert "no answer within 0.3 s" in failed.value.reason
    assert len(service.seen) == 1


async def test_an_answer_that_drips_is_cut_at_the_deadline():
    async def drip(_got: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)  # this is what the service does wrong

    async with listening(drip) as url, remote(url, deadline_s=SHORT_S) as executor:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(HookTransportError) as failed:
                await executor.call(request())
    assert "no answer within" in failed.value.reason


@pytest.mark.parametrize("fault", [hang_up, die_in_the_middle, unavailable])
async def test_pre_and_post_are_tried_once_more_with_the_same_delivery_signed_anew(fault: object):
    service = Scripted(fault, {"text": "at last"})
    async with listening(service) as url, remote(url) as executor:
        context = request()
        assert await executor.call(context) == {"text": "at last"}
    first, second = service.seen
    assert first.call["id"] == second.call["id"] == context.delivery_id
    verifier = Verifier(secrets)
    attempts = [verifier.check(got.method, got.path, got.headers, got.body).attempt for got in service.seen]
    assert attempts == [1, 2]
    assert second.call["params"]["context"]["attempt"] == 2


@pytest.mark.parametrize("fault", [hang_up, die_in_the_middle, unavailable])
async def test_pre_and_post_are_not_tried_a_third_time(fault: object):
    service = Scripted(fault)
    async with listening(service) as url, remote(url) as executor:
        with pytest.raises(HookTransportError):
            await executor.call(request())
    assert len(service.seen) == 2


@pytest.mark.parametrize("fault", [hang_up, die_in_the_middle, unavailable])
async def test_a_body_is_never_called_again_once_it_may_have_begun(fault: object):
    service = Scripted(fault, {"result": {"reply": "twice"}})
    async with listening(service) as url, remote(url, BODY) as executor:
        with pytest.raises(HookTransportError):
            await executor.call(command())
    assert len(service.seen) == 1


async def test_a_service_that_is_down_at_start_is_used_when_it_is_there():
    async with listening(Scripted(None)) as url:
        port = port_of(url)
    async with remote(url, BODY) as executor:
        with pytest.raises(HookTransportError) as failed:
            await executor.call(command())
        assert "cannot be connected to" in failed.value.reason
        async with listening(Scripted({"result": {"reply": "done"}}), port):
            assert await executor.call(command()) == {"result": {"reply": "done"}}


async def test_a_body_is_called_again_if_the_first_call_was_refused_before_a_byte():
    service = Scripted({"result": {"reply": "done"}})
    async with listening(service) as url:
        port = port_of(url)
    async with AsyncExitStack() as stack:

        async def come_up(_seconds: float) -> None:
            await stack.enter_async_context(listening(service, port))

        executor = await stack.enter_async_context(remote(url, BODY, sleep=come_up))
        assert await executor.call(command()) == {"result": {"reply": "done"}}
    (got,) = service.seen
    assert got.headers["x-tiny-harness-attempt"] == "2"


async def test_the_breaker_opens_after_five_failures_and_one_trial_closes_it():
    now = 0.0
    service = Scripted(*[unavailable] * 11, None)
    async with listening(service) as url, remote(url, clock=lambda: now) as executor:
        for _ in range(5):
            with pytest.raises(HookTransportError):
                await executor.call(request())
        assert len(service.seen) == 10
        with pytest.raises(HookTransportError) as failed:
            await executor.call(request())
        assert "not called" in failed.value.reason
        assert "HTTP 503" in failed.value.reason
        assert len(service.seen) == 10, "an open breaker spares the service"
        now = 10.0
        assert await executor.call(request()) is None
        assert await executor.call(request()) is None


async def test_one_breaker_guards_all_executors_of_a_service():
    service = Scripted(unavailable)
    async with listening(service) as url, RemoteExecutors(secrets=secrets) as remotes:
        one = remotes.executor(declared(url))
        other = remotes.executor(declared(url, BODY, name="test/other"))
        for _ in range(5):
            with pytest.raises(HookTransportError):
                await one.call(request())
        with pytest.raises(HookTransportError) as failed:
            await other.call(command())
    assert failed.value.executor == "test/other"
    assert "not called" in failed.value.reason


async def test_a_cancelled_call_says_nothing_about_the_service():
    service = Scripted(hang)
    arrived = asyncio.Event()

    async def handler(got: Request, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await service(got, writer)

    async with listening(handler) as url, remote(url) as executor:
        for _ in range(6):
            arrived.clear()
            call = asyncio.ensure_future(executor.call(request()))
            async with asyncio.timeout(PATIENCE_S):
                await arrived.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
    assert len(service.seen) == 6


async def test_what_a_peer_says_reaches_a_reason_short_and_printable():
    async def step(_got: Request, writer: asyncio.StreamWriter) -> None:
        words = "\x1b[31mred\u202e\r\n" + "long " * 1_000
        await answer(writer, {"error": {"code": 401, "status": "NO", "message": words}}, "401 Unauthorized")

    async with listening(step) as url, remote(url) as executor:
        with pytest.raises(HookTransportError) as failed:
            await executor.call(request())
    assert failed.value.reason.isprintable()
    assert len(failed.value.reason) <= 300
    assert "red" in failed.value.reason


async def test_nothing_is_sent_without_a_secret():
    service = Scripted(None)
    async with listening(service) as url, remote(url, key_id="un.known") as executor:
        with pytest.raises(HookTransportError) as failed:
            await executor.call(request())
    assert "TINY_HARNESS_HOOK_SECRET_UN_KNOWN" in failed.value.reason
    assert not service.seen


@pytest.mark.parametrize(
    "url",
    ["http://example.org/hooks", "ftp://localhost/", "hooks", "https://a:b@example.org/", "https://", "http://[::1/"],
)
async def test_an_address_that_is_not_allowed_is_refused_at_once(url: str):
    async with RemoteExecutors() as remotes:
        with pytest.raises(RegistryError):
            remotes.executor(declared(url))


@pytest.mark.parametrize(
    "url", ["https://example.org/x", "http://localhost:1/", "http://127.8.8.8/", "http://[::1]:1/"]
)
async def test_https_and_loopback_addresses_are_allowed(url: str):
    async with RemoteExecutors() as remotes:
        assert remotes.executor(declared(url)).is_remote


async def test_calls_share_kept_connections():
    peers: set[object] = set()

    async def handler(got: Request, writer: asyncio.StreamWriter) -> None:
        peers.add(writer.get_extra_info("peername"))
        await result(got, writer, None)

    async with listening(handler) as url, remote(url) as executor:
        for _ in range(20):
            await executor.call(request())
    assert len(peers) <= 2
