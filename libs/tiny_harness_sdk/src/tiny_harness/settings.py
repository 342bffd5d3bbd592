"""The settings: one frozen object, read once at the edge and passed down (DESIGN: configuration).

`Settings` only knows values. Where the file is and how the default one is made is the business of `paths`
and `config_file`.
"""

import getpass
import os
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN, ParticipantKind

Effort = Literal["low", "medium", "high"]

DEFAULT_MODEL: Final = "gpt-5.4-mini"
DEFAULT_ANTHROPIC_MODEL: Final = "claude-sonnet-5"
DEFAULT_ANTHROPIC_OUTPUT: Final = 16_000
"""Anthropic's API wants a bound; this one leaves room for thinking, which counts, and every newer model takes it."""

MAX_PORT: Final = 65_535

AGENT_NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


NonNegativeDecimal = Annotated[Decimal, Field(ge=0)]


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
    """`embedded`: a Temporal server of our own. `remote`: the one at `address`."""
    address: str = "127.0.0.1:7233"
    """Of a remote Temporal server."""
    namespace: str = "default"
    """Of a remote Temporal server."""
    task_queue: str = Field(default="tiny-harness", min_length=1)
    """Where gateway and engine meet; different queues do not see each other."""
    tls: bool = False
    """Whether to reach a remote Temporal server by TLS."""
    embedded: EmbeddedTemporal = EmbeddedTemporal()
    """The server of our own."""


class ModelSettings(Section):
    """`[model]`: who answers."""

    provider: Literal["openai", "anthropic", "scripted"] = "openai"
    """`openai` or `anthropic`, or any server that speaks their API; `scripted` needs no key and no network."""


class ModelChoice(Section):
    """What every provider's section says about its models."""

    model: str = Field(min_length=1)
    """The model to ask."""
    models: tuple[str, ...] | None = None
    """The models that `/model` may choose, `model` among them; default: only `model`."""
    effort: Effort | None = None
    """How hard the model thinks; unset sends nothing."""
    context_window_tokens: PositiveInt = 100_000
    """Tokens of conversation that are sent at most; older messages are left out first."""

    @model_validator(mode="after")
    def _models_hold_the_default(self) -> Self:
        # A list that is empty or lacks the default would otherwise mean any model, or none (fail closed).
        if self.models is not None and self.model not in self.models:
            raise PydanticCustomError("models", "models must hold the default model, {model}", {"model": self.model})
        return self

    @property
    def selectable(self) -> tuple[str, ...]:
        """The models that may be chosen."""
        return self.models or (self.model,)


class HostedModels(ModelChoice):
    """What the section of a provider says that is asked over the network."""

    vendor: ClassVar[str]
    """Whose API it is, for people."""
    key_variable: ClassVar[str]
    """The environment variable that holds the key."""
    default_url: ClassVar[str]
    """Where the vendor itself serves its API."""

    base_url: str | None = None
    """A server that speaks the provider's API, with or without a key; default: the provider's own."""
    timeout: PositiveFloat = 120.0
    """Seconds that the provider may be silent."""

    @property
    def url(self) -> str:
        """The server to ask."""
        return self.base_url or self.default_url


class OpenAISettings(HostedModels):
    """`[openai]`: OpenAI, or any server that speaks its API at `base_url`."""

    vendor = "OpenAI"
    key_variable = "OPENAI_API_KEY"
    default_url = "https://api.openai.com/v1"

    model: str = Field(default=DEFAULT_MODEL, min_length=1)
    """The model to ask."""
    api: Literal["responses", "chat_completions"] = "responses"
    """Which of OpenAI's APIs to speak."""
    max_output_tokens: PositiveInt | None = None
    """Tokens that one answer may have; unset sends nothing."""


class AnthropicSettings(HostedModels):
    """`[anthropic]`: Anthropic, or any server that speaks its API at `base_url`."""

    vendor = "Anthropic"
    key_variable = "ANTHROPIC_API_KEY"
    default_url = "https://api.anthropic.com"

    model: str = Field(default=DEFAULT_ANTHROPIC_MODEL, min_length=1)
    """The model to ask."""
    max_output_tokens: PositiveInt = DEFAULT_ANTHROPIC_OUTPUT
    """Tokens that one answer may have, thinking included."""


class ScriptedSettings(ModelChoice):
    """`[scripted]`: the model that follows a script, for demos and tests."""

    model: str = Field(default="scripted", min_length=1)
    """What it is called; a script may match on it."""
    script: Path | None = None
    """A TOML or JSON file of rules; default: the demo's."""


