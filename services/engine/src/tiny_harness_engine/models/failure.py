"""What a provider's own words of failure mean: whether another attempt can help, and when. Pure but for the clock."""

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from tiny_harness.errors import ModelError

PASSING_STATUSES: Final = frozenset({408, 409, 429})
"""Refusals that another attempt can help against, beside all of 500 and above."""
LASTING_CODES: Final = frozenset({"insufficient_quota", "billing_error"})
"""Come with such a status, but stay."""
PASSING_CODES: Final = frozenset(
    {
        "",
        "api_error",
        "overloaded_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "server_error",
        "timeout_error",
        "vector_store_timeout",
    }
)
"""Codes of an error inside a stream that another attempt can help against; the empty one: the server gave none."""
NO_REASON: Final = "it gave no reason"
MAX_WAIT_S: Final = 3600.0
"""A server that says more than an hour is not waited for that long."""


class Failure(BaseModel):
    """A provider's error object, as far as both vendors agree."""

    model_config = ConfigDict(frozen=True, extra="ignore", from_attributes=True)

    code: str | int | None = None
    """OpenAI's word."""
    type: str | None = None
    """Anthropic's word, and OpenAI's where there is no code."""
    message: str | None = None

    @property
    def word(self) -> str:
        """The kind of the failure, for programs."""
        return str(self.code or self.type or "")

    def in_stream(self) -> ModelError:
        """Say that an answer that had begun has failed."""
        return ModelError(self.message or self.word or NO_REASON, self.word in PASSING_CODES)

    def of_status(self, status: int, headers: Mapping[str, str], otherwise: str) -> ModelError:
        """Say that a request was refused with an HTTP status.

        Args:
            status: 400 and above.
            headers: Of the response, names in any case.
            otherwise: What is said where the error has no words.
        """
        passes = (status >= 500 or status in PASSING_STATUSES) and self.word not in LASTING_CODES
        words = self.message or otherwise
        return ModelError(f"status {status}: {words}", passes, _retry_after(headers) if passes else None)


def read_failure(body: Any) -> Failure:
    """Find the error in a body: it may be the body itself, or stand under `error`; a page of words is none."""
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    try:
        return Failure.model_validate(inner if isinstance(inner, Mapping) else {})
    except ValidationError:
        return Failure()


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read when to come again: seconds, or a date (RFC 9110 §10.2.3), or milliseconds as OpenAI says it."""
    said = {name.lower(): value for name, value in headers.items()}
    try:
        wait_s = float(said["retry-after-ms"]) / 1000 if "retry-after-ms" in said else _seconds(said["retry-after"])
    except (KeyError, ValueError):
        return None
    return min(max(wait_s, 0.0), MAX_WAIT_S) if math.isfinite(wait_s) else None


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return parsedate_to_datetime(text).timestamp() - time.time()
