"""A whole deployment on this machine: services, Temporal, PostgreSQL, Valkey and a balancer, each a process of its own.

The balancer alone lives in this process.
"""

import json
import os
import sys
import sysconfig
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import httpx
from temporalio.client import Client

from tests.cluster.balancer import Balancer
from tests.cluster.member import Killable, Member
from tests.cluster.plugins import KEY_ID, engines_plugin, hosted_plugin
from tests.ports import free_port
from tests.postgres import Postgres, new_database, running_postgres
from tests.stores import execute
from tests.valkey import Valkey, running_valkey
from tiny_harness.client import Address
from tiny_harness.ext.task import ParticipantKind
from tiny_harness.hooks.signature import secret_variable
from tiny_harness.seal import make_key
from tiny_harness.settings import Settings
from tiny_harness.store import open_store
from tiny_harness.store.open import migrate_store
from tiny_harness.temporal.embedded import find_binary
from tiny_harness.tokens import create_token

SCRIPT: Final = Path(__file__).with_name("script.toml")
PROBE_TIMEOUT_S: Final = 5.0
SECRET: Final = "of a hook host for tests, 32 characters"

StoreKind = Literal["postgres", "sqlite"]
BusKind = Literal["valkey", "none"]
Sections = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running deployment."""

    url: str
    """Of the balancer."""
    folder: Path
    settings: Settings
    """What all services have in common."""
    balancer: Balancer
    gateways: tuple[Member, ...]
    engines: tuple[Member, ...]
    hooks: Member
    temporal: Member
    postgres: Postgres | None
    valkey: Valkey | None
    gateway_ports: tuple[int, ...]
    configs: Mapping[str, Path]
    """The configuration file of each service."""

    @property
    def bookings(self) -> list[str]:
        """What the tool that must not be called twice has done."""
        return _lines(self.folder / "bookings.txt")

    @property
    def deployments(self) -> list[str]:
        """The messages whose command the hook host has carried out."""
        return _lines(self.folder / "deployments.txt")

    @property
    def killable(self) -> dict[str, list[Killable]]:
        """All that a fault can be done to, by its kind."""
        found: dict[str, list[Killable]] = {
            "gateway": list(self.gateways),
            "engine": list(self.engines),
            "hook host": [self.hooks],
            "Redis": [self.valkey] if self.valkey else [],
            "PostgreSQL": [self.postgres] if self.postgres else [],
            "Temporal": [self.temporal],
        }
        return {kind: members for kind, members in found.items() if members}

    async def token(self, participant: str, kind: ParticipantKind = "human") -> str:
        """Make a bearer token for somebody."""
        async with open_store(self.settings) as store:
            return (await create_token(store, participant, kind)).token

    async def address(self, participant: str, gateway: int | None = None) -> Address:
        """Let somebody in: at the balancer, or at one gateway."""
        url = self.url if gateway is None else f"http://127.0.0.1:{self.gateway_ports[gateway]}"
        return Address(url, token=await self.token(participant))

    async def rows(self, statement: str) -> list[Any]:
        """Ask the store's database."""
        return await execute(self.settings, statement)


@asynccontextmanager
async def running_cluster(
    folder: Path,
    *,
    gateways: int = 2,
    engines: int = 2,
    store: StoreKind = "postgres",
    bus: BusKind = "valkey",
    port: int = 0,
    script: Path = SCRIPT,
) -> AsyncGenerator[Cluster]:
    """Run a deployment while the block runs.

    Args:
        folder: An empty folder for all that it keeps.
        gateways: How many gateways.
        engines: How many engines.
        store: `sqlite` is a file that all processes share.
        bus: With `none`, gateways ask the store twice a second.
        port: Of the balancer; 0 picks one.
        script: What the scripted model says.
    """
    async with AsyncExitStack() as stack:
        postgres = await stack.enter_async_context(running_postgres()) if store == "postgres" else None
        valkey = await stack.enter_async_context(running_valkey(folder)) if bus == "valkey" else None
        http = await stack.enter_async_context(httpx.AsyncClient(timeout=PROBE_TIMEOUT_S))
        workshop = _Workshop(folder, http, stack)
        temporal = await workshop.temporal()
        hooks, host = await workshop.hooks()
        url = f"http://127.0.0.1:{port or free_port()}"
        common: Sections = {
            "temporal": {"mode": "remote", "address": workshop.temporal_address},
            "store": {"sqlite_path": str(folder / "store.db")},
            "redis": {"url": valkey.url} if valkey else {},
            "model": {"provider": "scripted"},
            "scripted": {"script": str(script), "models": ["scripted", "big"]},
            "hooks": {"probe_interval": 1.0},
            "auth": {"mode": "tokens"},
            "server": {"base_url": url, "rate_limit_per_minute": 1_000_000, "max_streams": 2_000},
        }
        if postgres is not None:
            common["store"]["url"] = await new_database(postgres.url())
        plugin = engines_plugin(folder, host, folder / "bookings.txt")
        settings = Settings.model_validate({**common, "plugins": [str(plugin)]})
        await migrate_store(settings)
        members = {
            **{f"engine{n}": workshop.engine(n, common, plugin) for n in range(engines)},
            **{f"gateway{n}": workshop.gateway(n, common) for n in range(gateways)},
        }
        for member in members.values():
            await member.start()
        own = [member for name, member in members.items() if name.startswith("gateway")]
        balancer = Balancer(workshop.gateway_ports)
        await stack.enter_async_context(balancer.running(int(url.rpartition(":")[2])))
        yield Cluster(
            url,
            folder,
            settings,
            balancer,
            tuple(own),
            tuple(member for member in members.values() if member not in own),
            hooks,
            temporal,
            postgres,
            valkey,
            tuple(workshop.gateway_ports),
            workshop.configs,
        )


