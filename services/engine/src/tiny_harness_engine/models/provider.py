"""Opens the provider that the settings choose, and imports no other."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Final

from tiny_harness.settings import Settings
from tiny_harness_engine.models.port import ModelProvider

PROVIDERS: Final = {
    "scripted": "tiny_harness_engine.models.scripted:open_scripted",
    "openai": "tiny_harness_engine.models.openai_client:open_openai",
    "anthropic": "tiny_harness_engine.models.anthropic_client:open_anthropic",
}
"""Name in `[model] provider` → function of (settings, environ) that opens it without I/O to the provider."""


@asynccontextmanager
async def open_provider(settings: Settings, environ: Mapping[str, str] | None = None) -> AsyncGenerator[ModelProvider]:
    """Open the provider of `[model] provider`; closes it at the end.

    Args:
        settings: Which provider, and its own section.
        environ: Where secrets are read; default: the process's environment.

    Raises:
        ConfigError: The key is missing, or the script or an address cannot be used.
    """
    module, _, function = PROVIDERS[settings.model.provider].partition(":")
    provider: ModelProvider = getattr(import_module(module), function)(
        settings, os.environ if environ is None else environ
    )
    try:
        yield provider
    finally:
        await provider.close()
