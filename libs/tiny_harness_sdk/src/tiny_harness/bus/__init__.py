"""The event bus: a port and its adapters."""

from tiny_harness.bus.local import LocalBus
from tiny_harness.bus.port import Bus, BusReader, Frame, Lagged

__all__ = ["Bus", "BusReader", "Frame", "Lagged", "LocalBus"]