class _Workshop:
    """Makes the members of a cluster; all end with the stack."""

    def __init__(self, folder: Path, http: httpx.AsyncClient, stack: AsyncExitStack) -> None:
        self.temporal_address = ""
        self.gateway_ports: list[int] = []
        self.configs: dict[str, Path] = {}
        self._folder = folder
        self._http = http
        self._stack = stack
        scripts = sysconfig.get_path("scripts")
        self._env = {
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "TINY_HARNESS_SEAL_KEYS": make_key(),
            secret_variable(KEY_ID): SECRET,
        }
        # What addresses and keys the one who runs this has for a harness of their own does not belong here.
        for name in ("TINY_HARNESS_STORE_URL", "TINY_HARNESS_REDIS_URL", "TINY_HARNESS_TOKEN"):
            self._env[name] = ""

    async def temporal(self) -> Member:
        port = free_port()
        self.temporal_address = f"127.0.0.1:{port}"
        command = (
            *(find_binary(), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "error"),
            *("--port", str(port), "--metrics-port", str(free_port())),
            *("--db-filename", self._folder / "temporal.db"),
            *("--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL"),
        )
        return await self._started(Member("temporal", command, self._folder, self._temporal_answers))

    async def _temporal_answers(self) -> bool:
        try:
            client = await Client.connect(self.temporal_address)
            return await client.service_client.check_health()
        except RuntimeError:
            return False

    async def hooks(self) -> tuple[Member, str]:
        plugin = hosted_plugin(self._folder, self._folder / "deployments.txt")
        bind = f"127.0.0.1:{free_port()}"
        command = (*_python("hooks"), "--plugin", plugin, "--bind", bind, "--key", KEY_ID)
        member = self._member("hooks", command, f"http://{bind}/healthz")
        return await self._started(member), f"http://{bind}/rpc"

    def gateway(self, number: int, common: Sections) -> Member:
        port = free_port()
        self.gateway_ports.append(port)
        bind = f"127.0.0.1:{port}"
        config = self._config(f"gateway{number}", {**common, "server": {**common["server"], "bind": bind}})
        command = (*_python("gateway"), "--config", config)
        return self._member(f"gateway{number}", command, f"http://{bind}/readyz")

    def engine(self, number: int, common: Sections, plugin: Path) -> Member:
        bind = f"127.0.0.1:{free_port()}"
        config = self._config(f"engine{number}", {**common, "o11y": {"admin_bind": bind}}, plugin)
        command = (*_python("engine"), "--config", config)
        return self._member(f"engine{number}", command, f"http://{bind}/readyz")

    def _member(self, name: str, command: tuple[str | Path, ...], page: str) -> Member:
        async def probe() -> bool:
            try:
                return (await self._http.get(page)).status_code == 200
            except httpx.HTTPError:
                return False

        member = Member(name, command, self._folder, probe, self._env)
        self._stack.push_async_callback(member.kill)
        return member

    async def _started(self, member: Member) -> Member:
        self._stack.push_async_callback(member.kill)
        await member.start()
        return member

    def _config(self, name: str, sections: Mapping[str, Mapping[str, Any]], *plugins: Path) -> Path:
        # JSON's way to write text, numbers and lists is TOML's too.
        lines = [f"plugins = {json.dumps([str(plugin) for plugin in plugins])}"]
        for section, keys in sections.items():
            lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
        self.configs[name] = self._folder / f"{name}.toml"
        self.configs[name].write_text("\n".join(lines) + "\n")
        return self.configs[name]


def _python(service: str) -> tuple[str, str, str]:
    return sys.executable, "-m", f"tiny_harness_{service}"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
