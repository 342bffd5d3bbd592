"""What never gets as far as an operation: foreign pages, strangers, floods, garbage (abuse cases of the gateway)."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Route

from tests.integration.gateway.served import BINDINGS, TOKEN, Gateway, running_gateway, words
from tiny_harness.settings import Settings

pytestmark = pytest.mark.timeout(60)

HEADERS = {"Authorization": f"Bearer {TOKEN}", "X-Participant-Id": "ann", "A2A-Version": "1.0"}


def settings_in(folder: Path) -> Settings:
    return Settings.model_validate({"store": {"sqlite_path": folder / "store.db"}, "server": {"participant": "ann"}})


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    async with running_gateway(settings_in(folder), folder) as gateway:
        yield gateway


def routes(gateway: Gateway) -> Iterator[tuple[str, str]]:
    for route in gateway.app.routes:
        assert isinstance(route, Route)
        for method in sorted(route.methods or ()):
            yield method, route.path.replace("{id}", "t").replace("{push_id}", "p")
    yield "GET", "/nowhere"


async def test_every_route_refuses_a_foreign_host_and_origin_before_anything_else(gateway: Gateway) -> None:
    seen = 0
    for method, path in routes(gateway):
        for foreign in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
            told = await gateway.http.request(method, gateway.url + path, headers={**HEADERS, **foreign})
            assert told.status_code == 403, (method, path, foreign)
            seen += 1
    assert seen > 60


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "localhost@evil.example",
        "evil.example:127.0.0.1",
        "",
        "[::ffff:1.2.3.4]",
        "0.0.0.0",
    ],
)
async def test_a_host_that_is_not_ours_is_refused(gateway: Gateway, host: str) -> None:
    told = await gateway.http.get(f"{gateway.url}/healthz", headers={"Host": host})
    assert told.status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]", "[::1]:8080"])
async def test_a_loopback_name_with_any_port_is_ours(gateway: Gateway, host: str) -> None:
    assert (await gateway.http.get(f"{gateway.url}/healthz", headers={"Host": host})).status_code == 200


async def test_our_own_origin_may_call_and_another_port_may_not(gateway: Gateway) -> None:
    ours = {"Origin": gateway.url}
    assert (await gateway.http.get(f"{gateway.url}/healthz", headers=ours)).status_code == 200
    for origin in ("http://127.0.0.1:1", "http://localhost", gateway.url.replace("http", "https")):
        told = await gateway.http.get(f"{gateway.url}/healthz", headers={"Origin": origin})
        assert told.status_code == 403, origin


async def test_configured_origins_may_call_and_preflight(tmp_path: Path) -> None:
    page = "https://page.example"
    async with running_gateway(settings_in(tmp_path), tmp_path, cors_origins=(page,)) as gateway:
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "a2a-version,last-event-id"}
        told = await gateway.http.options(f"{gateway.url}/rpc", headers={"Origin": page, **asked})
        assert (told.status_code, told.headers["access-control-allow-origin"]) == (200, page)
        foreign = await gateway.http.options(f"{gateway.url}/rpc", headers={"Origin": "https://evil.example", **asked})
        assert foreign.status_code == 403


async def test_a_cross_site_form_post_is_refused(gateway: Gateway) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": words("x", "m")}})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        for path in ("/rpc", "/rest/message:send", "/rest/message:stream"):
            told = await gateway.http.post(gateway.url + path, content=body, headers={**HEADERS, "Content-Type": kind})
            assert told.status_code == 415, (kind, path)
            error = told.json()["error"]
            assert error["code"] == (-32005 if path == "/rpc" else 415)
            details = error["data"] if path == "/rpc" else error["details"]
            assert details[0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
    assert gateway.engine.deliveries == []


async def test_tcp_needs_the_token_and_the_socket_does_not(gateway: Gateway) -> None:
    for value in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN):
        told = await gateway.http.get(f"{gateway.url}/rest/tasks", headers={**HEADERS, "Authorization": value})
        assert (told.status_code, told.headers["www-authenticate"]) == (401, "Bearer"), value
    transport = httpx.AsyncHTTPTransport(uds=str(gateway.socket))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        version = {"A2A-Version": "1.0"}
        assert (await http.get("/rest/tasks", headers=version)).status_code == 200
        assert (await http.get("/rest/tasks", headers={**version, "Host": "evil.example"})).status_code == 403


async def test_only_the_card_health_and_the_files_of_the_page_are_open(gateway: Gateway) -> None:
    opened = set()
    for method, path in routes(gateway):
        told = await gateway.http.request(method, gateway.url + path)
        if told.status_code != 401:
            opened.add(path.rstrip("/"))
    assert opened == {"", "/.well-known/agent-card.json", "/healthz", "/readyz", "/ui", "/ui/{name:path}"}


async def test_mode_none_takes_names_and_wants_one(tmp_path: Path) -> None:
    async with running_gateway(settings_in(tmp_path), tmp_path, auth="none") as gateway:
        version = {"A2A-Version": "1.0"}
        assert (await gateway.http.get(f"{gateway.url}/rest/tasks", headers=version)).status_code == 401
        named = {**version, "X-Participant-Id": "bob"}
        assert (await gateway.http.get(f"{gateway.url}/rest/tasks", headers=named)).status_code == 200
        card = (await gateway.http.get(f"{gateway.url}/.well-known/agent-card.json")).json()
        assert "securitySchemes" not in card


@pytest.mark.parametrize("path", ["/rpc", "/rest/message:send", "/rest/message:stream"])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_message_of_2_mb_is_refused_and_says_why(gateway: Gateway, path: str, chunked: bool) -> None:
    body = json.dumps({"message": words("x" * 2_000_000, "m")}).encode()

    async def pieces() -> AsyncGenerator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    told = await gateway.http.post(
        gateway.url + path,
        content=pieces() if chunked else body,
        headers={**HEADERS, "Content-Type": "application/json"},
    )
    assert (told.status_code, told.json()["error"]["status"]) == (413, "TOO_LARGE")
    assert gateway.engine.deliveries == []


async def test_a_request_that_breaks_off_is_not_taken_for_a_whole_one(gateway: Gateway) -> None:
    body = json.dumps({"message": words("x", "m")}).encode()
    host, _, port = gateway.url.removeprefix("http://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    head = [f"POST /rest/message:send HTTP/1.1\r\nHost: {host}:{port}", "Content-Type: application/json"]
    head += [f"{name}: {value}" for name, value in HEADERS.items()]
    writer.write(("\r\n".join([*head, f"Content-Length: {len(body) + 5}"]) + "\r\n\r\n").encode() + body)
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await gateway.http.get(f"{gateway.url}/healthz")).status_code == 200
    assert gateway.engine.deliveries == []


async def test_who_calls_too_often_is_told_when_to_come_back_and_others_go_on(tmp_path: Path) -> None:
    async with running_gateway(settings_in(tmp_path), tmp_path, rate_limit_per_minute=3) as gateway:
        ann = gateway.caller()
        for _ in range(3):
            assert (await ann.call("ListTasks")).status == 200
        for method in ("ListTasks", "SendMessage", "SubscribeToTask"):
            told = await ann.call(method)
            assert told.status == 429
            assert 1 <= int(told.headers["retry-after"]) <= 60
        assert (await gateway.caller(name="bob").call("ListTasks")).status == 200


DEEP = "[" * 100_000
GARBAGE = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[]",
    b"1",
    b'"x"',
    b"null",
    DEEP.encode(),
    b'{"message": ' + DEEP.encode(),
]
MESSAGES: list[Any] = [
    None,
    5,
    [],
    "x",
    {"parts": "x"},
    {"messageId": "m", "parts": [None]},
    {"messageId": "m", "parts": [{"data": float("nan")}]},
    {"messageId": "m", "parts": [{"text": "x"}], "metadata": {"n": float("inf")}},
    {"messageId": "m", "parts": [{"data": 10**400}]},
    {"messageId": "m", "parts": [{"text": "\ud800"}]},
    {"messageId": "m", "parts": [{"text": "x", "data": 1}]},
    {"messageId": "m", "parts": [{"data": json.loads("[" * 300 + "]" * 300)}]},
    {"messageId": "m", "parts": [{"text": "x"}] * 101},
    {"messageId": "m" * 300, "parts": [{"text": "x"}]},
    {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]},
    {"messageId": "m", "taskId": "\x00", "parts": [{"text": "x"}]},
    {"messageId": "m", "taskId": 5, "parts": [{"text": "x"}]},
    {"messageId": "m", "parts": [{"text": "x"}], "referenceTaskIds": [1]},
]


@pytest.mark.parametrize("path", ["/rpc", "/rest/message:send", "/rest/message:stream"])
async def test_garbage_is_the_callers_mistake_never_an_internal_error(gateway: Gateway, path: str) -> None:
    headers = {**HEADERS, "Content-Type": "application/json"}
    for body in GARBAGE:
        _assert_refused(await gateway.http.post(gateway.url + path, content=body, headers=headers), body[:40])


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: repr(message)[:50])
async def test_a_garbled_message_is_the_callers_mistake(
    gateway: Gateway, method: str, binding: str, message: Any
) -> None:
    headers = {**HEADERS, "Content-Type": "application/json"}
    paths = {"SendMessage": "/rest/message:send", "SendStreamingMessage": "/rest/message:stream"}
    params: Any = {"message": message}
    path = paths[method]
    if binding == "JSONRPC":
        path, params = "/rpc", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    told = await gateway.http.post(gateway.url + path, content=json.dumps(params), headers=headers)
    _assert_refused(told, message)
    assert gateway.engine.deliveries == []


@pytest.mark.parametrize("params", [None, [], "x", 5, {"id": 5}, {"id": ["t"]}])
@pytest.mark.parametrize("method", ["GetTask", "CancelTask", "SubscribeToTask", "ListTasks", "SendStreamingMessage"])
async def test_garbled_parameters_are_the_callers_mistake(gateway: Gateway, method: str, params: Any) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    told = await gateway.http.post(f"{gateway.url}/rpc", json=body, headers=HEADERS)
    if method == "ListTasks" and told.status_code == 200 and "result" in told.json():
        return  # it has no parameter of that name
    _assert_refused(told, params)


@pytest.mark.parametrize("request_id", [True, 1.5, [], {}])
async def test_an_id_that_json_rpc_does_not_have_is_refused(gateway: Gateway, request_id: Any) -> None:
    body = {"jsonrpc": "2.0", "id": request_id, "method": "SubscribeToTask", "params": {"id": "t"}}
    told = (await gateway.http.post(f"{gateway.url}/rpc", json=body, headers=HEADERS)).json()
    assert (told["id"], told["error"]["code"]) == (None, -32600)


async def test_what_fails_unforeseen_is_logged_and_told_in_fixed_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> Any:
        raise RuntimeError("secret words")

    async with running_gateway(settings_in(tmp_path), tmp_path) as gateway:
        for name in ("task_of", "read"):
            monkeypatch.setattr(gateway.store, name, broken)
        for binding in BINDINGS:
            for method in ("GetTask", "CancelTask", "SubscribeToTask", "ListTasks"):
                told = await gateway.caller(binding).call(method, {"id": "t"})
                assert told.code in (-32603, 500)
                assert told.body["error"]["message"].startswith("something failed inside the harness")
                assert "secret words" not in told.text
    assert "secret words" in caplog.text


def _assert_refused(told: httpx.Response, what: Any) -> None:
    assert told.headers["content-type"] == "application/json", what
    code = told.json()["error"]["code"]
    assert code in (-32700, -32600, -32602, -32001, -32005, 400, 404, 415), (what, told.text[:500])
    assert told.status_code in (200, 400, 404, 415), what
    for word in ("Traceback", "maximum recursion", "NoneType", "iterable"):
        assert word not in told.text, (what, told.text)
