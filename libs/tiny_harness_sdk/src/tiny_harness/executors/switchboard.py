"""What is served, and how a call is answered, whichever way it came. Knows no HTTP."""

import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from tiny_harness.commands.spec import CommandSpec
from tiny_harness.executors.answers import Aborted, Answer, Failed, Invalid, Patched, Unknown
from tiny_harness.executors.delivery import Deliveries
from tiny_harness.hooks.chain import Hooks, Outcome
from tiny_harness.hooks.contexts import HookContext
from tiny_harness.hooks.executor import Executor, Patch
from tiny_harness.hooks.points import OPERATIONS, parse_point, point_names
from tiny_harness.hooks.wire import MAX_BODY_BYTES
from tiny_harness.ids import new_id

MAX_PATCH_BYTES: Final = MAX_BODY_BYTES - 4096
"""Leaves room for what a transport puts around a patch."""

_ID: Final = re.compile(r"[!-~]{1,128}")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and in which delivery."""

    key_id: str
    delivery_id: str
    attempt: int


class Switchboard:
    """The executors of one server."""

    def __init__(self, name: str, executors: Sequence[Executor], commands: Sequence[CommandSpec]) -> None:
        self.name = name
        self._hooks = Hooks(executors)
        self._commands = (*commands, *_unspoken(executors, {spec.name for spec in commands}))
        self._deliveries = Deliveries()
        served = {executor.point for executor in executors}
        self.points = tuple(point for point in point_names() if point in served)

    def health(self) -> dict[str, Any]:
        """Say what is served: the answer of `hooks.health`."""
        fields = {"name", "description", "argument_hint"}
        return {
            "name": self.name,
            "points": list(self.points),
            "commands": [spec.model_dump(include=fields) for spec in self._commands],
        }

    async def answer(self, point: str, document: Any, caller: Caller | None) -> Answer:
        """Answer a call, the same delivery always alike.

        Args:
            point: Any text.
            document: The context as it arrived.
            caller: From the signature; without, the context's own delivery id tells repetitions.
        """
        if point not in self.points:
            return Unknown()
        operation, phase = parse_point(point)
        try:
            context = OPERATIONS[operation].context.model_validate(document)
        except ValidationError as error:
            return Invalid(".".join(["context", *map(str, error.errors()[0]["loc"])]))
        if (context.operation, context.phase) != (operation, phase):
            return Invalid("context.operation")
        executors = self._hooks.at(operation, phase, getattr(context, "command", None))
        if not executors:
            return Unknown()
        if caller is not None:
            context = context.model_copy(update={"delivery_id": caller.delivery_id, "attempt": caller.attempt})
        if not context.delivery_id:  # nothing tells whether it was here before
            return await _run(executors, context)
        key = (caller.key_id if caller else "", point, context.delivery_id)
        return await self._deliveries.once(key, lambda: _run(executors, context))

    async def close(self) -> None:
        """Cancel what runs."""
        await self._deliveries.close()


def _unspoken(executors: Iterable[Executor], named: Collection[str]) -> Iterable[CommandSpec]:
    """Name the commands that have a body here and are described elsewhere, such as a built-in's replacement."""
    bodies = dict.fromkeys(one.command for one in executors if one.command and one.point == "command.invoked.in")
    return (CommandSpec(name=name) for name in bodies if name not in named)


async def _run(executors: Sequence[Executor], context: HookContext) -> Answer:
    """Run one phase's executors as a chain does; observers each for itself, so that none stands in another's way."""
    called = [replace(executor, call=_delivered(executor, context)) for executor in executors]
    groups = [[one] for one in called] if OPERATIONS[context.operation].is_observed else [called]
    outcomes = [await Hooks(group).run(context) for group in groups]
    if any(outcome.failure for outcome in outcomes):
        return _failed(context)
    for reason in _reasons(outcomes):
        return Aborted(reason)
    return _patched(context, outcomes[-1].context)


def _delivered(executor: Executor, context: HookContext) -> Callable[[Any], Any]:
    """Show an executor the delivery id of the wire: the same on a retry, unlike the chain's own."""

    async def call(shown: HookContext) -> Patch | None:
        return await executor.call(shown.model_copy(update={"delivery_id": context.delivery_id}))

    return call


def _reasons(outcomes: Iterable[Outcome[HookContext]]) -> Iterable[str]:
    return (outcome.refusal for outcome in outcomes if outcome.refusal is not None)


def _patched(before: HookContext, after: HookContext) -> Answer:
    """Say what the chain replaced; what no answer can carry is a failure."""
    allowed = OPERATIONS[before.operation].replaces[before.phase]
    changed = {name for name in allowed if getattr(after, name) != getattr(before, name)}
    if not changed:
        return Patched(None)
    try:
        patch: Mapping[str, Any] = after.model_dump(mode="json", include=changed)
        text = json.dumps(patch, ensure_ascii=False).encode()
    except (ValueError, RecursionError):  # half a letter, endless depth
        log.exception("an answer at %s.%s is no JSON", before.operation, before.phase)
        return _failed(before)
    if len(text) > MAX_PATCH_BYTES:
        log.error("an answer at %s.%s has %d bytes, too many", before.operation, before.phase, len(text))
        return _failed(before)
    return Patched(patch, len(text))


def _failed(context: HookContext) -> Failed:
    return Failed(context.correlation_id if _ID.fullmatch(context.correlation_id) else new_id())
