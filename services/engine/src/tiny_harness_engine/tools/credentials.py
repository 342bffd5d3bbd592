"""Credentials of tool servers: from the environment, each for one server, and given to nobody else.

A plugin cannot name a variable, so none can take what was meant for another (Agent Plugins 1.0 expands nothing either):
`TINY_HARNESS_TOOL_SECRET_<PLUGIN>_<SERVER>` is an HTTP server's bearer token, and with `__<NAME>` behind it a header of
an HTTP server (`_` for `-`), or a variable of a process.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from tiny_harness.errors import ConfigError
from tiny_harness.plugins.servers import HttpServer, Server

PREFIX: Final = "TINY_HARNESS_TOOL_SECRET_"
BASE_VARIABLES: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""All that a process gets of our environment."""

_VISIBLE: Final = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?")


def secret_variable(server: Server) -> str:
    """Name the variable of a server's secret."""
    return PREFIX + re.sub(r"[^A-Z0-9]+", "_", f"{server.plugin}_{server.name}".upper()).strip("_")


def ambiguous(servers: Iterable[Server]) -> frozenset[str]:
    """Find the variables that more than one server would read: nobody is given what they hold."""
    counts = Counter(secret_variable(server) for server in servers)
    return frozenset(variable for variable, count in counts.items() if count > 1)


def secrets_of(server: Server, environ: Mapping[str, str], shared: frozenset[str] = frozenset()) -> dict[str, str]:
    """Collect a server's secrets: headers of an HTTP server, variables of a process.

    Raises:
        ConfigError: A secret cannot be sent, or it is not clear whose it is. The server is not to be contacted.
    """
    variable = secret_variable(server)
    found = {
        name.removeprefix(variable): value
        for name, value in environ.items()
        if name == variable or name.startswith(f"{variable}__")
    }
    if found and variable in shared:
        raise ConfigError(f"{variable} could be meant for several servers: rename one")
    return {_name(server, suffix): _value(server, variable + suffix, value) for suffix, value in found.items()}


def process_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Take what every process gets."""
    return {name: environ[name] for name in BASE_VARIABLES if name in environ}


def _name(server: Server, suffix: str) -> str:
    name = suffix.removeprefix("__")
    if not isinstance(server, HttpServer):
        if not name:
            raise ConfigError(f"{secret_variable(server)} must name a variable: add __ and its name")
        return name
    return name.replace("_", "-") if suffix else "Authorization"


def _value(server: Server, variable: str, value: str) -> str:
    value = value.strip()
    if not value or (isinstance(server, HttpServer) and not _VISIBLE.fullmatch(value)):
        raise ConfigError(f"{variable} holds nothing that can be sent")
    return f"Bearer {value}" if variable == secret_variable(server) else value