class ServerSettings(Section):
    """`[server]`: what the gateway serves and to whom."""

    bind: str = "127.0.0.1:8080"
    """Where `serve` listens, HOST:PORT; port 0 picks a free one."""
    base_url: str | None = None
    """Where clients reach it; default: http://<bind>."""
    participant: str | None = Field(default=None, pattern=PARTICIPANT_ID_PATTERN)
    """Who our clients speak as; default: the login name."""
    max_request_bytes: PositiveInt = 1_500_000
    """Bytes that a request may have; more is answered 413."""
    rate_limit_per_minute: PositiveInt = 120
    """Calls that a participant may make in a minute; more are answered 429."""
    max_streams: PositiveInt = 50
    """Streams that a participant may hold open."""
    cors_origins: tuple[str, ...] = ()
    """Origins of pages elsewhere that may call; none by default."""

    @property
    def url(self) -> str:
        """The base URL, without a trailing slash."""
        return (self.base_url or f"http://{self.bind}").rstrip("/")

    @property
    def host(self) -> str:
        """The host of `bind`."""
        return split_bind(self.bind)[0]

    @property
    def port(self) -> int:
        """The port of `bind`; 0 picks a free one."""
        return split_bind(self.bind)[1]

    @field_validator("bind")
    @classmethod
    def _bind_is_host_and_port(cls, bind: str) -> str:
        split_bind(bind)
        return bind


class StoreSettings(Section):
    """`[store]`: where tasks live."""

    sqlite_path: Path = Path("tiny-harness.db")
    """The store's file. Its folder is the home: one harness runs in it."""
    url: str | None = None
    """postgresql://host:5432/database, which any number of processes share; with `?sslmode=verify-full` over TLS. One
    with a password goes into TINY_HARNESS_STORE_URL, which wins. Without any, the file is the store."""
    ca_file: Path | None = None
    """Certificates to trust in a PostgreSQL server, in PEM; TLS is asked for with it."""
    timeout: PositiveFloat = 5.0
    """Seconds after which a PostgreSQL server that does not answer counts as gone."""
    max_connections: int = Field(default=10, ge=2)
    """Connections to it that a process may open."""

    @field_validator("url")
    @classmethod
    def _url_is_plain(cls, url: str | None) -> str | None:
        if url is not None and not is_postgres_url(url):
            raise ValueError("must be an address such as postgresql://host:5432/database")
        if url is not None and holds_password(url):
            raise ValueError("must hold no password; put the address into TINY_HARNESS_STORE_URL instead")
        return url


class RedisSettings(Section):
    """`[redis]`: what carries events from engines to gateways in other processes."""

    url: str | None = None
    """redis://host:6379/0, rediss:// with TLS, or unix:///path. One with a password goes into TINY_HARNESS_REDIS_URL,
    which wins. Without any, gateway and engine hear each other within one process only."""
    ca_file: Path | None = None
    """Certificates to trust with rediss://, in PEM; default: the system's."""
    timeout: PositiveFloat = 2.0
    """Seconds after which a Redis that does not answer counts as gone."""
    max_connections: int = Field(default=20, ge=2)
    """Connections that a process may open."""

    @field_validator("url")
    @classmethod
    def _url_is_plain(cls, url: str | None) -> str | None:
        if url is not None and not is_redis_url(url):
            raise ValueError("must be an address such as redis://host:6379/0")
        if url is not None and urlsplit(url).password is not None:
            raise ValueError("must hold no password; put the address into TINY_HARNESS_REDIS_URL instead")
        return url


class PriceSettings(Section):
    """`[prices."<model>"]`: what a model costs, per million tokens, in whatever money you count in."""

    input: NonNegativeDecimal
    """Input that the provider had to read."""
    cached_input: NonNegativeDecimal | None = None
    """Input that its cache held; default: the same."""
    output: NonNegativeDecimal
    """Output, thinking included."""


class BudgetSettings(Section):
    """`[tasks.budget]`: what a task and all its sub-tasks may use before somebody is asked."""

    tokens: PositiveInt | None = None
    """Tokens, input and output; unset: as many as it takes."""
    cost: Annotated[Decimal, Field(gt=0)] | None = None
    """Money, in that of `[prices]`; unset: whatever it costs."""


