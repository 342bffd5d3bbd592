"""Ids that sort by time (RFC 9562, UUID version 7)."""

import secrets
import time
import uuid


def new_id() -> str:
    """Make a UUIDv7: 48 bits of milliseconds, 74 random bits."""
    value = (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62
    return str(uuid.UUID(int=value | secrets.randbits(62)))
