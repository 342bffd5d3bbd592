"""Which provider is opened, and what that imports."""

import subprocess
import sys

import pytest

from tiny_harness.errors import ConfigError
from tiny_harness.settings import Settings
from tiny_harness_engine.models import open_provider
from tiny_harness_engine.models.hosted import HostedModel
from tiny_harness_engine.models.scripted import ScriptedModel

VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@pytest.fixture(params=list(VARIABLES))
def provider(request: pytest.FixtureRequest) -> str:
    """Each provider that is asked over the network."""
    return request.param


def _settings(provider: str, **section: object) -> Settings:
    return Settings.model_validate({"model": {"provider": provider}, provider: section})


def _key(provider: str) -> dict[str, str]:
    return {VARIABLES[provider]: "sk-test"}


async def test_the_settings_choose_the_provider(provider: str) -> None:
    async with open_provider(_settings("scripted"), {}) as scripted:
        assert isinstance(scripted, ScriptedModel)
    async with open_provider(_settings(provider), _key(provider)) as hosted:
        assert isinstance(hosted, HostedModel)


def test_the_choice_of_models_is_the_providers() -> None:
    for provider in (*VARIABLES, "scripted"):
        settings = _settings(provider, model="mine", effort="low", context_window_tokens=7)
        assert (settings.choice.model, settings.choice.effort) == ("mine", "low")
        assert settings.choice.context_window_tokens == 7


async def test_a_missing_key_is_refused_and_the_keyless_ways_are_named(provider: str) -> None:
    others = {variable: "k" for name, variable in VARIABLES.items() if name != provider}
    with pytest.raises(ConfigError) as refused:
        async with open_provider(_settings(provider), {VARIABLES[provider]: " ", **others}):
            pass
    assert all(word in refused.value.reason for word in (VARIABLES[provider], "base_url", f"[{provider}]", "demo"))


async def test_a_base_url_needs_no_key(provider: str) -> None:
    async with open_provider(_settings(provider, base_url="http://127.0.0.1:9/v1"), {}) as hosted:
        assert isinstance(hosted, HostedModel)


@pytest.mark.parametrize("url", ["127.0.0.1:9", "ftp://x/", "http://", "http://x:port/", "http://[", "http://x/\n"])
async def test_a_bad_address_is_refused(provider: str, url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        async with open_provider(_settings(provider, base_url=url), _key(provider)):
            pass
    assert refused.value.key == f"{provider}.base_url"


@pytest.mark.parametrize("key", ["sk-\nx", "sk-ключ"])
async def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(provider: str, key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        async with open_provider(_settings(provider), {VARIABLES[provider]: key}):
            pass
    assert key not in str(refused.value)


def test_opening_a_provider_imports_no_sdk(provider: str) -> None:
    program = f"""
import asyncio, sys
from tiny_harness.settings import Settings
from tiny_harness_engine.models import open_provider
async def main():
    settings = Settings.model_validate({{"model": {{"provider": "{provider}"}}}})
    async with open_provider(settings, {{"{VARIABLES[provider]}": "k"}}):
        pass
asyncio.run(main())
sys.exit(any(name in sys.modules for name in ("openai", "anthropic", "httpx2")))
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
