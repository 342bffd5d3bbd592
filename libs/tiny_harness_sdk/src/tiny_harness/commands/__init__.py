"""Slash commands: their specs, results and effects, and the registry that code fills (R6, decision-007 point 4)."""

from tiny_harness.commands.registry import CommandHandler, CommandRegistry
from tiny_harness.commands.spec import CommandSpec
from tiny_harness.effects import AddParticipant, CommandResult, CreateSubTask, Effect, SetEffort, SetModel

__all__ = [
    "AddParticipant",
    "CommandHandler",
    "CommandRegistry",
    "CommandResult",
    "CommandSpec",
    "CreateSubTask",
    "Effect",
    "SetEffort",
    "SetModel",
]
