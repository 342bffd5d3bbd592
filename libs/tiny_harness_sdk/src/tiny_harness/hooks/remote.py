"""Executors that are somebody else's service: deadline, retry, breaker, and one error for all that goes wrong (R6a.9).

How a call is put on the wire is the transports' business: `remote_jsonrpc`, `remote_mcp`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from tiny_harness.errors import HookAbort, HookFailed, HookTransportError, RegistryError
from tiny_harness.hooks.breaker import FAILURES_TO_OPEN, Breaker
from tiny_harness.hooks.contexts import HookContext
from tiny_harness.hooks.declaration import RemoteDeclaration
from tiny_harness.hooks.delivery import (
    Delivery,
    ExecutorFault,
    Offer,
    Service,
    ServiceFault,
    Signer,
    address_fault,
    clean,
)
from tiny_harness.hooks.executor import DEFAULT_DEADLINE_S, Executor, Patch
from tiny_harness.hooks.health import Key
from tiny_harness.hooks.points import parse_point
from tiny_harness.hooks.signature import Secrets, secrets_for

if TYPE_CHECKING:
    import ssl

    import httpx
    import httpx2

PROBE_DEADLINE_S: Final = 5.0
"""What one service may take to tell its health."""
MAX_PROBES: Final = 8
"""Services that are asked for their health at once."""
RETRY_PAUSE_S: Final = 0.05
"""Lets a service that is being restarted come back."""
EARLIER: Final = 0.95
"""Our deadline comes this much before the chain's own, which could not name the service."""
MAX_REASON_CHARS: Final = 300

ServiceKey = tuple[str, str, str]
"""URL, transport and key."""
Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class _Remote:
    """One remote executor."""

    declaration: RemoteDeclaration
    deadline_s: float
    service: Service
    breaker: Breaker
    sleep: Sleep

    async def call(self, context: HookContext) -> Patch | None:
        """Call it, as `Executor.call`."""
        if not self.breaker.try_enter():
            raise self._error(
                f"not called: {FAILURES_TO_OPEN} calls in a row failed, the next is tried in "
                f"{self.breaker.wait_s:.0f} s; the last failure: {self.breaker.last_reason}"
            )
        try:
            patch = await self._deliver(context)
        except ServiceFault as fault:
            self.breaker.failed(fault.reason)
            raise self._error(fault.reason) from fault
        except ExecutorFault as fault:
            self.breaker.succeeded()
            failed = self.declaration
            raise HookFailed(failed.point, failed.name, clean(fault.reason, MAX_REASON_CHARS)) from fault
        except HookAbort:
            self.breaker.succeeded()
            raise
        except BaseException:
            self.breaker.abandoned()
            raise
        self.breaker.succeeded()
        return patch

    async def _deliver(self, context: HookContext) -> Patch | None:
        seconds = self.deadline_s * EARLIER
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                try:
                    return await self._attempt(context, 1)
                except ServiceFault as fault:
                    if not self._may_retry(fault):
                        raise
                await self.sleep(RETRY_PAUSE_S)
                return await self._attempt(context, 2)
        except (TimeoutError, ServiceFault) as error:
            if isinstance(error, TimeoutError) or deadline.expired():
                raise ServiceFault(f"no answer within {self.deadline_s:g} s") from error
            raise

    def _may_retry(self, fault: ServiceFault) -> bool:
        """A body runs at most once, so it is only called again if the first call cannot have begun."""
        return fault.is_unsent if self.declaration.point.endswith(".in") else fault.is_passing

    async def _attempt(self, context: HookContext, attempt: int) -> Patch | None:
        document = context.model_copy(update={"attempt": attempt}).model_dump(mode="json")
        return await self.service.call(Delivery(self.declaration.point, document, context.delivery_id, attempt))

    def _error(self, reason: str) -> HookTransportError:
        return HookTransportError(self.declaration.point, self.declaration.name, clean(reason, MAX_REASON_CHARS))


