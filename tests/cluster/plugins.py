"""The plugins of a cluster: one whose executors a hook host serves, and one that sends the engines there."""

import json
import shutil
from pathlib import Path
from typing import Final

from tests.e2e.plugin_folder import SCHEMA, at, body, write_plugin

KEY_ID: Final = "hooks"
DEPLOY: Final = {"name": "deploy", "argument_hint": "<what>", "description": "Deploy something"}

_CODE: Final = """
from pathlib import Path

LEDGER = Path({ledger!r})


def deploy(context):
    with LEDGER.open("a") as ledger:
        ledger.write(context.message_id + "\\n")
    return "Deployed " + context.arguments + "."


def may_book(context):
    return None
"""


def hosted_plugin(folder: Path, ledger: Path) -> Path:
    """Write the plugin that the hook host serves; its command writes the ids of its messages into the ledger."""
    executors = [body("deploy", "hooks.py:deploy"), at("tool.invoked.pre", "hooks.py:may_book")]
    code = _CODE.format(ledger=str(ledger))
    return write_plugin(folder / "hosted", commands=[DEPLOY], executors=executors, code=code)


def engines_plugin(folder: Path, host: str, ledger: Path) -> Path:
    """Write the engines' plugin: its executors are at the hook host, its tool writes bookings into the ledger."""
    executors = [
        body("deploy", host, key_id=KEY_ID, deadline_s=5),
        at("tool.invoked.pre", host, key_id=KEY_ID, deadline_s=5),
    ]
    plugin = write_plugin(folder / "shop", commands=[DEPLOY], executors=executors)
    shutil.copy(Path(__file__).with_name("bookings.py"), plugin)
    server = {"type": "stdio", "command": "python3", "args": ["${PLUGIN_ROOT}/bookings.py", str(ledger)]}
    document = {"$schema": SCHEMA.replace("plugin.schema", "mcp.schema"), "mcpServers": {"bookings": server}}
    (plugin / "mcp.json").write_text(json.dumps(document))
    return plugin
