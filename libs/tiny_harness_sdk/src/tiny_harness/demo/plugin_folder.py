"""Where the demo's plugin is, and where its servers keep their data."""

from pathlib import Path
from typing import Final

PLUGIN: Final = Path(__file__).with_name("plugin")
"""The plugin's folder. Any configuration may list it under `plugins`."""
LEDGER: Final = "refunds.txt"


def ledger(folder: Path) -> Path:
    """Name the file with the shop's refunds, one per line.

    Args:
        folder: The store's.
    """
    return folder / "plugin-data" / "support" / LEDGER
