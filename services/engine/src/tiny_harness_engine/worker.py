"""Composes the engine: workflows, activities, hooks, the model and housekeeping around one Temporal worker."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from temporalio.client import Client
from temporalio.worker import Worker

from tiny_harness.background import in_background
from tiny_harness.bus import Bus
from tiny_harness.commands import CommandRegistry
from tiny_harness.hooks import Hooks
from tiny_harness.hooks.health import HookHealth
from tiny_harness.plugins import Plugin, log_reports
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.activities.asking import Asking
from tiny_harness_engine.activities.attempts import Attempts
from tiny_harness_engine.activities.command_chain import CommandChain
from tiny_harness_engine.activities.commit import CommitActivities
from tiny_harness_engine.activities.committer import Committer
from tiny_harness_engine.activities.compacting import Compacting
from tiny_harness_engine.activities.completion import Completion
from tiny_harness_engine.activities.gate import Gate
from tiny_harness_engine.activities.heartbeat import HeartbeatActivity
from tiny_harness_engine.activities.run_command import RunCommandActivity
from tiny_harness_engine.activities.run_tool import RunToolActivity
from tiny_harness_engine.activities.settling import Settling
from tiny_harness_engine.activities.spending import Spending
from tiny_harness_engine.activities.step import StepActivity
from tiny_harness_engine.activities.stop_children import StopChildrenActivity
from tiny_harness_engine.activities.supervising import SupervisingActivities
from tiny_harness_engine.activities.take import TakeActivity
from tiny_harness_engine.activities.vetting import Vetting
from tiny_harness_engine.agents.worker import open_agents
from tiny_harness_engine.calls import HEARTBEAT_THROTTLE
from tiny_harness_engine.hooking import open_hooks
from tiny_harness_engine.housekeeping import Housekeeping
from tiny_harness_engine.models import ModelProvider
from tiny_harness_engine.models.provider import open_provider
from tiny_harness_engine.observers import ObserverDispatcher
from tiny_harness_engine.pacemaker import Pacemaker
from tiny_harness_engine.pushes import open_pushes
from tiny_harness_engine.registry import Registry, build_registry
from tiny_harness_engine.reporting import Reporting
from tiny_harness_engine.runs import Runs
from tiny_harness_engine.servers import open_servers
from tiny_harness_engine.skills import SkillLibrary
from tiny_harness_engine.supervisors import Supervisors
from tiny_harness_engine.toolbox import Toolbox
from tiny_harness_engine.watchdog import Watchdog
from tiny_harness_engine.workflows.heartbeat import HeartbeatWorkflow
from tiny_harness_engine.workflows.supervisor import SupervisorWorkflow
from tiny_harness_engine.workflows.task import TaskWorkflow

GRACE: Final = timedelta(seconds=3)
"""On one machine, where somebody waits for the process to end."""
CACHED_WORKFLOWS: Final = 500
CONCURRENT_STEPS: Final = 100


Provider = Callable[[Settings], AbstractAsyncContextManager[ModelProvider]]


@asynccontextmanager
async def open_worker(
    settings: Settings,
    *,
    store: Store,
    bus: Bus,
    temporal: Client,
    provider: Provider = open_provider,
    commands: CommandRegistry | None = None,
    plugins: Sequence[Plugin] = (),
    builtin_commands: bool = True,
    grace: timedelta = GRACE,
) -> AsyncGenerator[None]:
    """Run the engine while the block runs.

    Args:
        settings: How, and which plugin folders.
        store: Where tasks live.
        bus: Where events are published.
        temporal: The server that runs the workflows.
        provider: Opens the model.
        commands: Commands registered from code.
        plugins: Plugins made in code.
        builtin_commands: Whether the built-in commands are there.
        grace: How long running activities may go on at the end; one that is cut runs again elsewhere.

    Raises:
        ConfigError: The model cannot be had.
        RegistryError: Two entries from code want one name.
    """
    queue = settings.temporal.task_queue
    registry = build_registry(settings, commands=commands, plugins=plugins, builtin_commands=builtin_commands)
    log_reports(registry.reports)
    runs = Runs(temporal, queue)
    async with (
        provider(settings) as model,
        open_servers(settings, registry.servers) as hub,
        open_hooks(settings, registry) as (hooks, health),
        open_agents(settings, store=store, temporal=temporal, runs=runs) as agents,
        open_pushes(settings, store=store, temporal=temporal) as pushes,
    ):
        tools = Toolbox(
            hub, SkillLibrary(registry.skills), {name: agent.description for name, agent in settings.agents.items()}
        )
        observers = ObserverDispatcher(store, hooks)
        supervisors = Supervisors(settings, temporal)
        committer = Committer(store, bus, runs, agents.stand_ins, supervisors, (observers.notify, pushes.notify))
        supervising = SupervisingActivities(store, runs, supervisors)
        children = StopChildrenActivity(store, runs, agents.stand_ins)
        reporting = Reporting(settings, store, registry, health, tools.health)
        await reporting.publish()
        worker = Worker(
            temporal,
            task_queue=queue,
            workflows=[TaskWorkflow, SupervisorWorkflow, HeartbeatWorkflow, *pushes.workflows, *agents.workflows],
            activities=[
                *_activities(settings, bus, model, registry, hooks, health, committer, tools),
                children.stop_children,
                supervising.give_notice,
                supervising.tell_supervisor,
                HeartbeatActivity(settings, store).beat,
                *pushes.activities,
                *agents.activities,
            ],
            max_cached_workflows=CACHED_WORKFLOWS,
            max_concurrent_activities=CONCURRENT_STEPS,
            max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
            graceful_shutdown_timeout=grace,
        )
        housekeeping = Housekeeping(committer, temporal, runs)
        async with (
            worker,
            in_background(housekeeping.run()),
            in_background(observers.run()),
            in_background(reporting.run()),
            in_background(Pacemaker(settings, temporal).run()),
            Watchdog().watching(),
        ):
            yield


def _activities(
    settings: Settings,
    bus: Bus,
    model: ModelProvider,
    registry: Registry,
    hooks: Hooks,
    health: HookHealth,
    committer: Committer,
    tools: Toolbox,
) -> list[Callable[..., Any]]:
    store = committer.store
    gate = Gate(store, hooks)
    compacting = Compacting(settings, store, hooks, model)
    asking = Asking(settings, hooks, model, tools, registry.sections, compacting)
    completion = Completion(store, hooks)
    chain = CommandChain(committer, registry, hooks, settings, health.snapshot, tools.health)
    commits = CommitActivities(committer)
    return [
        TakeActivity(Settling(committer), hooks, chain, completion).take,
        commits.commit,
        commits.load,
        StepActivity(
            *(settings, store, bus, gate, asking, tools),
            *(Vetting(hooks), Spending(settings, store), Attempts(store, hooks)),
        ).step,
        RunToolActivity(store, hooks, tools).run_tool,
        RunCommandActivity(store, chain, gate).run_command,
        completion.judge_elsewhere,
    ]
