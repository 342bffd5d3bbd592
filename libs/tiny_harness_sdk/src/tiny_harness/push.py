"""Push notifications: what a participant asks to be told where, and the secrets in it, sealed (A2A 1.0 §3.1.7 on).

Without the variable there is no push: the operations answer that it is not supported.
"""

import hashlib
import os
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from tiny_harness.seal import SealRing, parse_ring

VARIABLE: Final = "TINY_HARNESS_PUSH_KEY"
PUSH_WORKFLOW: Final = "PushWorkflow"
NEWS: Final = "news"
MAX_CONFIGS: Final = 10
"""Of one participant on one task."""
MAX_ID_CHARS: Final = 128
MAX_SECRET_CHARS: Final = 4_096


class PushKey(BaseModel):
    """Names a configuration: its id is its maker's own."""

    model_config = ConfigDict(frozen=True)

    task_id: str
    participant_id: str
    config_id: str

    @property
    def workflow_id(self) -> str:
        """Name the workflow that delivers: never two alike, whatever stands in the ids that people choose."""
        chosen = f"{len(self.participant_id)}:{self.participant_id}:{self.config_id}"
        return f"push:{self.task_id}:{hashlib.sha256(chosen.encode()).hexdigest()[:32]}"


class PushSecret(BaseModel):
    """What a receiver is shown, so that it believes us. Never told to anybody else."""

    model_config = ConfigDict(frozen=True)

    token: str = Field(default="", max_length=MAX_SECRET_CHARS, repr=False)
    scheme: str = Field(default="", max_length=MAX_ID_CHARS)
    credentials: str = Field(default="", max_length=MAX_SECRET_CHARS, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each notification."""
        token = {"X-A2A-Notification-Token": self.token} if self.token else {}
        scheme = f"{self.scheme or 'Bearer'} {self.credentials}"
        return {**token, **({"Authorization": scheme} if self.credentials else {})}

    def seal(self, ring: SealRing, key: PushKey) -> bytes:
        """Seal it for its configuration: it opens for no other."""
        return ring.seal(self.model_dump_json().encode(), key.workflow_id)


def open_secret(sealed: bytes, ring: SealRing, key: PushKey) -> PushSecret | None:
    """Open a configuration's secret; `None` if no key fits."""
    plain = ring.open(sealed, key.workflow_id)
    return None if plain is None else PushSecret.model_validate_json(plain)


def push_ring(environ: Mapping[str, str] = os.environ) -> SealRing | None:
    """Read the keys that seal secrets, the first one the newest; `None`: there is no push.

    Raises:
        ConfigError: The variable is malformed.
    """
    words = environ.get(VARIABLE, "")
    return parse_ring(words, VARIABLE) if words.strip() else None
