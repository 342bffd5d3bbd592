"""A server's list of tools, and whose secrets it gets."""

from typing import Any

import mcp_types as types
import pytest

from tiny_harness.errors import ConfigError
from tiny_harness.plugins import HttpServer, StdioServer
from tiny_harness.redact import configured_secrets
from tiny_harness_engine.tools.credentials import ambiguous, process_environment, secret_variable, secrets_of
from tiny_harness_engine.tools.tool import MAX_DESCRIPTION_CHARS, MAX_TOOLS, Tool, read_listing

OBJECT = {"type": "object"}


def listed(name: str = "add", schema: dict[str, Any] = OBJECT, **options: Any) -> types.Tool:
    return types.Tool(name=name, input_schema=schema, **options)


def tool(*args: Any, **options: Any) -> Tool:
    [found] = read_listing("shop/main", [listed(*args, **options)]).tools.values()
    return found


@pytest.mark.parametrize(
    ("hints", "is_idempotent", "is_read_only"),
    [
        (None, False, False),
        ({}, False, False),
        ({"idempotent_hint": True}, True, False),
        ({"read_only_hint": True}, True, True),
        ({"read_only_hint": True, "idempotent_hint": False}, True, True),
        ({"read_only_hint": False, "idempotent_hint": False, "destructive_hint": False}, False, False),
    ],
)
def test_only_annotations_make_a_tool_idempotent(hints: Any, is_idempotent: bool, is_read_only: bool) -> None:
    found = tool("get_order", annotations=None if hints is None else types.ToolAnnotations(**hints))
    assert (found.name, found.own_name) == ("shop/main.get_order", "get_order")
    assert (found.is_idempotent, found.is_read_only) == (is_idempotent, is_read_only)


def test_the_hash_is_of_what_a_call_is_decided_upon() -> None:
    one = tool(schema={"type": "object", "properties": {"a": {}, "b": {}}})
    same = tool(schema={"properties": {"b": {}, "a": {}}, "type": "object"}, description="Other words")
    other = tool(schema={"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]})
    hinted = tool(schema=dict(one.parameters), annotations=types.ToolAnnotations(idempotent_hint=True))
    assert one.schema_hash == same.schema_hash
    assert len({one.schema_hash, other.schema_hash, hinted.schema_hash}) == 3


def test_bad_tools_are_left_out_and_the_others_stay() -> None:
    bad = [
        listed("bad", {"type": "no type"}),
        listed("array", {"type": "array"}),
        listed(""),
        listed("x" * 129),
        listed("a\nb"),
        listed("add"),
    ]
    listing = read_listing("shop/main", [listed("add"), *bad, listed("sub")])
    assert list(listing.tools) == ["shop/main.add", "shop/main.sub"]
    assert len(listing.left_out) == len(bad)
    assert listing.left_out[-1] == "add: is listed twice"
    assert all(line.isprintable() for line in listing.left_out)


def test_a_listing_is_bounded() -> None:
    listing = read_listing("shop/main", (listed(f"t{number}") for number in range(MAX_TOOLS + 5)))
    assert len(listing.tools) == MAX_TOOLS
    assert len(listing.left_out) == 5
    assert len(tool(description="x\x1b" * MAX_DESCRIPTION_CHARS).description) == MAX_DESCRIPTION_CHARS


def test_a_broken_schema_of_results_is_no_reason_to_do_without_the_tool() -> None:
    assert tool(output_schema={"type": "no type"}).output is None
    assert tool(output_schema=OBJECT).output is not None


HTTP = HttpServer("api", "https://example.com/mcp", plugin="acme.tools")
STDIO = StdioServer("my db", "server", plugin="acme")
API, DB = "TINY_HARNESS_TOOL_SECRET_ACME_TOOLS_API", "TINY_HARNESS_TOOL_SECRET_ACME_MY_DB"


def test_each_server_has_a_variable_that_logs_mask() -> None:
    assert (secret_variable(HTTP), secret_variable(STDIO)) == (API, DB)
    assert configured_secrets({API: "one", f"{DB}__KEY": "two", "HOME": "x"}) == ("one", "two")


def test_a_server_gets_its_own_secrets_and_no_other() -> None:
    environ = {API: "t", f"{API}__X_KEY": "k", f"{DB}__KEY": "d", f"{API}S__X": "no", "OPENAI_API_KEY": "no"}
    assert secrets_of(HTTP, environ) == {"Authorization": "Bearer t", "X-KEY": "k"}
    assert secrets_of(STDIO, environ) == {"KEY": "d"}
    assert secrets_of(STDIO, {}) == {}


@pytest.mark.parametrize(
    ("server", "environ"),
    [
        (HTTP, {API: ""}),
        (HTTP, {API: "two\nlines"}),
        (HTTP, {f"{API}__X": "é"}),
        (STDIO, {DB: "without a name"}),
        (STDIO, {f"{DB}__KEY": "  "}),
    ],
)
def test_a_secret_that_cannot_be_sent_keeps_the_server_down(server: Any, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        secrets_of(server, environ)
    assert all(value.strip() not in str(caught.value) for value in environ.values() if value.strip())


def test_a_secret_that_could_be_meant_for_two_is_given_to_none() -> None:
    twin = HttpServer("tools_api", "https://example.org/mcp", plugin="acme")
    shared = ambiguous([HTTP, STDIO, twin])
    assert shared == {API}
    for server in (HTTP, twin):
        with pytest.raises(ConfigError):
            secrets_of(server, {API: "t"}, shared)
        assert secrets_of(server, {}, shared) == {}


def test_a_process_gets_the_least_of_our_environment() -> None:
    environ = {"PATH": "/bin", "LANG": "C", "OPENAI_API_KEY": "k", "TINY_HARNESS_TOKEN": "t", "PYTHONPATH": "/x"}
    assert process_environment(environ) == {"PATH": "/bin", "LANG": "C"}
