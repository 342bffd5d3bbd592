"""The function that hooks.json names. Yours may ask a ticket system, a policy, a database."""

from tiny_harness.effects import CommandResult
from tiny_harness.hooks.contexts import CommandContext


def contact(_context: CommandContext) -> CommandResult:
    """`/contact`: say who runs this harness."""
    return CommandResult(reply="This harness is run by your platform team.")
