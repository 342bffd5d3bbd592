"""Rules on calls and answers, the same over both transports. The first ones make the calls, the others look at them."""

import asyncio
from typing import Any, Final

from pydantic import ValidationError

from tiny_harness.hooks.conformance.contexts import ABORT_WORDS, Probe, context, probes
from tiny_harness.hooks.conformance.finding import Judgement, Rule, all_of, failed, skipped
from tiny_harness.hooks.conformance.peer import ANSWER_S, Silence
from tiny_harness.hooks.conformance.speaker import Reply, Run
from tiny_harness.hooks.delivery import clean
from tiny_harness.hooks.points import BODY, OPERATIONS, parse_point
from tiny_harness.hooks.wire import ABORTED, EXECUTOR_FAILED, FAILED_WORDS
from tiny_harness.ids import new_id

MAX_AT_ONCE: Final = 4
"""Good calls that are made at the same time."""
MAX_REPEATED: Final = 5
"""Deliveries that are repeated."""


async def _health(run: Run) -> Judgement:
    try:
        found = await run.speaker.offer()
    except Silence as silence:
        if silence.is_refused:
            raise
        return failed(str(silence))
    if isinstance(found, str):
        return failed(found)
    run.offered = found
    if not found.points:
        return all_of("", "it offers no hook points", *found.faults)
    told = f"{found.name}: {len(found.points)} hook points, {len(found.commands)} commands"
    return all_of(told, *found.faults)


async def _calls(run: Run) -> Judgement:
    if run.offered is None:
        return skipped("its health does not tell what to call")
    good = probes(run.offered.points, run.offered.commands)
    run.replies = await _ask_all(run, good)
    provoking = probes([point for point in run.offered.points if _may_abort(point)], run.offered.commands, ABORT_WORDS)
    run.provoked = await _ask_all(run, provoking)
    if not run.replies:
        return skipped("it offers nothing that can be called")
    broke = sum(reply.code == EXECUTOR_FAILED for reply in run.replies)
    told = f"{len(run.replies)} calls answered" + (f", {broke} of them with a failure" if broke else "")
    if BODY in run.offered.points and not run.offered.commands:
        told += "; no command's body was called: it does not tell which it has"
    return all_of(told, *(_call_fault(reply) for reply in run.every_reply))


async def _ask_all(run: Run, good: list[Probe]) -> list[Reply]:
    places = asyncio.Semaphore(MAX_AT_ONCE)

    async def ask(probe: Probe) -> Reply:
        async with places:
            return await run.speaker.ask(probe, probe.context.delivery_id)

    return await asyncio.gather(*(ask(probe) for probe in good))


def _call_fault(reply: Reply) -> str | None:
    if reply.fault is not None and not reply.is_late:
        return f"{reply.probe.title}: {reply.fault}"
    if reply.code not in (None, ABORTED, EXECUTOR_FAILED):
        return f"{reply.probe.title}: a valid context was answered with error {reply.code}"
    return None


async def _deadline(run: Run) -> Judgement:
    if not run.every_reply:
        return skipped("nothing was called")
    late = [f"{reply.probe.title}: no answer" for reply in run.every_reply if reply.is_late]
    return all_of(f"all within {ANSWER_S:g} s", *late)


async def _patch(run: Run) -> Judgement:
    patched = [reply for reply in run.every_reply if reply.patch]
    if not patched:
        return skipped("no call was answered with fields to replace")
    return all_of(f"{len(patched)} answers replace what they may", *(_patch_fault(reply) for reply in patched))


def _patch_fault(reply: Reply) -> str | None:
    operation, phase = parse_point(reply.probe.point)
    patch = dict(reply.patch or {})
    allowed = OPERATIONS[operation].replaces[phase]
    forbidden = sorted(patch.keys() - allowed)
    if forbidden:
        may = f"only {', '.join(sorted(allowed))}" if allowed else "nothing"
        return f"{reply.probe.title}: it replaces {clean(', '.join(forbidden))}; it may replace {may}"
    before = reply.probe.context.model_dump()
    if phase == "post" and isinstance(patch.get("result"), dict) and before.get("result"):
        patch["result"] = {**before["result"], **patch["result"]}
    try:
        type(reply.probe.context).model_validate({**before, **patch})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{reply.probe.title}: {clean('.'.join(map(str, first['loc'])))}: {clean(first['msg'])}"
    return None


