"""`commands.json` and `hooks.json`, our documents in a plugin: closed schemas, one model per entry."""

import ipaddress
import re
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic.types import StrictFloat, StrictInt

from tiny_harness.errors import RegistryError
from tiny_harness.hooks.chain import CHAIN_BUDGET_S
from tiny_harness.hooks.declaration import Transport
from tiny_harness.hooks.executor import DEFAULT_PRIORITY, OnFailure
from tiny_harness.hooks.points import OPERATIONS, parse_point

COMMANDS: Final = "commands.json"
HOOKS: Final = "hooks.json"
MAX_ENTRIES: Final = 200
"""Of one document."""

ENTRY_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_PYTHON: Final = re.compile(r"(?P<file>(?:[A-Za-z_]\w*/)*[A-Za-z_]\w*\.py):(?P<function>[A-Za-z_]\w*)", re.ASCII)

Line = Annotated[str, StringConstraints(strict=True, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$")]
"""Words on one line, without control characters."""
KeyId = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CommandEntry(_Closed):
    """One command of `commands.json`. Its name is judged later, with those of everybody else."""

    name: Annotated[str, StringConstraints(strict=True)]
    description: Line = Field(default="", max_length=200)
    argument_hint: Line = Field(default="", max_length=100)


class ExecutorEntry(_Closed):
    """One executor of `hooks.json`: a function in the plugin, or somebody's service."""

    name: Annotated[str, StringConstraints(strict=True)]
    point: Annotated[str, StringConstraints(strict=True)]
    """`<operation>.<phase>`."""
    command: Annotated[str, StringConstraints(strict=True)] | None = None
    """On `command.invoked`: the only command that it is called for."""
    priority: StrictInt = Field(default=DEFAULT_PRIORITY, ge=1, le=1_000_000)
    """Lower first. Before 1 stands the role policy alone."""
    deadline_s: StrictFloat | StrictInt | None = Field(default=None, gt=0, le=CHAIN_BUDGET_S)
    on_failure: OnFailure = "closed"
    python: Annotated[str, StringConstraints(strict=True)] | None = None
    """`hooks.py:deploy`: a file beside `hooks.json`, and a function in it."""
    url: Annotated[str, StringConstraints(strict=True, max_length=2_000)] | None = None
    transport: Transport | None = None
    key_id: KeyId | None = None
    """Names the secret to sign with; default: the plugin's name."""

    @model_validator(mode="after")
    def _it_fits(self) -> Self:
        if not ENTRY_NAME.fullmatch(self.name):
            raise ValueError("`name` must have 1 to 64 of a-z, 0-9, ., _ and -, with a letter or digit at both ends")
        try:
            operation, _ = parse_point(self.point)
        except RegistryError as error:
            raise ValueError(str(error)) from error
        if self.command is not None and operation != "command.invoked":
            raise ValueError("`command` only goes with the points of command.invoked")
        if (self.python is None) == (self.url is None):
            raise ValueError("must have either `python` or `url`")
        if self.url is None and (self.transport or self.key_id):
            raise ValueError("`transport` and `key_id` only go with `url`")
        if self.url is not None:
            check_url(self.url)
        elif not _PYTHON.fullmatch(self.python or ""):
            raise ValueError("`python` must be `file.py:function`, with a file beside hooks.json")
        return self

    @property
    def code(self) -> tuple[str, str]:
        """The file and the function that `python` names."""
        found = _PYTHON.fullmatch(self.python or "")
        return (found["file"], found["function"]) if found else ("", "")

    @property
    def is_guard(self) -> bool:
        """Whether what it stands before may not go on without it."""
        operation, phase = parse_point(self.point)
        return phase != "in" and self.on_failure == "closed" and not OPERATIONS[operation].is_observed


def check_url(url: str) -> None:
    """Refuse an address that we would not call: what we send is only safe over https, or on this machine.

    Raises:
        ValueError: It is none of these.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if not host or re.search(r"[\s\x00-\x20\x7f]", url) or parts.fragment:
        raise ValueError("`url` is not one that can be called")
    if parts.username is not None or parts.password is not None:
        raise ValueError("`url` must not hold credentials")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(host)):
        raise ValueError("`url` must be https, or http on loopback")


def entries(document: dict[str, Any], key: str, name: str) -> list[Any]:
    """Take the list that a document of ours holds, and nothing else.

    Raises:
        RegistryError: It has another shape, or too many entries.
    """
    found = document.get(key)
    if not isinstance(found, list) or document.keys() != {key}:
        raise RegistryError("file", name, f"must be an object with the one field `{key}`, a list")
    if len(found) > MAX_ENTRIES:
        raise RegistryError("file", name, f"has more than {MAX_ENTRIES} entries")
    return found


def why_invalid(error: ValidationError) -> str:
    """Say what is wrong with a document, in one line: the first fault, with its place."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"`{place}`: {message}" if place else message


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
