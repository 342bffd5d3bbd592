"""The hook chain: all of its semantics (DESIGN: hooks). Read it top to bottom.

Executors of a phase are called in the order of (priority, registration). A `pre` or `post` reply replaces fields of the
context; the first `in` executor that sets `result` is the body. A refusal or a failure ends the chain. What happened is
answered as a value; nothing is raised but bugs of ours.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Literal, TypeGuard, TypeVar

from pydantic import BaseModel, ValidationError

from tiny_harness.errors import CommandFailed, HarnessError, HookAbort, HookFailed
from tiny_harness.hooks.contexts import HookContext, Phase
from tiny_harness.hooks.executor import DEFAULT_PRIORITY, Executor, Patch
from tiny_harness.hooks.points import BODY, OPERATIONS
from tiny_harness.hooks.verdict import Verdict, VerdictKind
from tiny_harness.ids import new_id

CHAIN_BUDGET_S: Final = 10.0
"""What all executors of one chain may take together; the engine's own bodies are not counted."""
SLOW_S: Final = 1.0
"""An executor that takes longer leaves a verdict."""
MAX_REASON_CHARS: Final = 300
TASK_PREFIX: Final = "hook "
"""How the asyncio tasks are named that executors run in: whoever finds one stuck knows whose it is."""

Redact = Callable[[Any], Any]
"""Masks secrets in a JSON document."""
Body = Callable[[Any], Awaitable[BaseModel]]
"""What the engine itself does at the `in` phase: takes the context, answers its `result`."""
Watch = Callable[[Executor, HookFailed | None], None]
"""Is told how each call went, for the health page."""

Where = Literal["anywhere", "here", "elsewhere"]
"""All executors, those in this process, or those that are remote."""

C = TypeVar("C", bound=HookContext)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[C]):
    """How a chain ended."""

    context: C
    """As it is at the end; holds the result, if the operation has one."""
    refusal: str | None = None
    """Why an executor refused."""
    failure: HookFailed | None = None
    """Which executor failed, unless it may be done without."""
    verdicts: tuple[Verdict, ...] = ()


@dataclass(slots=True)
class _Run:
    """One run of a chain: the context as it is now, and what has happened."""

    context: Any
    redact: Redact
    mask: Redact
    watch: Watch
    budget_s: float = CHAIN_BUDGET_S
    refusal: str | None = None
    failure: HookFailed | None = None
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.refusal is not None or self.failure is not None

    async def call(self, executor: Executor) -> bool:
        """Call one executor and apply its reply; true if it set something."""
        context = self.context.model_copy(update={"phase": executor.phase, "delivery_id": new_id()})
        began = time.perf_counter()
        try:
            if not executor.is_builtin:
                context = type(context).model_validate(self.redact(context.model_dump(mode="json")))
            patch = await self._ask(executor, context)
            changed = self._apply(executor, patch)
        except HookAbort as abort:
            if OPERATIONS[executor.operation].may_abort and executor.phase != "in":
                reason: str = self.redact(str(abort.reason))[:MAX_REASON_CHARS]
                self.refusal = reason
                self._note(executor, "refused", reason, began)
            else:
                self._fail(executor, HookFailed(executor.point, executor.name, "it may not refuse here"), began)
            return False
        except Exception as error:  # noqa: BLE001 - an executor is somebody else's code: whatever it raises is its failure
            self._fail(executor, self._failure(executor, error), began)
            return False
        finally:
            self.budget_s -= time.perf_counter() - began
        self.watch(executor, None)
        if changed and not (executor.is_builtin or executor.phase == "in"):
            self._note(executor, "replaced", "", began)
        elif time.perf_counter() - began > SLOW_S:
            self._note(executor, "slow", "", began)
        return changed

    async def _ask(self, executor: Executor, context: HookContext) -> Patch | None:
        """Ask an executor. What a command's body raises in words for whoever typed it is its answer: it said no."""
        try:
            return await _within(min(executor.deadline_s, self.budget_s), executor, context)
        except CommandFailed as failure:
            if executor.point != BODY:
                raise
            log.info("hook %s said no at %s: %s", executor.name, executor.point, self.redact(failure.reason))
            return {"result": {"reply": failure.reason, "outcome": "refused"}}

    def _apply(self, executor: Executor, patch: Mapping[str, Any] | None) -> bool:
        """Replace fields; a reply that goes beyond its point is refused whole."""
        if patch is None:
            return False
        if not _is_document(patch):  # a guard that answers `False` has not said yes
            raise ValueError("must answer the fields to replace, or nothing")
        fields = dict(patch)
        allowed = OPERATIONS[executor.operation].replaces[executor.phase]
        for name in fields.keys() - allowed:
            raise ValueError(f"may not replace {name!r}")
        if not executor.is_builtin:
            fields = self.mask({name: _plain(value) for name, value in fields.items()})
        if "result" in fields and executor.phase == "post" and self.context.result is not None:
            fields["result"] = {**self.context.result.model_dump(), **_document(_plain(fields["result"]))}
        document = {**self.context.model_dump(), **{name: _plain(value) for name, value in fields.items()}}
        self.context = type(self.context).model_validate(document)
        return any(value is not None for value in fields.values())

    def _failure(self, executor: Executor, error: Exception) -> HookFailed:
        if isinstance(error, HookFailed):
            return replace(error, reason=self.redact(error.reason)[:MAX_REASON_CHARS])
        if isinstance(error, TimeoutError):
            reason = f"no answer within {min(executor.deadline_s, CHAIN_BUDGET_S):g} s"
        elif isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            reason = f"its reply is malformed at {'.'.join(map(str, first['loc']))}: {first['msg']}"
        else:
            reason = self.redact(str(error) if isinstance(error, HarnessError | ValueError) else repr(error))
        return HookFailed(executor.point, executor.name, reason[:MAX_REASON_CHARS])

    def _fail(self, executor: Executor, failure: HookFailed, began: float) -> None:
        log.warning("hook %s failed at %s: %s", executor.name, executor.point, failure.reason)
        self.watch(executor, failure)
        self._note(executor, "failed", failure.reason, began)
        if executor.on_failure == "closed":
            self.failure = failure

    def _note(self, executor: Executor, kind: VerdictKind, why: str, began: float) -> None:
        ms = round((time.perf_counter() - began) * 1000)
        self.verdicts.append(Verdict(executor.name, executor.point, kind, why, ms))