async def _abort(run: Run) -> Judgement:
    aborts = [reply for reply in run.every_reply if reply.code == ABORTED]
    if not aborts:
        return skipped(f"no call was refused, not even with the words {ABORT_WORDS!r}")
    return all_of(f"{len(aborts)} calls refused with a reason", *(_abort_fault(reply) for reply in aborts))


def _abort_fault(reply: Reply) -> str | None:
    if not _may_abort(reply.probe.point):
        return f"{reply.probe.title}: nothing can be refused there"
    data: Any = (reply.error or {}).get("data")
    reason: Any = data.get("reason") if isinstance(data, dict) else None
    return None if isinstance(reason, str) and reason.strip() else f"{reply.probe.title}: data.reason holds no reason"


def _may_abort(point: str) -> bool:
    operation, _, phase = point.rpartition(".")
    known = OPERATIONS.get(operation)
    return known is not None and known.may_abort and phase in known.replaces and phase != "in"


async def _failure(run: Run) -> Judgement:
    failures = [reply for reply in run.every_reply if reply.code == EXECUTOR_FAILED]
    if not failures:
        return skipped("no executor failed")
    return all_of(f"{len(failures)} failures tell no details", *(_failure_fault(reply) for reply in failures))


def _failure_fault(reply: Reply) -> str | None:
    error = reply.error or {}
    if error.get("message") != FAILED_WORDS:
        return (
            f"{reply.probe.title}: the message must be {FAILED_WORDS!r}, it is {clean(str(error.get('message')), 80)!r}"
        )
    data = error.get("data")
    if not isinstance(data, dict) or data.keys() != {"correlation_id"} or not isinstance(data["correlation_id"], str):
        return f"{reply.probe.title}: data must hold a correlation_id, and nothing else"
    return None


async def _once(run: Run) -> Judgement:
    answered = [reply for reply in run.replies if reply.fault is None][:MAX_REPEATED]
    if not answered:
        return skipped("no call was answered")
    faults = [await _repeat(run, reply) for reply in answered]
    return all_of(
        f"{len(answered)} deliveries repeated, the same answers", *faults, await _at_once(run, answered[0].probe)
    )


async def _repeat(run: Run, first: Reply) -> str | None:
    again = await run.speaker.ask(first.probe, first.delivery_id, attempt=2)
    if again.fault is not None:
        return f"{first.probe.title}: the retry was not answered: {again.fault}"
    return None if again.said == first.said else f"{first.probe.title}: the retry was answered differently"


async def _at_once(run: Run, probe: Probe) -> str | None:
    """A retry that comes while the first call still runs waits for it."""
    number = new_id()
    fresh = Probe(probe.point, context(probe.point, command=getattr(probe.context, "command", "")))
    first, second = await asyncio.gather(
        run.speaker.ask(fresh, number, attempt=1), run.speaker.ask(fresh, number, attempt=2)
    )
    if first.fault is not None or second.fault is not None:
        return f"{probe.title}: a call and its retry at the same time: {first.fault or second.fault}"
    if first.said == second.said:
        return None
    return f"{probe.title}: a call and its retry at the same time were answered differently"


RULES: Final[tuple[Rule[Run], ...]] = (
    Rule("health", "The service tells its name, its hook points and its commands.", _health),
    Rule("call", "A valid call is answered with what to replace, null, a refusal or a failure.", _calls),
    Rule("deadline", f"Everything is answered within {ANSWER_S:g} s.", _deadline),
    Rule("patch", "An answer replaces only what its hook point allows, by valid values.", _patch),
    Rule("abort", "A refusal is error -32010 with the reason, where the operation can be refused.", _abort),
    Rule("failure", "A failure is error -32603 in fixed words with a correlation id: no exception's text.", _failure),
    Rule("once", "A delivery that comes again gets the same answer; nothing runs twice.", _once),
)
