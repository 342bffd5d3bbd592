"""A script of the scripted model: rules, and the file that holds them (docs: the demo's own script is `demo.toml`).

The first rule whose conditions all hold answers; a rule without conditions always does, so it stands last.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    model_validator,
)

from tiny_harness.errors import ConfigError

DEMO: Final = Path(__file__).with_name("demo.toml")


class Entry(BaseModel):
    """Base of everything in a script: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Result(Entry):
    """Conditions on the result of a tool call; those that are left out hold."""

    name: str | None = None
    """The tool, as the harness names it."""
    text: re.Pattern[str] | None = None
    """Searched in the result; its groups may stand in the reply."""
    is_error: bool | None = None
    """Whether the call failed."""


class When(Entry):
    """Conditions on the request; those that are left out hold."""

    text: re.Pattern[str] | None = None
    """Searched in the last user message; its groups may stand in the reply."""
    result: Result | None = None
    """One of the results of the tools that the model asked for last fits; none does after the model's last words."""
    system: re.Pattern[str] | None = None
    """Searched in what stands before the conversation; its groups may stand in the reply."""
    offers: str | None = None
    """A tool that the model may ask for."""
    model: str | None = None
    """The model that is asked: the task's choice, else that of `[scripted] model`."""
    message_id: str | None = None
    """How the last user message's id begins."""
    turn: PositiveInt | None = None
    step: PositiveInt | None = None
    attempt: PositiveInt | None = None


class Streaming(Entry):
    """How a reply's text arrives."""

    chunk_chars: PositiveInt = 24
    chunk_delay_s: NonNegativeFloat = 0.0
    """Before each chunk but the first."""


class Failure(Entry):
    """The provider fails, as a real one may."""

    reason: Annotated[str, Field(min_length=1)]
    transient: bool = True
    """Whether another attempt can help."""
    times: PositiveInt | None = None
    """Only attempts up to this one fail, then the rule's answer comes; default: all fail."""


class CallOfTool(Entry):
    """A tool that the answer asks for."""

    name: Annotated[str, Field(min_length=1)]
    arguments: dict[str, JsonValue] | str = {}
    """A table, each text in it a template; or a template of the whole, which may hold numbers, or be broken JSON."""


class Tokens(Entry):
    """What an answer is said to have cost."""

    input_tokens: NonNegativeInt = 0
    output_tokens: NonNegativeInt = 0
    cached_tokens: NonNegativeInt = 0


class Rule(Entry):
    """Conditions, and the answer when they hold."""

    when: When = When()
    remember: re.Pattern[str] | None = None
    """A condition too: searched in earlier user messages, newest first; its groups may stand in the reply."""
    reply: str | None = None
    """A template: `{text}`, `{message_id}`, `{turn}`, `{step}`, `{messages}` (their number), `{attempt}`, `{model}`,
    `{result}` (the whole text of the one that fits), and regex groups as `{name}` or `{1}`. Other braces stay."""
    tool_calls: tuple[CallOfTool, ...] = ()
    """Tools to run, beside the text or without any."""
    usage: Tokens | None = None
    """Default: words are counted as tokens."""
    delay_s: NonNegativeFloat = 0.0
    """Silence before anything else."""
    stream: Streaming | None = None
    """Default: the script's."""
    fail: Failure | None = None
    hang: bool = False
    """Never answers; ends when it is cancelled."""
    garbage: bool = False
    """Sends the reply's text, then something that is no answer."""

    @model_validator(mode="after")
    def _answers(self) -> Self:
        fails_for_ever = self.fail is not None and self.fail.times is None
        if not (self.reply or self.tool_calls or fails_for_ever or self.hang or self.garbage):
            raise ValueError("a rule needs one of reply, tool_calls, fail (without times), hang, garbage")
        return self


class Script(Entry):
    """A whole script."""

    stream: Streaming = Streaming()
    rules: Annotated[tuple[Rule, ...], Field(min_length=1)]


def read_script(path: Path) -> Script:
    """Read a script, JSON if its name ends in `.json`, else TOML.

    Raises:
        ConfigError: The file cannot be read, or has an unknown key or a bad value; file and key are named.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        return Script.model_validate(content)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", str(path), "scripted.script") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise ConfigError(first["msg"], str(path), ".".join(map(str, first["loc"]))) from error
    except ValueError as error:
        raise ConfigError(f"is no {'JSON' if path.suffix == '.json' else 'TOML'}: {error}", str(path)) from error
