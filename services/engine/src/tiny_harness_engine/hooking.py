"""Composes the hooks of an engine: executors here, clients of those elsewhere, redaction and health."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from tiny_harness.background import in_background
from tiny_harness.hooks import Hooks
from tiny_harness.hooks.health import HookHealth
from tiny_harness.hooks.remote import RemoteExecutors
from tiny_harness.hooks.trust import trust_of
from tiny_harness.redact import Redactor, configured_secrets
from tiny_harness.settings import Settings
from tiny_harness_engine.registry import Registry


@asynccontextmanager
async def open_hooks(
    settings: Settings, registry: Registry, environ: Mapping[str, str] = os.environ
) -> AsyncGenerator[tuple[Hooks, HookHealth]]:
    """Open the clients of remote executors, and look after them while the block runs.

    Raises:
        RegistryError: A plugin made in code names an address that is not allowed.
        ConfigError: `[hooks] ca_file` cannot be used.
    """
    redactor = Redactor(configured_secrets(environ, settings.secret_variables))
    trust = trust_of(settings.hooks.ca_file)
    async with RemoteExecutors(deadline_s=settings.hooks.deadline, trust=trust) as clients:
        executors = [*registry.hooks, *(clients.executor(declaration) for declaration in registry.remote)]
        health = HookHealth(executors, redact=redactor.by_value_and_shape)
        hooks = Hooks(executors, redact=redactor.by_value_and_shape, mask=redactor.by_value, watch=health.watch)
        async with in_background(health.probe(clients.look, settings.hooks.probe_interval)):
            yield hooks, health
