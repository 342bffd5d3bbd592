"""A server that speaks Anthropic's wire format, for tests: `model_server` tells how it is used.

It serves `POST /v1/messages`.
"""

from typing import Any, Final

from tiny_harness.testing.anthropic_frames import messages_failure, messages_frames
from tiny_harness.testing.anthropic_wire import MessagesBody
from tiny_harness.testing.model_server import Endpoint, ModelServer, create_app, serve
from tiny_harness.testing.prompt_cache import PromptCache

__all__ = ["AnthropicServer", "create_app"]

ENDPOINTS: Final = {"/v1/messages": Endpoint(MessagesBody.model_validate_json, messages_frames, messages_failure)}
KINDS: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class AnthropicServer(ModelServer):
    """Anthropic, as far as tests need it."""

    def __init__(self, **told: Any) -> None:
        """Take what `ModelServer` is told besides."""
        super().__init__(ENDPOINTS, _error, PromptCache(by_mark=True), **told)


def _error(status: int, message: str, code: str | None) -> dict[str, Any]:
    kind = code or KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


if __name__ == "__main__":
    serve(AnthropicServer)
