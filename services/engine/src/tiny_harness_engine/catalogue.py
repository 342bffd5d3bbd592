"""An engine's catalogue: what it was built of and what it offers (DESIGN: registry). Pure."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from tiny_harness._version import __version__
from tiny_harness.commands.spec import CommandSpec
from tiny_harness.ext.commands import CommandOffer
from tiny_harness.plugins import PluginReport


def catalogue(
    *,
    plugins: Iterable[PluginReport],
    commands: Iterable[CommandSpec],
    models: Sequence[str],
    default_model: str,
    build: str = __version__,
) -> tuple[str, str]:
    """Write the catalogue.

    Args:
        plugins: What became of each, in the order of loading. Where it lay is left out: moved, it is the same.
        commands: In the order in which people see them.
        models: Those that may be selected.
        default_model: The one for tasks that chose none.
        build: Version of the harness.

    Returns:
        (digest, body): the body as canonical JSON, whose `commands` are the params of the `commands` extension; the
        digest is its SHA-256. The same engine always gives the same.
    """
    document = {
        "build": build,
        "plugins": [_plugin(report) for report in plugins],
        "commands": [offer(command).model_dump(mode="json") for command in commands],
        "models": list(models),
        "default_model": default_model,
    }
    body = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(body.encode()).hexdigest(), body


def _plugin(report: PluginReport) -> dict[str, Any]:
    told = report.model_dump(mode="json", include={"state", "reason", "components"})
    return {"name": report.plugin, "version": report.version, "digest": report.digest, "report": told}


def offer(command: CommandSpec) -> CommandOffer:
    """Show a command as clients see it."""
    return CommandOffer(name=command.name, description=command.description, argument_hint=command.argument_hint)