class ContextSettings(Section):
    """`[context]`: what a model is shown of a long conversation."""

    compact_at: float = Field(default=0.85, gt=0, le=1)
    """Share of the window from which on the oldest part is summarised."""
    keep: float = Field(default=0.4, gt=0, lt=1)
    """Share of the window that is left afterwards."""
    summary_tokens: PositiveInt = 2_000
    """Tokens that a summary may have."""


class TaskSettings(Section):
    """`[tasks]`: how tasks behave."""

    default_lifecycle: Literal["conversation", "delegated"] = "conversation"
    """What a person's first message starts. `delegated` tasks end with their first full reply."""
    max_depth: PositiveInt = 5
    """How many tasks may stand above a sub-task."""
    max_children: PositiveInt = 20
    """Open sub-tasks that a task may have."""
    max_tree: PositiveInt = 200
    """Tasks that a task and all its sub-tasks may be together, ended ones too."""
    budget: BudgetSettings = BudgetSettings()
    """What a task and all its sub-tasks may use before somebody is asked."""


class RetrySettings(Section):
    """`[retries]`: how often what failed in passing is tried again. Tools and commands never are: they may have run."""

    model: tuple[PositiveFloat, ...] = (1.0, 4.0, 15.0)
    """Seconds before each further attempt at a model provider that fails; one that says when to come is heeded."""


class HookSettings(Section):
    """`[hooks]`: how hooks are called."""

    deadline: PositiveFloat = 5.0
    """Seconds that an executor may take which does not say it itself."""
    probe_interval: PositiveFloat = 30.0
    """Seconds between two looks at whether a remote executor is there."""
    ca_file: Path | None = None
    """Certificates to trust in services of yours, in PEM, beside those of public authorities."""


