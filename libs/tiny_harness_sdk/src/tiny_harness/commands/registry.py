"""The registry that code fills with commands (R6.1, R6.5, R6a.7)."""

from collections.abc import Callable
from typing import Any

from tiny_harness.access import Act
from tiny_harness.commands.spec import CommandSpec, check_name
from tiny_harness.effects import CommandResult
from tiny_harness.errors import RegistryError
from tiny_harness.hooks.contexts import CommandContext
from tiny_harness.hooks.executor import DEFAULT_DEADLINE_S, DEFAULT_PRIORITY, Executor, Patch, call_function

CommandHandler = Callable[[CommandContext], Any]
"""A body: plain or `async`, answers a `CommandResult` or just its reply's text."""


class CommandRegistry:
    """Commands with their bodies, each name once."""

    def __init__(self) -> None:
        self._specs: dict[str, CommandSpec] = {}
        self._bodies: dict[str, Executor] = {}

    def register(
        self,
        name: str,
        description: str,
        argument_hint: str,
        handler: CommandHandler,
        *,
        act: Act = "send a message",
        deadline_s: float = DEFAULT_DEADLINE_S,
    ) -> None:
        """Declare a command and its body, an `in` executor on `command.invoked`.

        Args:
            name: What stands behind the slash.
            description: One line.
            argument_hint: What stands behind the name, such as `<env>`; may be empty.
            handler: The body.
            act: What the sender's role must allow.
            deadline_s: Seconds that the body may take.

        Raises:
            RegistryError: The name is invalid or taken.
        """
        check_name(name)
        if name in self._specs:
            raise RegistryError("command", name, "is registered already")
        self._specs[name] = CommandSpec(name=name, description=description, argument_hint=argument_hint, act=act)
        self._bodies[name] = command_executor(name, handler, deadline_s=deadline_s)

    def command(
        self, name: str, *, argument_hint: str = "", description: str = "", act: Act = "send a message"
    ) -> Callable[[CommandHandler], CommandHandler]:
        """Register the decorated function; see `register`."""

        def decorate(handler: CommandHandler) -> CommandHandler:
            self.register(name, description, argument_hint, handler, act=act)
            return handler

        return decorate

    @property
    def specs(self) -> tuple[CommandSpec, ...]:
        """What was declared, in order."""
        return tuple(self._specs.values())

    @property
    def executors(self) -> tuple[Executor, ...]:
        """The bodies, in order."""
        return tuple(self._bodies.values())


def command_executor(
    name: str,
    handler: CommandHandler,
    *,
    executor: str | None = None,
    priority: int = DEFAULT_PRIORITY,
    deadline_s: float = DEFAULT_DEADLINE_S,
    is_builtin: bool = False,
) -> Executor:
    """Make a command's body an executor. A text that it answers is a reply; a `CommandResult` is the whole result."""
    call = call_function(handler)

    async def body(context: CommandContext) -> Patch | None:
        answer: Any = await call(context)
        if answer is None:
            return None
        return {"result": CommandResult(reply=answer) if isinstance(answer, str) else answer}

    return Executor(
        name=executor or f"commands/{name}",
        operation="command.invoked",
        phase="in",
        call=body,
        priority=priority,
        deadline_s=deadline_s,
        command=name,
        is_builtin=is_builtin,
    )
