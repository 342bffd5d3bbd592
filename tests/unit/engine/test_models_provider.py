"""Which provider is opened, and what that imports."""

import subprocess
import sys

import pytest

from tiny_harness.errors import ConfigError
from tiny_harness.settings import Settings
from tiny_harness_engine.models import open_provider
from tiny_harness_engine.models.openai_client import OpenAIModel
from tiny_harness_engine.models.scripted import ScriptedModel

KEY = {"OPENAI_API_KEY": "sk-test"}


def _settings(**openai: object) -> Settings:
    return Settings.model_validate({"openai": openai})


async def test_the_settings_choose_the_provider() -> None:
    async with open_provider(Settings.model_validate({"model": {"provider": "scripted"}}), {}) as scripted:
        assert isinstance(scripted, ScriptedModel)
    async with open_provider(_settings(), KEY) as openai:
        assert isinstance(openai, OpenAIModel)


async def test_a_missing_key_is_refused_and_the_keyless_ways_are_named() -> None:
    with pytest.raises(ConfigError) as refused:
        async with open_provider(_settings(), {"OPENAI_API_KEY": " "}):
            pass
    assert all(word in refused.value.reason for word in ("OPENAI_API_KEY", "base_url", "demo"))


async def test_a_base_url_needs_no_key() -> None:
    async with open_provider(_settings(base_url="http://127.0.0.1:9/v1"), {}) as provider:
        assert isinstance(provider, OpenAIModel)


@pytest.mark.parametrize("url", ["127.0.0.1:9", "ftp://x/", "http://", "http://x:port/", "http://[", "http://x/\n"])
async def test_a_bad_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        async with open_provider(_settings(base_url=url), KEY):
            pass
    assert refused.value.key == "openai.base_url"


@pytest.mark.parametrize("key", ["sk-\nx", "sk-ключ"])
async def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        async with open_provider(_settings(), {"OPENAI_API_KEY": key}):
            pass
    assert key not in str(refused.value)


def test_opening_a_provider_imports_no_sdk() -> None:
    program = """
import asyncio, sys
from tiny_harness.settings import Settings
from tiny_harness_engine.models import open_provider
async def main():
    async with open_provider(Settings(), {"OPENAI_API_KEY": "k"}):
        pass
asyncio.run(main())
sys.exit(any(name in sys.modules for name in ("openai", "httpx2")))
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
