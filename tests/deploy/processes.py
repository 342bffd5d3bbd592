"""The services of the Compose file as plain processes of this machine, as close to their containers as that gets.

Each has the command of its image and of the Compose file, its environment and no other, a read-only root, and no module
of a distribution that its image leaves out. In its copy of the configuration, addresses are those of neighbours here.
"""

import asyncio
import importlib.metadata
import os
import subprocess
import sys
import sysconfig
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.cluster.member import Member, Probe
from tests.deploy.files import DEPLOY, Json, environment, left_out, listed, services
from tests.deploy.test_compose import make_secrets, variables
from tests.ports import free_port
from tests.postgres import new_database, running_postgres
from tests.tools import go_without, require_tool
from tests.valkey import running_valkey

PATIENCE_S: Final = 60

READ_ONLY: Final = """
set -e
mount --make-rprivate /
while read -r _ place kind _; do
  case $kind in proc|sysfs|devtmpfs|devpts|mqueue|cgroup*) continue ;; esac
  mount -o remount,bind,ro "$place" 2>/dev/null || true
done </proc/self/mounts
if (: >"$1/written") 2>/dev/null; then echo "the root can be written to" >&2; exit 1; fi
shift
exec "$@"
"""

BLOCKED: Final = """
import sys


class _LeftOut:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"{{name}} is not in this image", name=name)


sys.meta_path.insert(0, _LeftOut())
"""


@dataclass
class Deployment:
    """All services of the Compose file, running."""

    url: str
    """Of the proxy."""
    folder: Path
    gateways: list[Member]
    engines: list[Member]
    hooks: Member
    operator: "Started"

    def operate(self, *words: str) -> str:
        """Run a command of the operator; gives what it prints."""
        command = [*self.operator.command[: -len(services()["migrate"]["command"])], *words]
        done = subprocess.run(
            _read_only(command, self.folder),
            cwd="/",
            env=dict(self.operator.env),
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        return done.stdout


@dataclass
class Started:
    """How a service is started here."""

    command: list[str]
    env: dict[str, str]
    health: list[str]


@dataclass
class Host:
    """This machine in place of a container engine: what stands where in containers, and where that is here."""

    folder: Path
    secrets: Path
    addresses: dict[str, str] = field(default_factory=dict[str, str])
    """What files and variables say, and what holds here."""

    def start_of(self, name: str, target: str, own: Mapping[str, str]) -> Started:
        """Work out how a service of the Compose file is started; `own` are the addresses that it alone has."""
        service = services()[name]
        places = {**self.addresses, **own}
        command = [*service.get("entrypoint", listed(target, "ENTRYPOINT")), *service.get("command", ())]
        env = {name: _replaced(value, places) for name, value in variables(self.secrets, service).items()}
        here = self._mounted(service, target, places)
        return Started(
            [_replaced(word, here | places) for word in _with_python(command)],
            {**self._image(target), **env},
            [_replaced(word, here | places) for word in _with_python(listed(target, "HEALTHCHECK"))],
        )

    def _image(self, target: str) -> dict[str, str]:
        """The environment of an image; its PATH leads to the same programs here."""
        scripts = sysconfig.get_path("scripts")
        path = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(self._blocking(target))}
        return {**environment(target), **path, "TMPDIR": str(self.folder)}

    def _blocking(self, target: str) -> Path:
        folder = self.folder / f"without-{target}"
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(BLOCKED.format(names=_modules(left_out(target))))
        return folder

    def _mounted(self, service: Json, target: str, places: Mapping[str, str]) -> dict[str, str]:
        """Where files are that a container has elsewhere: copies, with the addresses of here."""
        found = {"/run/secrets": str(self.secrets), "/opt/probe.py": str(DEPLOY / "probe.py")}
        for volume in service.get("volumes", ()):
            source, there = volume.split(":")[:2]
            copy = self.folder / f"{len(list(self.folder.iterdir()))}-{Path(source).name}"
            copy.write_text(_replaced((DEPLOY / source).read_text(), found | self._plugins() | places))
            found[there] = str(copy)
        return found | ({"/opt/plugins": str(DEPLOY / "plugins" / target)} if target == "hooks" else self._plugins())

    def _plugins(self) -> dict[str, str]:
        """The engine's plugins, which name the hook host."""
        folder = self.folder / "plugins"
        for source in (DEPLOY / "plugins" / "engine").rglob("*.json"):
            copy = folder / source.relative_to(DEPLOY / "plugins" / "engine")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(_replaced(source.read_text(), self.addresses))
        return {"/opt/plugins": str(folder)}


