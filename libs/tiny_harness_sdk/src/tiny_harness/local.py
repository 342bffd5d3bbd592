"""Local mode: gateway, engine, store, bus and Temporal in one process, the same code as the services (R11).

One harness per home. Whoever comes second attaches to the first one's Unix socket.
"""

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tiny_harness.address import Address
from tiny_harness.background import in_background
from tiny_harness.errors import AlreadyRunning, HarnessError
from tiny_harness.host import SOCKET_URL, announced, find_host, read_token, run_folder, socket_path
from tiny_harness.locks import hold_lock
from tiny_harness.settings import Settings

if TYPE_CHECKING:
    from tiny_harness.commands import CommandRegistry
    from tiny_harness.plugins import Plugin

SERVICES: Final = {
    "gateway": "tiny_harness_gateway.app:create_app",
    "worker": "tiny_harness_engine.worker:open_worker",
}
"""Where the services are. Names, so that the SDK imports none of them."""

ATTACH_TIMEOUT_S: Final = 45.0
"""How long to wait for a harness that is just starting, or stopping, in another process: longer than either may take
(`temporal.connect.START_TIMEOUT_S`, `web_server.DRAIN_TIMEOUT_S`)."""
ATTACH_INTERVAL_S: Final = 0.1
TAKE_OVER_INTERVAL_S: Final = 1.0
WORKER_GRACE: Final = timedelta(seconds=20)
"""How long an engine of its own goes on with what it does when it is told to stop: most answers of a model are whole
then. Less than the 30 s that whoever stops it waits before it kills."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningHarness:
    """A harness that this process hosts."""

    address: Address
    """For clients on this machine: the Unix socket."""
    url: str | None
    """For clients on TCP, if it listens there."""
    token: str | None
    """What clients on TCP show, in auth mode `local`."""


@asynccontextmanager
async def running_harness(
    settings: Settings,
    *,
    home: Path | None = None,
    serve_tcp: bool = False,
    worker: bool = True,
    commands: "CommandRegistry | None" = None,
    plugins: "Sequence[Plugin]" = (),
    builtin_commands: bool = True,
    services: Mapping[str, str] = SERVICES,
) -> AsyncGenerator[RunningHarness]:
    """Host a harness while the block runs.

    Args:
        settings: How. Touches no folder but those that they and `home` name.
        home: Where it is found by others and keeps its token; without one it is private to this block.
        serve_tcp: Also listen on `[server] bind`.
        worker: Run the engine here too.
        commands: Commands of the program's own.
        plugins: Plugins of the program's own, beside the folders that the settings name.
        builtin_commands: Whether `/status` and the other built-in commands are there.
        services: Where gateway and engine are.

    Raises:
        AlreadyRunning: Another process hosts this home, or uses its Temporal database.
        ConfigError: Something in the settings cannot be had; nothing is left running.
        RegistryError: Two commands or hooks of the program's own want one name.
    """
    async with AsyncExitStack() as stack:
        stack.callback(os.umask, os.umask(0o077))
        run_dir = run_folder(home) if home else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="th-")))
        stack.enter_context(hold_lock(run_dir / "harness.lock", str(home or run_dir)))
        token = read_token(home or run_dir) if settings.auth.mode == "local" else None
        from tiny_harness.web_server import bind_tcp, serving

        tcp = bind_tcp(settings.server.host, settings.server.port) if serve_tcp else None
        if tcp is not None:
            stack.callback(tcp.close)
            settings = _with_port(settings, tcp.getsockname()[1])
        engine = {"commands": commands, "plugins": plugins, "builtin_commands": builtin_commands} if worker else None
        app = await _compose(settings, stack, run_dir, token, engine, services)
        path = stack.enter_context(socket_path(run_dir))
        await stack.enter_async_context(serving(app, path, tcp))
        url = settings.server.url if tcp is not None else None
        stack.enter_context(announced(run_dir, path, url))
        yield RunningHarness(Address(SOCKET_URL, socket=path), url, token)


@asynccontextmanager
async def running_worker(
    settings: Settings,
    *,
    commands: "CommandRegistry | None" = None,
    plugins: "Sequence[Plugin]" = (),
    builtin_commands: bool = True,
    services: Mapping[str, str] = SERVICES,
) -> AsyncGenerator[None]:
    """Run an engine alone while the block runs, on the Temporal server that the settings name. Needs no home.

    At the end of the block it takes no more work, and what runs has `WORKER_GRACE` to finish; the rest goes to another
    engine. See `running_harness` for the arguments.

    Raises:
        ConfigError: The settings name no Temporal server, or something in them cannot be had.
        Unavailable: Temporal or the store does not answer.
    """
    from tiny_harness.admin import Admin
    from tiny_harness.bus import open_bus
    from tiny_harness.readiness import Readiness
    from tiny_harness.store import open_store
    from tiny_harness.temporal import connect_temporal
    from tiny_harness.web_server import bind_tcp, serving

    async with AsyncExitStack() as stack:
        bind = settings.o11y.admin
        tcp = stack.enter_context(bind_tcp(*bind, "o11y.admin_bind")) if bind else None
        open_worker = _load(services["worker"])
        store = await stack.enter_async_context(open_store(settings))
        bus = await stack.enter_async_context(open_bus(settings))
        temporal = await connect_temporal(settings)
        admin = Admin(Readiness(store, temporal, bus))
        await stack.enter_async_context(serving(admin.app, None, tcp))
        engine = {"commands": commands, "plugins": plugins, "builtin_commands": builtin_commands}
        worker = open_worker(settings, store=store, bus=bus, temporal=temporal, grace=WORKER_GRACE, **engine)
        await stack.enter_async_context(worker)
        stack.enter_context(admin.working())
        yield


@asynccontextmanager
async def open_harness(settings: Settings, *, home: Path | None, take_over: bool = False) -> AsyncGenerator[Address]:
    """Attach to the live harness of a home, or host one while the block runs.

    Args:
        settings: How to host it.
        home: Where it is; without one it is private to this block.
        take_over: Host it as soon as the one that we attached to has gone: clients find it at the same address.

    Raises:
        AlreadyRunning: Somebody holds the home and does not answer.
        ConfigError: See `running_harness`.
    """
    async with AsyncExitStack() as stack:
        address = await _attach_or_host(settings, home, stack)
        if take_over and home is not None:
            await stack.enter_async_context(in_background(_take_over(settings, home)))
        yield address


async def _take_over(settings: Settings, home: Path) -> None:
    """Host a home whenever nobody does, until cancelled."""
    while True:
        await asyncio.sleep(TAKE_OVER_INTERVAL_S)
        if find_host(home) is not None:
            continue
        try:
            async with running_harness(settings, home=home):
                await asyncio.Event().wait()
        except HarnessError as error:
            log.info("the harness could not be taken over, trying again: %s", error)


async def _attach_or_host(settings: Settings, home: Path | None, stack: AsyncExitStack) -> Address:
    deadline = asyncio.get_running_loop().time() + ATTACH_TIMEOUT_S
    while True:
        found = find_host(home) if home else None
        if found is not None:
            return found
        try:
            return (await stack.enter_async_context(running_harness(settings, home=home))).address
        except AlreadyRunning:
            # It is starting and will answer soon, or stopping and will let go.
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(ATTACH_INTERVAL_S)


async def _compose(
    settings: Settings,
    stack: AsyncExitStack,
    run_dir: Path,
    token: str | None,
    engine: Mapping[str, Any] | None,
    services: Mapping[str, str],
) -> Any:
    """Open everything behind the gateway's app; the engine, too, if there is something to give it.

    Temporal boots while the slow imports run.
    """
    from tiny_harness.bus import LocalBus, open_bus
    from tiny_harness.store import open_store
    from tiny_harness.temporal import open_temporal

    pending = await stack.enter_async_context(open_temporal(settings, run_dir))
    create_app = _load(services["gateway"])
    open_worker = _load(services["worker"])
    store = await stack.enter_async_context(open_store(settings))
    bus = await stack.enter_async_context(open_bus(settings))
    temporal = await pending.ready()
    if engine is not None:
        await stack.enter_async_context(open_worker(settings, store=store, bus=bus, temporal=temporal, **engine))
    hears_engine = engine is not None or not isinstance(bus, LocalBus)
    return create_app(settings, store=store, bus=bus, temporal=temporal, token=token, hears_engine=hears_engine)


def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def _with_port(settings: Settings, port: int) -> Settings:
    """Put the port that was picked where clients read it."""
    if settings.server.port:
        return settings
    bind = f"{settings.server.bind.rpartition(':')[0]}:{port}"
    return settings.model_copy(update={"server": settings.server.model_copy(update={"bind": bind})})
