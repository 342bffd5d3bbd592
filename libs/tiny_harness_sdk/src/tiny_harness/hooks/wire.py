"""The remote contract's names and numbers, shared by whoever calls executors and whoever serves them (DESIGN: hooks).

Nothing in here does anything. The contract in words is `docs/guide/serve-commands.md`.
"""

from typing import Final

MAX_BODY_BYTES: Final = 1 << 20
"""Of a request and of an answer."""
MEDIA_TYPE: Final = "application/json"

KEY_HEADER: Final = "X-Tiny-Harness-Key"
TIMESTAMP_HEADER: Final = "X-Tiny-Harness-Timestamp"
DELIVERY_HEADER: Final = "X-Tiny-Harness-Delivery"
ATTEMPT_HEADER: Final = "X-Tiny-Harness-Attempt"
SIGNATURE_HEADER: Final = "X-Tiny-Harness-Signature"

SIGNATURE_VERSION: Final = "v1"
TIMESTAMP_WINDOW_S: Final = 300
"""How far a call's timestamp may be from the receiver's clock, either way."""
DELIVERY_MEMORY_S: Final = 300
"""How long an answered delivery is remembered."""

SECRET_VARIABLE_PREFIX: Final = "TINY_HARNESS_HOOK_SECRET_"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
UNKNOWN_METHOD: Final = -32601
INVALID_PARAMS: Final = -32602
EXECUTOR_FAILED: Final = -32603
ABORTED: Final = -32010
"""The typed abort: `message` and `data.reason` hold the reason."""

FAILED_WORDS: Final = "the executor failed"
"""All that a caller is told of a failure, beside a correlation id."""

HEALTH_METHOD: Final = "hooks.health"

TOOL_PREFIX: Final = "hooks."
"""Over MCP an executor is a tool: this and the hook point."""


def tool_name(point: str) -> str:
    """Name the MCP tool of a hook point."""
    return TOOL_PREFIX + point
