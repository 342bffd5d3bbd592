"""`python -m tiny_harness` is `tiny-harness`."""

from tiny_harness.cli.main import script

script()
