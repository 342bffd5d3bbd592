"""The agent's own tools, which act on its task instead of the world (DESIGN: agent core)."""

from tiny_harness_engine.intrinsics.offered import INTRINSICS, intrinsic_specs, is_act, parameters
from tiny_harness_engine.intrinsics.reading import Misuse, read_call

__all__ = ["INTRINSICS", "Misuse", "intrinsic_specs", "is_act", "parameters", "read_call"]
