"""The event bus: a port and its adapters."""

from tiny_harness.bus.local import LocalBus
from tiny_harness.bus.open import open_bus, redis_url
from tiny_harness.bus.port import Bus, BusHealth, BusReader, Frame, Lagged

__all__ = ["Bus", "BusHealth", "BusReader", "Frame", "Lagged", "LocalBus", "open_bus", "redis_url"]
