"""The A2A extensions of tiny-harness, one file each: names, data and schema (DESIGN: wire names)."""

from tiny_harness.ext.names import EXTENSION_BASE, METADATA_BASE, extension_uri, metadata_key

__all__ = ["EXTENSION_BASE", "METADATA_BASE", "extension_uri", "metadata_key"]