@asynccontextmanager
async def running_deployment(folder: Path) -> AsyncGenerator[Deployment]:
    """Run what the Compose file describes while the block runs: two gateways, two engines, a hook host, a proxy."""
    host = Host(folder, make_secrets(folder / "secrets"))
    async with AsyncExitStack() as stack:
        postgres = await stack.enter_async_context(running_postgres())
        database = (await new_database(postgres.url())).rpartition("@")[2]
        redis = (host.secrets / "redis.conf").read_text().split()
        valkey = await stack.enter_async_context(running_valkey(folder, f"--{redis[0]}", redis[1]))
        host.addresses |= {"postgres:5432/harness": database, "redis:6379": f"127.0.0.1:{valkey.port}"}
        host.addresses["temporal:7233"] = f"127.0.0.1:{await _start_temporal(folder, stack)}"
        operator = host.start_of("migrate", "gateway", {})
        await _run(operator, folder)

        async def run(name: str, service: str, target: str, port: int, listens: str) -> Member:
            here = f"127.0.0.1:{port}"
            started = host.start_of(service, target, {f"0.0.0.0:{listens}": here, f"127.0.0.1:{listens}": here})
            member = Member(name, _read_only(started.command, folder), folder, _healthy(started), started.env)
            stack.push_async_callback(member.kill)
            await member.start()
            return member

        ports = [free_port() for _ in range(6)]
        host.addresses["hooks:8090"] = f"127.0.0.1:{ports[0]}"
        url = f"http://127.0.0.1:{ports[5]}"
        host.addresses["http://localhost:8080"] = url
        hooks, *members = await asyncio.gather(
            run("hooks", "hooks", "hooks", ports[0], "8090"),
            *(run(f"engine-{n}", "engine", "engine", ports[n], "8081") for n in (1, 2)),
            *(run(f"gateway-{n}", f"gateway-{n}", "gateway", ports[2 + n], "8080") for n in (1, 2)),
        )
        await _start_proxy(folder, stack, {f"gateway-{n}:8080": f"127.0.0.1:{ports[2 + n]}" for n in (1, 2)}, ports[5])
        yield Deployment(url, folder, members[2:], members[:2], hooks, operator)


async def _start_temporal(folder: Path, stack: AsyncExitStack) -> int:
    """Start what the image `temporal` starts, on a port of its own; its database goes into the folder."""
    port = free_port()
    here = {"0.0.0.0": "127.0.0.1", "/var/lib/temporal": str(folder), "127.0.0.1:7233": f"127.0.0.1:{port}"}
    words = [*listed("temporal", "ENTRYPOINT"), *listed("temporal", "CMD")]
    command = [_replaced(word, here) for word in words]
    program = require_tool("temporal")
    ports = ["--port", str(port), "--metrics-port", str(free_port())]
    env = {"HOME": str(folder), "PATH": f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}"}
    health = [_replaced(word, here) for word in listed("temporal", "HEALTHCHECK")]
    started = Started([program, *command[1:], *ports], env, [program, *health[1:]])
    member = Member("temporal", started.command, folder, _healthy(started), env)
    stack.push_async_callback(member.kill)
    await member.start()
    return port


async def _start_proxy(folder: Path, stack: AsyncExitStack, gateways: Mapping[str, str], port: int) -> None:
    """Start the reverse proxy as the Compose file does; it listens on loopback here."""
    program = require_tool("caddy")
    text = (DEPLOY / "Caddyfile").read_text()
    file = folder / "Caddyfile"
    file.write_text(_replaced(text, {**gateways, "\n:8080 {": f"\nhttp://:{port} {{\n\tbind 127.0.0.1"}))
    words = [_replaced(word, {"/etc/caddy/Caddyfile": str(file)}) for word in services()["proxy"]["command"]]
    env = {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    probe = [sys.executable, "-I", str(DEPLOY / "probe.py"), f"http://127.0.0.1:{port}/healthz"]
    member = Member("proxy", [program, *words[1:]], folder, _healthy(Started([], env, probe)), env)
    stack.push_async_callback(member.kill)
    await member.start()


async def _run(started: Started, folder: Path) -> None:
    """Run a job to its end."""
    process = await asyncio.create_subprocess_exec(*_read_only(started.command, folder), env=started.env, cwd="/")
    async with asyncio.timeout(PATIENCE_S):
        assert await process.wait() == 0


def _healthy(started: Started) -> Probe:
    """Ask as the container engine would: by the image's health check."""

    async def ask() -> bool:
        process = await asyncio.create_subprocess_exec(
            *started.health, env=started.env, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        return await process.wait() == 0

    return ask


def _read_only(command: list[str], folder: Path) -> list[str]:
    """Let a command run where it cannot write a file anywhere."""
    unshare = [require_tool("unshare"), "--map-root-user", "--mount"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        go_without("this system lets nobody make a mount namespace: allow unprivileged user namespaces")
    return [*unshare, "sh", "-c", READ_ONLY, "sh", str(folder), *command]


def _with_python(command: list[str]) -> list[str]:
    return [sys.executable if word == "python" else word for word in command]


def _replaced(text: str, places: Mapping[str, str]) -> str:
    """Put in the addresses of here, the longest first: one may be the beginning of another."""
    for there in sorted(places, key=len, reverse=True):
        text = text.replace(there, places[there])
    return text


def _modules(distributions: set[str]) -> set[str]:
    """The modules that distributions bring, and nobody else does."""
    known = importlib.metadata.packages_distributions()
    normal = {name.lower().replace("_", "-") for name in distributions}
    return {
        module
        for module, brought in known.items()
        if {name.lower().replace("_", "-") for name in brought} <= normal and not module.startswith("_")
    }
