"""The settings: one frozen object, read once at the edge and passed down (DESIGN: configuration).

`Settings` only knows values. Where the file is and how the default one is made is the business of `paths`
and `config_file`.
"""

import getpass
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN, Lifecycle

Effort = Literal["low", "medium", "high"]

DEFAULT_MODEL: Final = "gpt-5.4-mini"


class Section(BaseModel):
    """Base of all sections: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)


class EmbeddedTemporal(Section):
    """`[temporal.embedded]`: the Temporal server that we own."""

    persist: bool = True
    """Keep workflows on disk. Without it only the store survives a restart, which loses no task."""
    database_path: Path | None = None
    """Its database; default: `temporal.db` beside the store."""
    port: int = Field(default=0, ge=0, le=65535)
    """Loopback port; 0 picks a free one."""


class TemporalSettings(Section):
    """`[temporal]`: which Temporal runs the workflows."""

    mode: Literal["embedded", "remote"] = "embedded"
    address: str = "127.0.0.1:7233"
    namespace: str = "default"
    task_queue: str = Field(default="tiny-harness", min_length=1)
    tls: bool = False
    embedded: EmbeddedTemporal = EmbeddedTemporal()


class ModelSettings(Section):
    """`[model]`: who answers."""

    provider: Literal["openai", "scripted"] = "openai"


class OpenAISettings(Section):
    """`[openai]`: OpenAI, or any server that speaks its API at `base_url`."""

    model: str = Field(default=DEFAULT_MODEL, min_length=1)
    api: Literal["responses", "chat_completions"] = "responses"
    base_url: str | None = None
    effort: Effort | None = None
    timeout: PositiveFloat = 120.0
    """Seconds that the provider may be silent."""
    max_output_tokens: PositiveInt | None = None
    context_window_tokens: PositiveInt = 100_000
    """Tokens of conversation that are sent at most; older messages are left out first."""


class ScriptedSettings(Section):
    """`[scripted]`: the model that follows a script, for demos and tests."""

    script: Path | None = None
    """A TOML or JSON file of rules; default: the demo's."""


class ServerSettings(Section):
    """`[server]`: what the gateway serves and to whom."""

    bind: str = "127.0.0.1:8080"
    base_url: str | None = None
    """Where clients reach it; default: http://<bind>."""
    participant: str | None = Field(default=None, pattern=PARTICIPANT_ID_PATTERN)
    """Who our clients speak as; default: the login name."""
    max_request_bytes: PositiveInt = 1_500_000
    rate_limit_per_minute: PositiveInt = 120
    max_streams: PositiveInt = 50
    cors_origins: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """The base URL, without a trailing slash."""
        return (self.base_url or f"http://{self.bind}").rstrip("/")

    @property
    def host(self) -> str:
        """The host of `bind`."""
        return self.bind.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port of `bind`; 0 picks a free one."""
        return int(self.bind.rpartition(":")[2])

    @model_validator(mode="after")
    def _bind_is_host_and_port(self) -> Self:
        host, _, port = self.bind.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise ValueError("bind must be HOST:PORT")
        return self


class StoreSettings(Section):
    """`[store]`: where tasks live."""

    sqlite_path: Path = Path("tiny-harness.db")


class TaskSettings(Section):
    """`[tasks]`: how tasks behave."""

    default_lifecycle: Lifecycle = "conversation"
    """What a person's first message starts. `delegated` tasks end with their first full reply."""


class AuthSettings(Section):
    """`[auth]`: how the gateway knows who speaks."""

    mode: Literal["local", "none"] = "local"


class RetentionSettings(Section):
    """`[retention]`: how long ended tasks are kept. Open tasks are kept for ever."""

    tasks_days: PositiveFloat = 90.0


class ObservabilitySettings(Section):
    """`[o11y]`: logs."""

    log_file: Path | None = None
    """Where to log; default: standard error, for `serve` and `worker` only."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"


class Settings(Section):
    """All settings of a process."""

    temporal: TemporalSettings = TemporalSettings()
    model: ModelSettings = ModelSettings()
    openai: OpenAISettings = OpenAISettings()
    scripted: ScriptedSettings = ScriptedSettings()
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    tasks: TaskSettings = TaskSettings()
    auth: AuthSettings = AuthSettings()
    retention: RetentionSettings = RetentionSettings()
    o11y: ObservabilitySettings = ObservabilitySettings()

    @property
    def temporal_database(self) -> Path:
        """The embedded Temporal server's database."""
        return self.temporal.embedded.database_path or self.store.sqlite_path.with_name("temporal.db")

    @model_validator(mode="after")
    def _none_needs_loopback(self) -> Self:
        if self.auth.mode in ("none", "local") and self.server.host not in ("127.0.0.1", "::1", "localhost"):
            raise ValueError(f"auth.mode = {self.auth.mode!r} needs a loopback address in server.bind")
        return self

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a TOML file.

        Touches no other file and never the home directory (R11.2).

        Raises:
            ConfigError: The file is missing, unreadable, no TOML, or has an unknown key or a bad value; file and key
                are named.
        """
        from tiny_harness.config_file import read_settings  # late: settings must not need a TOML parser

        return read_settings(cls, path)


def login_name() -> str:
    """Name the user as our clients present them when nothing else is configured."""
    return getpass.getuser()
