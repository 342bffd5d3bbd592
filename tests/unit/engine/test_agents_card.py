"""Agents' cards: what is refused and why, where credentials go, how long a card is kept."""

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from a2a.types import AgentCapabilities, AgentCard, AgentExtension, AgentInterface, SecurityRequirement, SecurityScheme
from a2a.types import StringList as Scopes
from google.protobuf import json_format
from pydantic import SecretStr

from tiny_harness.ext import stream, task
from tiny_harness.settings import AgentSettings
from tiny_harness_engine.agents.card import MAX_CARD_BYTES, CardBook, check_card
from tiny_harness_engine.agents.credential import credential_headers, read_secret
from tiny_harness_engine.agents.fault import AgentFault

URL = "https://agents.example"
SETTINGS = AgentSettings(url=URL)
SECRET = SecretStr("hush:hush")


def card(*interfaces: tuple[str, str, str], **more: Any) -> AgentCard:
    found = interfaces or (("JSONRPC", f"{URL}/rpc", "1.0"),)
    return AgentCard(
        name="x",
        supported_interfaces=[
            AgentInterface(protocol_binding=binding, url=url, protocol_version=version)
            for binding, url, version in found
        ],
        **more,
    )


def with_schemes(*wanted: tuple[str, ...], **schemes: dict[str, Any]) -> AgentCard:
    made = card()
    for name, scheme in schemes.items():
        made.security_schemes[name].CopyFrom(json_format.ParseDict(scheme, SecurityScheme()))
    for names in wanted:
        made.security_requirements.append(SecurityRequirement(schemes={name: Scopes() for name in names}))
    return made


BEARER = {"httpAuthSecurityScheme": {"scheme": "Bearer"}}
BASIC = {"httpAuthSecurityScheme": {"scheme": "basic"}}
DIGEST = {"httpAuthSecurityScheme": {"scheme": "digest"}}
KEY = {"apiKeySecurityScheme": {"location": "header", "name": "X-Api-Key"}}
QUERY = {"apiKeySecurityScheme": {"location": "query", "name": "key"}}
MTLS = {"mtlsSecurityScheme": {"description": "x"}}
OAUTH = {"oauth2SecurityScheme": {"description": "x"}}


def fault_of(call: Callable[[], object]) -> str:
    with pytest.raises(AgentFault) as caught:
        call()
    assert caught.value.kind == "final"
    return caught.value.reason


@pytest.mark.parametrize(
    ("scheme", "headers"),
    [
        (BEARER, {"Authorization": "Bearer hush:hush"}),
        (BASIC, {"Authorization": "Basic aHVzaDpodXNo"}),
        (KEY, {"X-Api-Key": "hush:hush"}),
        (OAUTH, {"Authorization": "Bearer hush:hush"}),
    ],
)
def test_a_credential_goes_where_the_scheme_says(scheme: dict[str, Any], headers: dict[str, str]) -> None:
    assert credential_headers(with_schemes(("s",), s=scheme), SECRET) == headers


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (with_schemes(("s",), s=QUERY), "not in a header"),
        (with_schemes(("s",), s=MTLS), "not supported"),
        (with_schemes(("s",), s=DIGEST), "digest"),
        (with_schemes(("s", "t"), s=KEY, t=BEARER), "together"),
        (with_schemes(("s",)), "does not describe"),
    ],
)
def test_a_scheme_that_cannot_be_met_is_refused_with_the_reason(wanted: AgentCard, words: str) -> None:
    assert words in fault_of(lambda: credential_headers(wanted, SECRET))


@pytest.mark.parametrize(
    "name", ["Host", "Content-Length", "Transfer-Encoding", "Cookie", "A2A-Version", "a b", "x\r\ny"]
)
def test_a_card_cannot_have_the_credential_sent_as_another_header(name: str) -> None:
    scheme = {"apiKeySecurityScheme": {"location": "header", "name": name}}
    assert "no place for keys" in fault_of(lambda: credential_headers(with_schemes(("s",), s=scheme), SECRET))


def test_the_first_requirement_that_can_be_met_counts() -> None:
    made = with_schemes(("m",), ("k",), ("b",), m=MTLS, k=KEY, b=BEARER)
    assert credential_headers(made, SECRET) == {"X-Api-Key": "hush:hush"}


def test_an_agent_that_may_be_called_without_a_credential_gets_none() -> None:
    assert credential_headers(with_schemes(()), SECRET) == {}
    assert credential_headers(card(), None) == {}


def test_a_credential_that_is_wanted_and_not_configured_is_said() -> None:
    assert "token_env" in fault_of(lambda: credential_headers(with_schemes(("b",), b=BEARER), None))


@pytest.mark.parametrize("value", [None, "", "  ", "two\nlines", "umläut"])
def test_a_variable_that_holds_nothing_to_send_is_named(value: str | None) -> None:
    environ = {} if value is None else {"X_TOKEN": value}
    settings = AgentSettings(url=URL, token_env="X_TOKEN")
    assert "X_TOKEN" in fault_of(lambda: read_secret(settings, environ))