class Hooks:
    """All executors of a process, and the way to run an operation through them.

    `redact` masks contexts before an executor sees them; `mask`, what it answers; `watch` is told how each call went.
    """

    def __init__(
        self,
        executors: Sequence[Executor] = (),
        *,
        redact: Redact = lambda document: document,
        mask: Redact = lambda document: document,
        watch: Watch = lambda _executor, _failure: None,
    ) -> None:
        self.executors = tuple(sorted(executors, key=lambda executor: executor.priority))  # stable: keeps registration
        self._redact = redact
        self._mask = mask
        self._watch = watch

    def only(self, executor: Executor) -> "Hooks":
        """Give a chain of this one executor, redacted and watched alike."""
        return Hooks((executor,), redact=self._redact, mask=self._mask, watch=self._watch)

    def at(self, operation: str, phase: Phase | None = None, command: str | None = None) -> list[Executor]:
        """List the executors of an operation, in the order in which they are called."""
        return [
            executor
            for executor in self.executors
            if executor.operation == operation
            and phase in (None, executor.phase)
            and executor.command in (None, command)
        ]

    def has_remote(self, operation: str, command: str | None = None) -> bool:
        """Whether an operation waits for somebody else's service."""
        return any(executor.is_remote for executor in self.at(operation, command=command))

    async def run(self, context: C, body: Body | None = None, *, where: Where = "anywhere") -> Outcome[C]:
        """Run an operation through its chain.

        Args:
            context: What is about to happen; its `phase` is set by the chain.
            body: The engine's own `in` phase, at the default priority.
            where: Which executors to call.

        Returns:
            How it ended. Cancelling the call cancels the executor or body that runs.
        """
        command = getattr(context, "command", None)
        run = _Run(context, self._redact, self._mask, self._watch)
        for phase in OPERATIONS[context.operation].replaces:
            executors = [one for one in self.at(context.operation, phase, command) if _is_there(one, where)]
            if phase == "in":
                await self._run_body(run, executors, body)
            else:
                for executor in executors:
                    if not run.is_over:
                        await run.call(executor)
        return Outcome(run.context, run.refusal, run.failure, tuple(run.verdicts))

    async def _run_body(self, run: _Run, executors: Sequence[Executor], body: Body | None) -> None:
        for executor in [one for one in executors if one.priority < DEFAULT_PRIORITY or body is None]:
            if run.is_over or await run.call(executor):
                return
        if body is not None and not run.is_over:
            result = await body(run.context)
            run.context = run.context.model_copy(update={"result": result})


async def _within(seconds: float, executor: Executor, context: HookContext) -> Patch | None:
    """Call an executor, and wait no longer than this: one that swallows its cancellation is left behind."""
    call = asyncio.create_task(_call(executor, context), name=TASK_PREFIX + executor.name)
    try:
        await asyncio.wait({call}, timeout=seconds)
        if not call.done():
            raise TimeoutError
        if call.cancelled():  # by itself: passed on, it would look as if somebody had cancelled the operation
            raise RuntimeError("it was cancelled")
        return call.result()
    finally:
        call.cancel()


async def _call(executor: Executor, context: HookContext) -> Patch | None:
    try:
        return await executor.call(context)
    except SystemExit as error:  # would end the event loop, and the process with it
        raise RuntimeError("it tried to end the process") from error


def _is_there(executor: Executor, where: Where) -> bool:
    return where == "anywhere" or executor.is_remote == (where == "elsewhere")


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _is_document(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _document(value: Any) -> Mapping[str, Any]:
    if not _is_document(value):
        raise ValueError("`result` must be an object")
    return value
