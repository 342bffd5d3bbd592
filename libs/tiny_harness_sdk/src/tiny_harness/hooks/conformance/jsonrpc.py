"""JSON-RPC: how good calls are made, and the rules that only it has."""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tiny_harness.hooks.conformance.contexts import Probe, context
from tiny_harness.hooks.conformance.finding import Judgement, Rule, all_of, failed, ok, skipped
from tiny_harness.hooks.conformance.peer import Answer, Peer, Silence
from tiny_harness.hooks.conformance.speaker import Offered, Reply, Run
from tiny_harness.hooks.delivery import ServiceFault, clean
from tiny_harness.hooks.points import BODY, point_names
from tiny_harness.hooks.remote_jsonrpc import Reply as RpcReply
from tiny_harness.hooks.remote_jsonrpc import parse_reply
from tiny_harness.hooks.wire import (
    HEALTH_METHOD,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MEDIA_TYPE,
    PARSE_ERROR,
    UNKNOWN_METHOD,
)
from tiny_harness.ids import new_id


class _Command(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str = Field(pattern="^[a-z][a-z0-9-]*$")
    description: str
    argument_hint: str = ""


class _Health(BaseModel):
    name: str = Field(min_length=1)
    points: tuple[str, ...]
    commands: tuple[_Command, ...]


class JsonRpcSpeaker:
    """Makes JSON-RPC calls."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def offer(self) -> Offered | str:
        """Ask for its health, as `Speaker` says."""
        number = new_id()
        body = encode(number, HEALTH_METHOD, {})
        answer = await self._peer.send(body, self._peer.signed(body, delivery_id=number))
        try:
            result = _result(answer, number)
            if result.error is not None:
                return f"{HEALTH_METHOD} was answered with error {result.error.code}: {clean(result.error.message)}"
            health = _Health.model_validate(result.result)
        except ServiceFault as fault:
            return fault.reason
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            return f"its health is malformed at {clean('.'.join(map(str, first['loc'])))}: {clean(first['msg'])}"
        unknown = sorted(set(health.points) - set(point_names()))
        faults = tuple(f"there is no hook point {clean(point)!r}" for point in unknown)
        commands = tuple(command.name for command in health.commands)
        return Offered(clean(health.name), health.points, commands, faults)

    async def ask(self, probe: Probe, delivery_id: str, attempt: int = 1) -> Reply:
        """Call an executor, as `Speaker` says."""
        shown = probe.context.model_copy(update={"delivery_id": delivery_id, "attempt": attempt})
        body = encode(delivery_id, probe.point, {"context": shown.model_dump(mode="json")})
        try:
            headers = self._peer.signed(body, delivery_id=delivery_id, attempt=attempt)
            found = _result(await self._peer.send(body, headers), delivery_id)
        except Silence as silence:
            return Reply(probe, delivery_id, fault=str(silence), is_late=silence.is_late)
        except ServiceFault as fault:
            return Reply(probe, delivery_id, fault=fault.reason)
        error = found.error.model_dump() if found.error else None
        return Reply(probe, delivery_id, patch=found.result, error=error)

    def harmless(self) -> bytes:
        """Ask for health."""
        return encode(new_id(), HEALTH_METHOD, {})


def encode(number: str, method: str, params: Mapping[str, Any]) -> bytes:
    """Write a call."""
    call = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(call, separators=(",", ":"), ensure_ascii=False).encode()


def _result(answer: Answer, number: str) -> RpcReply:
    if answer.status != 200:
        raise ServiceFault(f"it answered HTTP {answer.status} instead of 200{_words(answer)}")
    if answer.media_type != MEDIA_TYPE:
        raise ServiceFault(f"its answer's media type is {clean(answer.media_type) or 'missing'}, not {MEDIA_TYPE}")
    return parse_reply(answer.body, number)


def _words(answer: Answer) -> str:
    document = answer.document
    error: Any = document.get("error") if isinstance(document, dict) else None
    words: Any = error.get("message") if isinstance(error, dict) else None
    return f" ({clean(words)})" if isinstance(words, str) else ""


async def _error_code(run: Run, body: bytes, number: str, wanted: int) -> str | None:
    """Send a bad call; what is wrong with how it was refused, if anything."""
    try:
        reply = _result(await run.peer.send(body, run.peer.signed(body)), number)
    except ServiceFault as fault:
        return fault.reason
    if reply.error is None:
        return f"it was answered with a result instead of error {wanted}"
    return None if reply.error.code == wanted else f"it was answered with error {reply.error.code} instead of {wanted}"


async def _unknown_method(run: Run) -> Judgement:
    number = new_id()
    body = encode(number, "no.such.point", {"context": {}})
    return all_of(f"error {UNKNOWN_METHOD}", await _error_code(run, body, number, UNKNOWN_METHOD))


async def _unknown_command(run: Run) -> Judgement:
    if run.offered is None or not run.offered.commands:
        return skipped("it offers no commands")
    number = new_id()
    shown = context(BODY, command="no-such-command-here").model_copy(update={"delivery_id": number})
    body = encode(number, BODY, {"context": shown.model_dump(mode="json")})
    return all_of(f"error {UNKNOWN_METHOD}", await _error_code(run, body, number, UNKNOWN_METHOD))


async def _invalid_params(run: Run) -> Judgement:
    if run.offered is None or not run.offered.points:
        return skipped("it offers no hook points")
    faults: list[str | None] = []
    for params in ({}, {"context": "text"}):
        number = new_id()
        fault = await _error_code(run, encode(number, run.offered.points[0], params), number, INVALID_PARAMS)
        faults.append(f"params {json.dumps(params)}: {fault}" if fault else None)
    return all_of(f"error {INVALID_PARAMS}", *faults)


async def _malformed(run: Run) -> Judgement:
    number = new_id()
    body = encode(number, HEALTH_METHOD, {})[:-1]
    return all_of(f"error {PARSE_ERROR}", await _error_code(run, body, number, PARSE_ERROR))


async def _batch(run: Run) -> Judgement:
    calls = b"[" + run.speaker.harmless() + b"," + run.speaker.harmless() + b"]"
    answer = await run.peer.send(calls, run.peer.signed(calls))
    if isinstance(answer.document, list):
        return failed("a batch was run: the answer is a list")
    try:
        reply = _result(answer, "")
    except ServiceFault as fault:
        return failed(fault.reason)
    code = reply.error.code if reply.error else None
    return ok(f"error {code}") if code == INVALID_REQUEST else failed(f"it was answered with error {code}")


async def _old_version(run: Run) -> Judgement:
    number = new_id()
    body = encode(number, HEALTH_METHOD, {}).replace(b'"2.0"', b'"1.0"', 1)
    return all_of(f"error {INVALID_REQUEST}", await _error_code(run, body, number, INVALID_REQUEST))


RULES: Final[tuple[Rule[Run], ...]] = (
    Rule("malformed", "A body that is not JSON is answered with error -32700.", _malformed),
    Rule("invalid-request", "A call that is not JSON-RPC 2.0 is answered with error -32600.", _old_version),
    Rule("batch", "A batch is answered with error -32600, and nothing in it is run.", _batch),
    Rule("unknown-method", "A method that the service does not have is answered with error -32601.", _unknown_method),
    Rule("unknown-command", "A command that the service has no body for is answered with -32601.", _unknown_command),
    Rule("invalid-params", "Params without a context are answered with error -32602.", _invalid_params),
)