class AgentSettings(Section):
    """`[agents.<name>]`: a remote A2A agent that sub-tasks can be given to."""

    url: str
    """Where it is: its card is asked for below, at `/.well-known/agent-card.json`. https, or http on loopback."""
    token_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The environment variable that holds its credential, which goes to the origin of `url` and nowhere else."""
    description: str = Field(default="", max_length=1_000)
    """What it is good for, in words for the model."""
    participant: str | None = Field(default=None, pattern=PARTICIPANT_ID_PATTERN)
    """Who we are there, for a tiny-harness that believes who holds its token; others know it by the credential."""
    timeout: PositiveFloat = 30.0
    """Seconds that it may take to answer a call."""
    patience: PositiveFloat = 600.0
    """Seconds that it may be away, or not know a task of ours, before its sub-tasks count as failed."""

    @field_validator("url")
    @classmethod
    def _url_is_safe(cls, url: str) -> str:
        from tiny_harness.hooks.delivery import address_fault  # late: most configurations name no agent

        fault = address_fault(url)
        if fault is not None or "?" in url:
            raise ValueError(fault or "must hold no query")
        return url.rstrip("/")


class WorkerSettings(Section):
    """`[supervision.workers."<participant id>"]`: somebody who works on supervised tasks."""

    kind: ParticipantKind = "agent"
    capacity: PositiveInt = 1
    """Tasks that it works on at once; others wait in order."""
    quiet_minutes: PositiveFloat | None = None
    """Quiet time before it is reminded first; default: that of `[supervision]`."""


class SupervisionSettings(Section):
    """`[supervision]`: how supervised tasks are watched over (adr-042)."""

    quiet_minutes: PositiveFloat = 5.0
    """Quiet time before the first reminder."""
    ladder_minutes: tuple[PositiveFloat, ...] = (1.0, 2.0, 5.0, 10.0, 30.0)
    """Quiet time from each reminder to the next."""
    stalled_after_minutes: PositiveFloat = 30.0
    """Quiet time after the last reminder before the task is stalled, and a person is told."""
    reminders_per_hour: PositiveInt = 6
    """What a worker gets at most."""
    expire_hours: PositiveFloat = 24.0
    """Time without activity after which a task is canceled."""
    warn_hours: tuple[PositiveFloat, ...] = (20.0, 23.0)
    """Time without activity after which its people are warned of that."""
    workers: Mapping[Annotated[str, Field(pattern=PARTICIPANT_ID_PATTERN)], WorkerSettings] = Field(
        default_factory=dict[str, WorkerSettings]
    )
    """Who works on supervised tasks, by participant id; others that a task is given to have the defaults."""

    @model_validator(mode="after")
    def _warnings_come_first(self) -> Self:
        if list(self.warn_hours) != sorted(self.warn_hours) or any(at >= self.expire_hours for at in self.warn_hours):
            raise ValueError("warn_hours must rise, and end before expire_hours")
        return self


SigningAlgorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]  # fmt: skip
"""Asymmetric ones only: with a shared secret, whoever can check a token can make one."""


class AuthSettings(Section):
    """`[auth]`: how the gateway knows who speaks."""

    mode: Literal["local", "none", "tokens", "jwt"] = "local"
    """`local`: a token, or the Unix socket. `none`: whoever reaches the port is believed; loopback only. `tokens`:
    bearer tokens made by `tiny-harness tokens`. `jwt`: tokens signed by an identity provider."""
    issuer: str | None = None
    """Whose JWTs are believed: their claim `iss`."""
    audience: str | None = None
    """What is in the claim `aud` of a JWT that is meant for this harness."""
    jwks_url: str | None = None
    """Where the issuer's keys are: a JWK set. https, or http on loopback."""
    jwks_file: Path | None = None
    """The same in a file, which may be replaced while the gateway runs."""
    participant_claim: str = Field(default="sub", min_length=1)
    """The claim that holds the participant's id."""
    kind_claim: str | None = Field(default=None, min_length=1)
    """A claim that says `human` or `agent`; unset: `X-Participant-Kind` says it."""
    algorithms: tuple[SigningAlgorithm, ...] = Field(default=("RS256", "ES256", "EdDSA"), min_length=1)
    """How a JWT may be signed. Asymmetric algorithms only."""
    leeway: float = Field(default=30.0, ge=0, le=300)
    """Seconds by which clocks may differ, for expiry and not-before."""
    refresh_interval: PositiveFloat = 300.0
    """Seconds after which the keys are read anew, and those that are not among them are believed no longer."""
    refetch_interval: PositiveFloat = 30.0
    """Seconds that pass at least between two reads because of a key that is not known, or a read that failed."""

    @field_validator("jwks_url")
    @classmethod
    def _url_is_safe(cls, url: str | None) -> str | None:
        from tiny_harness.hooks.delivery import address_fault  # late: most configurations name no address

        if url is not None and (fault := address_fault(url)) is not None:
            raise ValueError(fault)
        return url

    @model_validator(mode="after")
    def _jwt_is_told_apart(self) -> Self:
        given = [name for name in ("issuer", "audience", "jwks_url", "jwks_file") if getattr(self, name) is not None]
        if self.mode != "jwt" and given:  # else a forgotten mode looks as if tokens were checked
            raise PydanticCustomError("not_jwt", "{key} is of use with mode = jwt only", {"key": given[0]})
        if self.mode == "jwt":
            self._check_jwt(given)
        return self

    def _check_jwt(self, given: list[str]) -> None:
        for key in ("issuer", "audience"):
            if key not in given:
                raise PydanticCustomError("jwt_incomplete", "mode = jwt needs {key}", {"key": key})
        if ("jwks_url" in given) == ("jwks_file" in given):
            raise PydanticCustomError("jwt_keys", "mode = jwt needs either jwks_url or jwks_file")


class RetentionSettings(Section):
    """`[retention]`: how long ended tasks are kept. Open tasks are kept for ever."""

    tasks_days: PositiveFloat = 90.0
    """Days after its end that the heartbeat, or `tasks purge`, deletes a task."""


class PushSettings(Section):
    """`[push]`: where notifications may go; they need TINY_HARNESS_PUSH_KEY."""

    allow_hosts: tuple[str, ...] = ()
    """Receivers that may have any address, and plain http: `name` or `name:port`. Others are https on the Internet."""


class HeartbeatSettings(Section):
    """`[heartbeat]`: what one engine of all does now and then: the retention sweep and the snapshot on `/_monitor`."""

    enabled: bool = True
    """Whether an engine that starts makes sure of its schedule. `schedules delete` removes one that is there."""
    interval_minutes: PositiveFloat = 60.0
    """Minutes from one to the next."""


