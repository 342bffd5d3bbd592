"""MCP servers as a plugin declares them: `mcp.json` of Agent Plugins 1.0 (7.2, 9). The engine runs them."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError, model_validator

from tiny_harness.errors import RegistryError
from tiny_harness.plugins.documents import check_url, why_invalid
from tiny_harness.plugins.files import PluginFolder
from tiny_harness.plugins.report import Component

MCP: Final = "mcp.json"
SCHEMA: Final = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
"""The one version that we read, as of `plugin.json`. It is compared, never fetched."""
MAX_SERVERS: Final = 100
"""Of one plugin."""
MAX_NAME_CHARS: Final = 64

_RESERVED: Final = ("PLUGIN_ROOT", "PLUGIN_DATA")
_PLACEHOLDER: Final = re.compile(r"\$\{(PLUGIN_ROOT|PLUGIN_DATA)\}")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?|")

Text = Annotated[str, StringConstraints(strict=True, pattern=r"^[^\x00]*$")]


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a server's process, everything expanded and inside its bounds."""

    command: str
    """A path, or a name to look for in `PATH`."""
    args: tuple[str, ...]
    env: Mapping[str, str]
    """Laid over whatever environment the server gets."""
    cwd: Path


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that is started as a child process and spoken to over its standard input and output.

    Raises:
        RegistryError: It is declared wrongly.
    """

    name: str
    """Unique within its plugin."""
    command: str
    """A bare name, or `./…` inside the plugin; made in code, an absolute path too."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    """`./…`, `${PLUGIN_ROOT}…` or `${PLUGIN_DATA}…`; default: the plugin's folder."""
    plugin: str = ""
    """The plugin's name."""
    root: Path | None = None
    """The plugin's folder; `None` for one made in code."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        for key in self.env:
            if key in _RESERVED or not key or "=" in key or "\0" in key:
                raise RegistryError("mcp server", self.name, f"may not set the variable {key!r}")
        self._command()
        self._cwd(Path("/plugin-data"))  # any will do to find out whether the path leads out of it

    @property
    def full_name(self) -> str:
        """`<plugin>/<server>`."""
        return f"{self.plugin}/{self.name}"

    def launch(self, data: Path) -> Launch:
        """Expand everything (9.2): once, nothing else, and never in the command.

        Args:
            data: The plugin's own data folder, which must be there.

        Raises:
            RegistryError: Something leads out of the plugin or its data.
        """
        values = self._values(data)
        env = {key: _expanded(value, values) for key, value in self.env.items()} | values
        args = tuple(_expanded(arg, values) for arg in self.args)
        return Launch(self._command(), args, env, self._cwd(data))

    def _values(self, data: Path) -> dict[str, str]:
        root = {} if self.root is None else {"PLUGIN_ROOT": str(self.root)}
        return {**root, "PLUGIN_DATA": str(data)}

    def _command(self) -> str:
        if self.command.startswith("./") and self.root is not None:
            found = PluginFolder(self.root).find(self.command)
            return str(found or self.root / self.command)
        is_path = os.sep in self.command or "\\" in self.command
        may_be_path = self.root is None and Path(self.command).is_absolute()
        if not self.command or re.search(r"[\s\0]", self.command) or (is_path and not may_be_path):
            raise RegistryError("mcp server", self.name, "must have a `command` that is one name, or ./ and a path")
        return self.command

    def _cwd(self, data: Path) -> Path:
        if self.cwd is None:
            return self.root or data
        beginning, _, rest = self.cwd.partition("/")
        base = {".": self.root, "${PLUGIN_ROOT}": self.root, "${PLUGIN_DATA}": data}.get(beginning)
        if base is None or (beginning == "." and not self.cwd.startswith("./")):
            raise RegistryError("mcp server", self.name, "must have a `cwd` below ., ${PLUGIN_ROOT} or ${PLUGIN_DATA}")
        home, path = base.resolve(), base.joinpath(_expanded(rest, self._values(data))).resolve()
        if not path.is_relative_to(home):
            raise RegistryError("mcp server", self.name, "has a `cwd` that leads out of the plugin")
        return path


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that is spoken to over streamable HTTP.

    Raises:
        RegistryError: It is declared wrongly.
    """

    name: str
    """Unique within its plugin."""
    url: str
    """https, or http on loopback; without credentials."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Sent as they stand. Anybody can read them, so none holds a secret."""
    plugin: str = ""
    """The plugin's name."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        try:
            check_url(self.url)
        except ValueError as error:
            raise RegistryError("mcp server", self.name, f"has a bad address: {error}") from error
        if len({key.lower() for key in self.headers}) < len(self.headers):
            raise RegistryError("mcp server", self.name, "names a header twice")
        for key, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(key) or not _HEADER_VALUE.fullmatch(value):
                raise RegistryError("mcp server", self.name, f"has an invalid header {key!r:.100}")

    @property
    def full_name(self) -> str:
        """`<plugin>/<server>`."""
        return f"{self.plugin}/{self.name}"


Server = StdioServer | HttpServer


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_null(cls, document: Any) -> Any:
        for key, value in document.items() if isinstance(document, dict) else ():
            if value is None:
                raise ValueError(f"`{key}` must not be null")
        return document


class _StdioEntry(_Closed):
    type: Literal["stdio"]
    command: Text
    args: tuple[Text, ...] = ()
    env: dict[Text, Text] = {}
    cwd: Text | None = None


class _HttpEntry(_Closed):
    type: Literal["streamable-http", "http"]
    url: Text
    headers: dict[Text, Text] = {}


def read_servers(
    document: dict[str, Any], plugin: str, folder: PluginFolder
) -> tuple[tuple[Server, ...], tuple[Component, ...]]:
    """Read `mcp.json`.

    Returns:
        The servers that are declared well, and what is wrong with the others (7.2.2).

    Raises:
        RegistryError: The document as a whole is none: it declares no server.
    """
    if document.get("$schema") != SCHEMA:
        found = document.get("$schema", "nothing")
        raise RegistryError("file", MCP, f"must name the `$schema` {SCHEMA}, and has {found!r:.100}")
    entries = document.get("mcpServers")
    if not isinstance(entries, dict) or document.keys() != {"$schema", "mcpServers"}:
        raise RegistryError("file", MCP, "must have `$schema` and `mcpServers`, an object, and nothing else")
    if len(entries) > MAX_SERVERS:
        raise RegistryError("file", MCP, f"declares more than {MAX_SERVERS} servers")
    servers: list[Server] = []
    left_out: list[Component] = []
    for name, entry in entries.items():
        if isinstance(entry, dict) and entry.get("type") == "sse":
            reason = "the transport sse is deprecated and not supported"
            left_out.append(Component(kind="mcp", name=name[:200], state="unused", reason=reason))
            continue
        try:
            servers.append(_server(name, entry, plugin, folder.root))
        except RegistryError as error:
            left_out.append(Component(kind="mcp", name=name[:200], state="skipped", reason=str(error)[:500]))
        except ValidationError as error:
            left_out.append(Component(kind="mcp", name=name[:200], state="skipped", reason=why_invalid(error)[:500]))
    return tuple(servers), tuple(left_out)


def _server(name: str, entry: Any, plugin: str, root: Path) -> Server:
    if isinstance(entry, dict) and entry.get("type") == "stdio":
        stdio = _StdioEntry.model_validate(entry)
        return StdioServer(name, stdio.command, stdio.args, stdio.env, stdio.cwd, plugin, root)
    http = _HttpEntry.model_validate(entry)
    return HttpServer(name, http.url, http.headers, plugin)


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise RegistryError("mcp server", name[:100], f"must have a name of 1 to {MAX_NAME_CHARS} printable characters")


def _expanded(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)
