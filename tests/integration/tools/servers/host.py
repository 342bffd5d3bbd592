"""A process that hosts a hub with a stubborn server, until it is killed: `python host.py FOLDER`."""

import asyncio
import signal
import sys
from pathlib import Path

from tests.integration.tools.conftest import PATIENCE_S, stdio
from tiny_harness_engine.tools import ToolHub


async def main(folder: Path) -> None:
    """Say when the servers are up."""
    servers = [stdio(folder, "raw.py", "stubborn"), stdio(folder, name="second")]
    async with ToolHub(servers, data=folder / "data") as hub:
        await hub.settle(PATIENCE_S)
        print([server["state"] for server in hub.health()], flush=True)
        await asyncio.Event().wait()


# A shell that starts tests in the background lets everything that they start ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.run(main(Path(sys.argv[1])))
