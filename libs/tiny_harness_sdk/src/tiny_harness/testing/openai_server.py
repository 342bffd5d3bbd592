"""A server that speaks OpenAI's wire formats, for tests: `model_server` tells how it is used.

It serves `POST /v1/responses` and `POST /v1/chat/completions`.
"""

from typing import Any, Final

from tiny_harness.testing.model_server import Endpoint, ModelServer, create_app, serve
from tiny_harness.testing.openai_frames import chat_failure, chat_frames, responses_failure, responses_frames
from tiny_harness.testing.openai_wire import ChatBody, ResponsesBody
from tiny_harness.testing.prompt_cache import PromptCache

__all__ = ["OpenAIServer", "create_app"]

ENDPOINTS: Final = {
    "/v1/responses": Endpoint(ResponsesBody.model_validate_json, responses_frames, responses_failure),
    "/v1/chat/completions": Endpoint(ChatBody.model_validate_json, chat_frames, chat_failure),
}


class OpenAIServer(ModelServer):
    """OpenAI, as far as tests need it."""

    def __init__(self, **told: Any) -> None:
        """Take what `ModelServer` is told besides."""
        super().__init__(ENDPOINTS, _error, PromptCache(by_mark=False), **told)


def _error(status: int, message: str, code: str | None) -> dict[str, Any]:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


if __name__ == "__main__":
    serve(OpenAIServer)
