"""The configuration file: reading it with errors that name file and key, and the text of the default one."""

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError

from tiny_harness.errors import ConfigError
from tiny_harness.settings import DEFAULT_ANTHROPIC_MODEL, DEFAULT_MODEL, HostedModels, Settings

S = TypeVar("S", bound=Settings)


def read_settings(kind: type[S], path: Path) -> S:
    """Read a TOML file into settings (see `Settings.load`)."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError("there is no such file", file=str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror})", file=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"is no valid TOML: {error}", file=str(path)) from None
    return _validated(kind, data, path)


def planned_settings(home: Path) -> Settings:
    """Give the settings that a home has after its first start, when its default file is made."""
    return _validated(Settings, tomllib.loads(default_config(home)), home)


def _validated(kind: type[S], data: dict[str, Any], path: Path) -> S:
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise _first_fault(kind, path, error) from None


_KEYS: Final = {"not_loopback": "server.bind", "models": "models"}
"""The key at fault of checks over more than one key, seen from the section that checks."""


def _first_fault(kind: type[BaseModel], path: Path, error: ValidationError) -> ConfigError:
    faults = error.errors(include_url=False, include_input=False)
    keys = [".".join((*map(str, fault["loc"]), *filter(None, [_KEYS.get(fault["type"])]))) for fault in faults]
    reason = faults[0]["msg"]
    if faults[0]["type"] == "extra_forbidden":
        reason = "there is no such key" + _suggestion(kind, faults[0]["loc"])
    if len(keys) > 1:
        reason += f" (also wrong: {', '.join(keys[1:])})"
    return ConfigError(reason.removeprefix("Value error, "), file=str(path), key=keys[0])


def _suggestion(kind: type[BaseModel], location: tuple[int | str, ...]) -> str:
    for step in location[:-1]:
        section = kind.model_fields[str(step)].annotation if str(step) in kind.model_fields else None
        if not (isinstance(section, type) and issubclass(section, BaseModel)):
            return ""
        kind = section
    near = difflib.get_close_matches(str(location[-1]), kind.model_fields, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def explain(settings: Settings, key: str) -> dict[str, Any]:
    """Explain a dotted key: its value in effect, its default, its type and what it is for.

    Raises:
        ConfigError: There is no such key.
    """
    holder: BaseModel | Mapping[str, Any] = settings
    *sections, name = key.split(".")
    for section in sections:
        inner = _held(holder, section)
        if not isinstance(inner, BaseModel | Mapping):
            raise ConfigError("there is no such section", key=key)
        holder = inner
    value = _held(holder, name)
    if isinstance(value, BaseModel):
        return {"key": key, "section": sorted(type(value).model_fields), "about": type(value).__doc__}
    field = type(holder).model_fields.get(name) if isinstance(holder, BaseModel) else None
    if field is None:
        suggestion = _suggestion(type(holder), (name,)) if isinstance(holder, BaseModel) else ""
        raise ConfigError("there is no such key" + suggestion, key=key)
    if isinstance(value, Mapping):
        return {"key": key, "section": sorted(cast("Mapping[str, Any]", value)), "about": field.description or ""}
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    return {
        "key": key,
        "type": _type_words(field.annotation),
        "value": _plain(value),
        "default": _plain(default),
        "about": field.description or "",
    }


def _held(holder: BaseModel | Mapping[str, Any], name: str) -> Any:
    """Give what stands under a name, in a section or among sections of one kind."""
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name) if name in type(holder).model_fields else None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in cast("tuple[Any, ...]", value)]
    return str(value) if isinstance(value, Path) else value


_TYPE_WORDS: Final = {str: "text", bool: "true or false", int: "whole number", float: "number", Path: "path"}


def _type_words(kind: Any) -> str:
    """Put a key's type into words. Keys that may be unset are told by their default."""
    if kind in _TYPE_WORDS:
        return _TYPE_WORDS[kind]
    parts = [part for part in get_args(kind) if part not in (type(None), ...)]
    origin = get_origin(kind)
    if origin is Literal:
        return "one of " + ", ".join(str(part) for part in parts)
    if origin is tuple:
        return "list of " + _type_words(parts[0])
    return _type_words(parts[0])


def require_model_key(settings: Settings, environ: Mapping[str, str] = os.environ, file: str = "") -> None:
    """Check that the chosen model can be asked at all.

    Raises:
        ConfigError: It wants a key that the environment does not have; the keyless ways are named.
    """
    choice = settings.choice
    if not isinstance(choice, HostedModels) or choice.base_url or environ.get(choice.key_variable):
        return
    place = f" in {file}" if file else ""
    raise ConfigError(
        f"{choice.key_variable} is not set. Set it, or do without a key: `tiny-harness demo` talks to a scripted "
        f"model, and `base_url` under [{settings.model.provider}]{place} points at a server of your own that speaks "
        f"{choice.vendor}'s API"
    )


def default_config(home: Path) -> str:
    """Write the default configuration file of a home: everything under it, no secret, each key explained."""

    def under(name: str) -> str:
        return json.dumps(str(home / name))

    return f"""\
# tiny-harness: configuration of this home. Made at the first start; yours to change, never rewritten.
# `tiny-harness config explain KEY` explains any key, `tiny-harness doctor` checks the whole.

# Plugin directories, which bring commands and hooks:
# plugins = ["/path/to/plugin"]

[temporal]
# Where workflows run: "embedded" starts a Temporal server of our own, "remote" uses the one at `address`.
mode = "embedded"

[temporal.embedded]
# Keep running workflows on disk, so that a restart goes on where it was.
persist = true
# The embedded server's database.
database_path = {under("temporal.db")}

[model]
# Who answers: "openai" or "anthropic" (or any server that speaks their API), or "scripted" (no key, no network).
provider = "openai"

[openai]
# The model to ask. The key comes from the environment: OPENAI_API_KEY.
model = "{DEFAULT_MODEL}"
# The models that `/model` may choose, `model` among them; without it there is nothing to choose:
# models = ["{DEFAULT_MODEL}", "another"]
# How hard the model thinks: "low", "medium" or "high"; unset, the provider decides:
# effort = "medium"
# Which API to speak: "responses", or "chat_completions" as most compatible servers do.
api = "responses"
# A server of your own, which may do without a key; for instance:
# base_url = "http://127.0.0.1:11434/v1"

[anthropic]
# The model to ask when `provider` is "anthropic". The key comes from the environment: ANTHROPIC_API_KEY.
model = "{DEFAULT_ANTHROPIC_MODEL}"

[store]
# Where tasks, messages and events are kept: the file to back up (`tiny-harness backup FILE`).
sqlite_path = {under("tiny-harness.db")}

[server]
# Where `tiny-harness serve` listens. Nothing else opens a port of ours.
bind = "127.0.0.1:8080"

[tasks]
# How a conversation ends: "conversation" stays open until you complete or cancel it.
default_lifecycle = "conversation"

[o11y]
# Where the log goes, one JSON object a line.
log_file = {under("tiny-harness.log")}
# How much is logged: "debug", "info", "warning" or "error".
log_level = "info"
"""