class ObservabilitySettings(Section):
    """`[o11y]`: logs and probes."""

    log_file: Path | None = None
    """Where to log; default: standard error, for `serve` and `worker` only."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """How much is logged."""
    admin_bind: str | None = None
    """Where an engine in a process of its own answers probes (`/healthz`, `/readyz`), HOST:PORT; unset: nowhere."""

    @property
    def admin(self) -> tuple[str, int] | None:
        """Host and port of `admin_bind`, if there is one."""
        return None if self.admin_bind is None else split_bind(self.admin_bind)

    @field_validator("admin_bind")
    @classmethod
    def _bind_is_host_and_port(cls, bind: str | None) -> str | None:
        if bind is not None:
            split_bind(bind)
        return bind


class Settings(Section):
    """All settings of a process."""

    plugins: tuple[Path, ...] = ()
    """Plugin directories, loaded in this order."""
    temporal: TemporalSettings = TemporalSettings()
    model: ModelSettings = ModelSettings()
    openai: OpenAISettings = OpenAISettings()
    anthropic: AnthropicSettings = AnthropicSettings()
    scripted: ScriptedSettings = ScriptedSettings()
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    redis: RedisSettings = RedisSettings()
    tasks: TaskSettings = TaskSettings()
    prices: Mapping[str, PriceSettings] = Field(default_factory=dict[str, PriceSettings])
    """What models cost, by their names."""
    context: ContextSettings = ContextSettings()
    retries: RetrySettings = RetrySettings()
    hooks: HookSettings = HookSettings()
    agents: Mapping[Annotated[str, Field(pattern=AGENT_NAME_PATTERN)], AgentSettings] = Field(default_factory=dict)
    """Remote agents that sub-tasks can be given to, by the names that the model uses."""
    supervision: SupervisionSettings = SupervisionSettings()
    auth: AuthSettings = AuthSettings()
    retention: RetentionSettings = RetentionSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    push: PushSettings = PushSettings()
    o11y: ObservabilitySettings = ObservabilitySettings()

    @property
    def temporal_database(self) -> Path:
        """The embedded Temporal server's database."""
        return self.temporal.embedded.database_path or self.store.sqlite_path.with_name("temporal.db")

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """Environment variables that the configuration says hold secrets."""
        return tuple(agent.token_env for agent in self.agents.values() if agent.token_env is not None)

    @property
    def choice(self) -> ModelChoice:
        """The models of the provider that is in use."""
        sections = {"openai": self.openai, "anthropic": self.anthropic, "scripted": self.scripted}
        return sections[self.model.provider]

    @field_validator("agents")
    @classmethod
    def _self_is_this_harness(cls, agents: Mapping[str, AgentSettings]) -> Mapping[str, AgentSettings]:
        if "self" in agents:
            raise ValueError("self is this harness: give the agent another name")
        return agents

    @model_validator(mode="after")
    def _a_cost_budget_needs_prices(self) -> Self:
        # What nobody can count must not look as if it were watched.
        unpriced = [model for model in self.choice.selectable if model not in self.prices]
        if self.tasks.budget.cost is not None and unpriced:
            raise PydanticCustomError(
                "unpriced", "tasks.budget.cost needs a price for {model}, under prices", {"model": unpriced[0]}
            )
        return self

    @model_validator(mode="after")
    def _none_needs_loopback(self) -> Self:
        if self.auth.mode in ("none", "local") and self.server.host not in ("127.0.0.1", "::1", "localhost"):
            raise PydanticCustomError(
                "not_loopback", "needs a loopback address with auth.mode = {mode}", {"mode": self.auth.mode}
            )
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


def split_bind(bind: str) -> tuple[str, int]:
    """Take HOST:PORT apart; the host comes without brackets.

    Raises:
        ValueError: It is not of that form.
    """
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > MAX_PORT:
        raise ValueError("must be HOST:PORT")
    return host, int(port)


def is_redis_url(url: str) -> bool:
    """Whether this can be the address of a Redis."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0  # raises when it is no number
    except ValueError:
        return False
    if parts.scheme == "unix":
        return bool(parts.path)
    return parts.scheme in ("redis", "rediss") and bool(parts.hostname) and has_port


def is_postgres_url(url: str) -> bool:
    """Whether this can be the address of a PostgreSQL database; it may name several hosts, or none with a socket."""
    try:
        parts = urlsplit(url)
    except ValueError:  # half a pair of brackets
        return False
    return parts.scheme in ("postgresql", "postgres") and len(parts.path) > 1


def holds_password(url: str) -> bool:
    """Whether an address of a PostgreSQL database has a password in it, before the host or among its options."""
    parts = urlsplit(url)
    options = {name for name, _ in parse_qsl(parts.query)}
    return parts.password is not None or bool(options & {"password", "sslpassword"})


def login_name() -> str:
    """Name the user as our clients present them when nothing else is configured: the login, as a participant id."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # no variable says it, and the system has no such user
        name = f"user-{os.getuid()}"
    return re.sub(r"[^A-Za-z0-9._:@-]", "-", name)[:128] or "user"