class RemoteExecutors:
    """All remote executors of a process, with the connections to their services; closed at the end of the block."""

    def __init__(
        self,
        *,
        secrets: Secrets = secrets_for,
        deadline_s: float = DEFAULT_DEADLINE_S,
        trust: "ssl.SSLContext | None" = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Open nothing yet.

        Args:
            secrets: Gives the secrets of a key; default: from the environment.
            deadline_s: For executors that declare none.
            trust: Which certificates to take; default: those of public authorities.
            clock: What the breakers go by, in seconds.
            sleep: How the pause before a retry is waited for.
        """
        self._secrets = secrets
        self._deadline_s = deadline_s
        self._trust = trust
        self._clock = clock
        self._sleep = sleep
        self._stack = AsyncExitStack()
        self._client: httpx.AsyncClient | None = None
        self._mcp_client: httpx2.AsyncClient | None = None
        self._services: dict[ServiceKey, Service] = {}
        self._breakers: dict[str, Breaker] = {}
        self._declared: dict[ServiceKey, list[RemoteDeclaration]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def executor(self, declaration: RemoteDeclaration) -> Executor:
        """Make an executor that calls the declared service. Nothing is connected to yet.

        Raises:
            RegistryError: There is no such point, or the address is not allowed.
        """
        operation, phase = parse_point(declaration.point)
        fault = address_fault(declaration.url)
        if fault:
            raise RegistryError("executor", declaration.name, f"has a bad address: {declaration.url!r} {fault}")
        key = (declaration.url, declaration.transport, declaration.key_id)
        deadline_s = declaration.deadline_s or self._deadline_s
        remote = _Remote(declaration, deadline_s, self._service(key), self._breaker(declaration.url), self._sleep)
        self._declared.setdefault(key, []).append(declaration)
        return Executor(
            name=declaration.name,
            operation=operation,
            phase=phase,
            call=remote.call,
            priority=declaration.priority,
            deadline_s=deadline_s,
            on_failure=declaration.on_failure,
            command=declaration.command,
            plugin=declaration.plugin,
            is_remote=True,
        )

    async def look(self) -> Mapping[Key, HookFailed | None]:
        """Ask each service for its health, once, in bounded time; what is wrong with each executor, if anything."""
        places = asyncio.Semaphore(MAX_PROBES)

        async def ask(key: ServiceKey) -> Offer | str:
            async with places:
                return await _offer(self._services[key])

        keys = list(self._declared)
        answers = await asyncio.gather(*(ask(key) for key in keys))
        return {
            (each.name, each.point): _verdict(each, answer)
            for key, answer in zip(keys, answers, strict=True)
            for each in self._declared[key]
        }

    def _breaker(self, url: str) -> Breaker:
        return self._breakers.setdefault(url, Breaker(self._clock))

    def _service(self, key: ServiceKey) -> Service:
        found = self._services.get(key)
        if found is None:
            found = self._services[key] = self._open(key)
        return found

    def _open(self, key: ServiceKey) -> Service:
        url, transport, key_id = key
        signer = Signer(key_id, self._secrets)
        if transport == "mcp":
            from tiny_harness.hooks import remote_mcp  # slow to import, and few need it

            if self._mcp_client is None:
                self._mcp_client = remote_mcp.open_client(self._trust)
                self._stack.push_async_callback(self._mcp_client.aclose)
            return remote_mcp.McpService(self._mcp_client, url, signer)
        from tiny_harness.hooks import remote_jsonrpc

        if self._client is None:
            self._client = remote_jsonrpc.open_client(self._trust)
            self._stack.push_async_callback(self._client.aclose)
        return remote_jsonrpc.JsonRpcService(self._client, url, signer)


async def _offer(service: Service) -> Offer | str:
    """Ask for health; the answer, or why there is none."""
    try:
        async with asyncio.timeout(PROBE_DEADLINE_S):
            return await service.offer()
    except TimeoutError:
        return f"no health within {PROBE_DEADLINE_S:g} s"
    except (ServiceFault, ExecutorFault) as fault:
        return fault.reason


def _verdict(declaration: RemoteDeclaration, answer: Offer | str) -> HookFailed | None:
    name, point = declaration.name, declaration.point
    if isinstance(answer, str):
        return HookTransportError(point, name, clean(answer, MAX_REASON_CHARS))
    if point not in answer.points:
        return HookFailed(point, name, f"the service does not offer {point}")
    known = answer.commands if point == "command.invoked.in" else None
    if known is not None and declaration.command and declaration.command not in known:
        return HookFailed(point, name, f"the service does not offer the command {declaration.command}")
    return None
