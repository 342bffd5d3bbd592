"""The URIs and metadata keys that all our extensions are named by."""

from typing import Final

EXTENSION_BASE: Final = "https://madarauchiha-314.github.io/tiny-harness/a2a/ext"
METADATA_BASE: Final = "io.github.madarauchiha-314.tiny-harness"


def extension_uri(name: str) -> str:
    """Name an extension as the agent card and the `A2A-Extensions` header do."""
    return f"{EXTENSION_BASE}/{name}/v1"


def metadata_key(name: str) -> str:
    """Name an extension's key in a `metadata` object."""
    return f"{METADATA_BASE}/{name}"
