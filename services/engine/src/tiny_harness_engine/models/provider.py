"""Opens the provider that the settings choose, and imports no other."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Final

from tiny_harness.settings import Settings
from tiny_harness_engine.models.port import ModelProvider

PROVIDERS: Final = {
    "scripted": "tiny_harness_engine.models.scripted:open_scripted",
    "openai": "tiny_harness_engine.models.openai_client:open_openai",
}


@asynccontextmanager
async def open_provider(settings: Settings) -> AsyncGenerator[ModelProvider]:
    """Open the provider of `[model] provider`; closes it at the end."""
    module, _, function = PROVIDERS[settings.model.provider].partition(":")
    provider: ModelProvider = getattr(import_module(module), function)(settings)
    try:
        yield provider
    finally:
        await provider.close()
