"""The version, a constant so that `--version` reads no metadata."""

__version__ = "0.1.0"
