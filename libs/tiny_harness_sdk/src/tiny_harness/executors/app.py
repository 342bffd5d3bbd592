"""Serve hooks and commands of your own to a harness, in ten lines (R6a.7; DESIGN: hooks).

    app = ExecutorApp("deploys")

    @app.command("deploy", argument_hint="<env>", description="Deploy the current build")
    async def deploy(context: CommandContext) -> CommandResult: ...

`tiny-harness hooks serve module:app` serves it; it is an ASGI app too.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from tiny_harness.commands.registry import CommandHandler, CommandRegistry
from tiny_harness.commands.spec import CommandSpec
from tiny_harness.errors import RegistryError
from tiny_harness.executors.isolation import isolated
from tiny_harness.hooks.executor import DEFAULT_DEADLINE_S, DEFAULT_PRIORITY, Executor, HookFunction, OnFailure
from tiny_harness.hooks.points import parse_point

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")


class ExecutorApp:
    """Executors and command bodies, and the ASGI app that serves them over JSON-RPC and MCP."""

    def __init__(self, name: str, *, keys: Sequence[str] = ()) -> None:
        """Make an app.

        Args:
            name: Lowercase letters, digits, `-` and `.`.
            keys: Ids of the keys that callers may sign with; default: one of the app's name. The secrets of a key are
                in `TINY_HARNESS_HOOK_SECRET_<KEY ID>`.

        Raises:
            RegistryError: The name is invalid.
        """
        if not _NAME.fullmatch(name):
            raise RegistryError("app", name, "must have lowercase letters, digits, - and . only, 64 at most")
        self.name = name
        self.keys = tuple(keys) or (name,)
        self._commands = CommandRegistry()
        self._specs: list[CommandSpec] = []
        self._executors: list[Executor] = []
        self._asgi: Starlette | None = None

    def command(
        self, name: str, *, argument_hint: str = "", description: str = "", deadline_s: float = DEFAULT_DEADLINE_S
    ) -> Callable[[CommandHandler], CommandHandler]:
        """Make the decorated function the body of a command.

        It is plain or `async`, takes a `CommandContext`, and answers a `CommandResult` or just the reply's text. It may
        raise `CommandFailed` to say in its own words why it did not do it; of anything else callers learn nothing.

        Args:
            name: What stands behind the slash.
            argument_hint: What stands behind the name, such as `<env>`.
            description: One line.
            deadline_s: Seconds that the body may take, 10 at most.

        Raises:
            RegistryError: The name is invalid or taken.
        """

        def decorate(handler: CommandHandler) -> CommandHandler:
            body = isolated(f"{self.name}/{name}", handler)
            self._commands.register(name, description, argument_hint, body, deadline_s=deadline_s)
            return handler

        return decorate

    def hook(
        self,
        point: str,
        *,
        name: str = "",
        priority: int = DEFAULT_PRIORITY,
        deadline_s: float = DEFAULT_DEADLINE_S,
        on_failure: OnFailure = "closed",
        command: str | None = None,
    ) -> Callable[[HookFunction], HookFunction]:
        """Call the decorated function at a hook point.

        It is plain or `async`, takes the point's context, and answers the fields to replace, or `None`. It may raise
        `HookAbort` where the operation can be refused.

        Args:
            point: `<operation>.<phase>`, such as `command.invoked.pre`.
            name: For the log; default: the function's.
            priority: Lower is called earlier.
            deadline_s: Seconds that it may take, 10 at most.
            on_failure: `open` goes on without it when it fails.
            command: On `command.invoked`: the only command that it is called for.

        Raises:
            RegistryError: There is no such point, or the name is taken.
        """
        operation, phase = parse_point(point)

        def decorate(function: HookFunction) -> HookFunction:
            full_name = f"{self.name}/{name or getattr(function, '__name__', point)}"
            executor = Executor(
                name=full_name,
                operation=operation,
                phase=phase,
                call=isolated(full_name, function),
                priority=priority,
                deadline_s=deadline_s,
                on_failure=on_failure,
                command=command,
            )
            self._add(executor)
            return function

        return decorate

    def include(self, executor: Executor) -> None:
        """Serve an executor that was made elsewhere, such as a plugin's.

        Raises:
            RegistryError: It is somebody else's service, or its name is taken.
        """
        if executor.is_remote:
            raise RegistryError("executor", executor.name, "is remote: it is called where it is, not served from here")
        self._add(replace(executor, call=isolated(executor.name, executor.call)))

    def offer(self, spec: CommandSpec) -> None:
        """Name a command whose body was included, for those who ask what is served."""
        self._specs.append(spec)

    @property
    def executors(self) -> tuple[Executor, ...]:
        """All that is served, in the order of registration."""
        return (*self._commands.executors, *self._executors)

    @property
    def commands(self) -> tuple[CommandSpec, ...]:
        """The commands that have a body here."""
        return (*self._commands.specs, *self._specs)

    def asgi(self, *, unsigned: bool = False) -> Starlette:
        """Build the ASGI app: `/` and `/rpc` speak JSON-RPC, `/mcp` MCP, `/healthz` says that it lives.

        What is registered later is not served. MCP needs the app's lifespan to run.

        Args:
            unsigned: Take unsigned calls, from programs on this machine only.

        Raises:
            ConfigError: No key has a secret.
        """
        from tiny_harness.executors.site import build_site

        return build_site(self, unsigned=unsigned)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Be an ASGI app that takes signed calls only; built with the first event."""
        if self._asgi is None:
            self._asgi = self.asgi()
        await self._asgi(scope, receive, send)

    def _add(self, executor: Executor) -> None:
        if any(executor.name == other.name for other in self.executors):
            raise RegistryError("executor", executor.name, "is registered already")
        self._executors.append(executor)