def test_an_unknown_required_extension_is_refused_and_an_optional_one_is_not() -> None:
    def demanding(*, required: bool) -> AgentCard:
        extension = AgentExtension(uri="urn:x", required=required)
        return card(capabilities=AgentCapabilities(extensions=[extension]))

    assert "urn:x" in fault_of(lambda: check_card(demanding(required=True), SETTINGS))
    assert check_card(demanding(required=False), SETTINGS).extensions == ()


def test_extensions_of_ours_are_activated_when_they_are_demanded() -> None:
    extensions = [AgentExtension(uri=stream.URI, required=True), AgentExtension(uri=task.URI)]
    checked = check_card(card(capabilities=AgentCapabilities(extensions=extensions)), SETTINGS)
    assert checked.extensions == (stream.URI,)
    assert checked.is_idempotent
    assert checked.headers == {"X-Participant-Kind": "agent"}


def test_only_interfaces_at_the_configured_origin_are_used() -> None:
    made = card(
        ("GRPC", f"{URL}/grpc", "1.0"),
        ("JSONRPC", "https://thief.example/rpc", "1.0"),
        ("JSONRPC", "https://agents.example.thief.example/rpc", "1.0"),
        ("JSONRPC", "https://agents.example@thief.example/rpc", "1.0"),
        ("JSONRPC", "http://agents.example/rpc", "1.0"),
        ("JSONRPC", f"{URL}:8443/rpc", "1.0"),
        ("JSONRPC", f"{URL}/rpc", "0.3.0"),
        ("HTTP+JSON", f"{URL}:443/rest", "1.0"),
    )
    assert [each.url for each in check_card(made, SETTINGS).card.supported_interfaces] == [f"{URL}:443/rest"]


def test_a_card_that_leads_elsewhere_is_refused() -> None:
    made = card(("JSONRPC", "https://thief.example/rpc", "1.0"))
    assert "thief.example" in fault_of(lambda: check_card(made, SETTINGS))


def test_an_agent_of_another_protocol_is_refused_with_what_it_offers() -> None:
    assert "JSONRPC 0.3.0" in fault_of(lambda: check_card(card(("JSONRPC", f"{URL}/rpc", "0.3.0")), SETTINGS))
    assert "nothing" in fault_of(lambda: check_card(AgentCard(name="x"), SETTINGS))


class Answers:
    """Serves the card, or whatever is wanted; keeps what was asked."""

    def __init__(self, *answers: httpx.Response) -> None:
        self._answers = list(answers)
        self.asked: list[httpx.Request] = []

    def book(self, **settings: Any) -> CardBook:
        client = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return CardBook(AgentSettings(url=URL, **settings), client)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return self._answers.pop(0)


def served(**headers: str) -> httpx.Response:
    document = json_format.MessageToDict(card())
    return httpx.Response(
        200, json=document, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


async def fault_of_fetch(answer: httpx.Response) -> AgentFault:
    with pytest.raises(AgentFault) as caught:
        await Answers(answer).book().card()
    return caught.value


async def test_a_card_is_asked_for_once_while_it_is_fresh() -> None:
    answers = Answers(served())
    book = answers.book()
    assert await book.card() is await book.card()
    assert str(answers.asked[0].url) == f"{URL}/.well-known/agent-card.json"


async def test_an_old_card_is_asked_for_by_its_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(served(ETag='"1"', Cache_Control="max-age=60"), httpx.Response(304), served(ETag='"2"'))
    book = answers.book()
    now = time.monotonic()
    monkeypatch.setattr("tiny_harness_engine.agents.card.time.monotonic", lambda: now)
    first = await book.card()
    now += 61
    assert await book.card() is first
    assert answers.asked[1].headers["If-None-Match"] == '"1"'
    now += 301
    assert await book.card() is not first


async def test_an_agent_cannot_have_its_card_asked_for_all_the_time_or_never_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = Answers(served(Cache_Control="no-store"), served(Cache_Control="max-age=999999999"), served())
    book = answers.book()
    now = time.monotonic()
    monkeypatch.setattr("tiny_harness_engine.agents.card.time.monotonic", lambda: now)
    await book.card()
    now += 29
    await book.card()
    assert len(answers.asked) == 1
    now += 2
    await book.card()
    now += 3_601
    await book.card()
    assert len(answers.asked) == 3


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (httpx.Response(200, text="<html>"), "final"),
        (httpx.Response(200, json=[1]), "final"),
        (httpx.Response(200, json={"supportedInterfaces": 7}), "final"),
        (httpx.Response(200, json={"securitySchemes": {"x": 1}, "skills": "y"}), "final"),
        (httpx.Response(200, text="[" * 100_000), "final"),
        (httpx.Response(200, text=json.dumps({"name": "x" * MAX_CARD_BYTES})), "final"),
        (httpx.Response(404), "final"),
        (httpx.Response(307, headers={"Location": "https://thief.example"}), "final"),
        (httpx.Response(500), "passing"),
        (httpx.Response(429), "passing"),
    ],
)
async def test_a_card_that_cannot_be_had_is_a_fault(answer: httpx.Response, kind: str) -> None:
    assert (await fault_of_fetch(answer)).kind == kind


async def test_who_we_are_is_said_when_it_is_configured() -> None:
    checked = await Answers(served()).book(participant="left@here").card()
    assert checked.headers == {"X-Participant-Id": "left@here"}
