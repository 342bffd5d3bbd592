"""Rules on what is refused before anything is called: by HTTP status, with a JSON body. For both transports."""

import json
import time
from typing import Any, Final

from pydantic import SecretStr

from tiny_harness.hooks.conformance.finding import Judgement, Rule, all_of, failed, skipped
from tiny_harness.hooks.conformance.peer import Answer
from tiny_harness.hooks.conformance.speaker import Run
from tiny_harness.hooks.wire import MAX_BODY_BYTES, TIMESTAMP_WINDOW_S
from tiny_harness.ids import new_id

UNSIGNED: Final = skipped("calls are not signed")
FAR_S: Final = 2 * TIMESTAMP_WINDOW_S


def _fault(answer: Answer, status: int, what: str) -> str | None:
    """Say what is wrong with a refusal."""
    if answer.status != status:
        return f"{what} was answered with HTTP {answer.status} instead of {status}"
    document = answer.document
    error: Any = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict) or error.get("code") != status or not isinstance(error.get("message"), str):
        return f'{what} was answered with {status}, but not with {{"error": {{"code", "status", "message"}}}}'
    return None


async def _unsigned(run: Run) -> Judgement:
    if not run.peer.is_signing:
        return UNSIGNED
    return all_of("401", _fault(await run.peer.send(run.speaker.harmless(), {}), 401, "an unsigned call"))


async def _bad_signature(run: Run) -> Judgement:
    if not run.peer.is_signing:
        return UNSIGNED
    body = run.speaker.harmless()
    forged = run.peer.signed(body, secret=SecretStr(new_id()))
    altered = run.peer.signed(run.speaker.harmless())  # as an attacker would: another body under a good signature
    moved = run.peer.signed(body, path="/elsewhere")
    relabelled = {**run.peer.signed(body), "X-Tiny-Harness-Delivery": new_id()}
    attempts = {
        "a call signed with another secret": forged,
        "a body that was not signed": altered,
        "a signature for another path": moved,
        "a signature for another delivery": relabelled,
    }
    return all_of("401", *[_fault(await run.peer.send(body, head), 401, what) for what, head in attempts.items()])


async def _unknown_key(run: Run) -> Judgement:
    if not run.peer.is_signing:
        return UNSIGNED
    body = run.speaker.harmless()
    answer = await run.peer.send(body, run.peer.signed(body, key_id="no-such-key-here"))
    return all_of("401", _fault(answer, 401, "an unknown key"))


async def _old_signature(run: Run) -> Judgement:
    if not run.peer.is_signing:
        return UNSIGNED
    faults: list[str | None] = []
    for what, shift in {"old": -FAR_S, "early": FAR_S}.items():
        body = run.speaker.harmless()
        answer = await run.peer.send(body, run.peer.signed(body, timestamp=int(time.time()) + shift))
        faults.append(_fault(answer, 401, f"a signature that is {FAR_S} s too {what}"))
    return all_of("401", *faults)


async def _replay(run: Run) -> Judgement:
    if not run.peer.is_signing:
        return UNSIGNED
    body = run.speaker.harmless()
    headers = run.peer.signed(body)
    first = await run.peer.send(body, headers)
    if first.status == 401:
        return failed("the first of two equal requests was refused already")
    return all_of("401", _fault(await run.peer.send(body, headers), 401, "the very same request"))


async def _oversize(run: Run) -> Judgement:
    call = json.loads(run.speaker.harmless())
    body = json.dumps({**call, "padding": "x" * MAX_BODY_BYTES}).encode()
    whole = await run.peer.send(body, run.peer.signed(body))
    in_chunks = await run.peer.send(body, run.peer.signed(body, delivery_id=new_id()), in_chunks=True)
    what = f"a body of {len(body)} bytes"
    return all_of("413", _fault(whole, 413, what), _fault(in_chunks, 413, f"{what} without a length"))


async def _content_type(run: Run) -> Judgement:
    body = run.speaker.harmless()
    answer = await run.peer.send(body, run.peer.signed(body), media_type="text/plain")
    return all_of("415", _fault(answer, 415, "a body that is text/plain"))


async def _get(run: Run) -> Judgement:
    answer = await run.peer.send(b"", run.peer.signed(b"", method="GET"), method="GET")
    return all_of("405", _fault(answer, 405, "GET"))


RULES: Final[tuple[Rule[Run], ...]] = (
    Rule("unsigned", "A call without a signature is refused with 401.", _unsigned),
    Rule("bad-signature", "A signature that does not match secret, path, delivery and body: 401.", _bad_signature),
    Rule("unknown-key", "A key that the service does not know is refused with 401.", _unknown_key),
    Rule("old-signature", f"A timestamp more than {TIMESTAMP_WINDOW_S} s away is refused with 401.", _old_signature),
    Rule("replay", "A signature that was seen before is refused with 401.", _replay),
    Rule("oversize", f"A body of more than {MAX_BODY_BYTES} bytes is refused with 413.", _oversize),
)
"""For both transports."""

JSONRPC_RULES: Final[tuple[Rule[Run], ...]] = (
    Rule("content-type", "A body that does not say that it is JSON is refused with 415.", _content_type),
    Rule("get", "Any method but POST is refused with 405.", _get),
)
"""MCP has its own rules on these."""
