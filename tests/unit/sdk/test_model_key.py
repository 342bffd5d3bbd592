"""What a provider needs before anything starts."""

import pytest

from tiny_harness.config_file import require_model_key
from tiny_harness.errors import ConfigError
from tiny_harness.settings import Settings


def _settings(provider: str, **section: str) -> Settings:
    return Settings.model_validate({"model": {"provider": provider}, provider: section})


@pytest.mark.parametrize(
    ("provider", "variable", "vendor"),
    [("openai", "OPENAI_API_KEY", "OpenAI"), ("anthropic", "ANTHROPIC_API_KEY", "Anthropic")],
)
def test_a_missing_key_is_told_with_the_chosen_providers_ways_out(provider: str, variable: str, vendor: str) -> None:
    others = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    del others[variable]
    with pytest.raises(ConfigError) as refused:
        require_model_key(_settings(provider), others, "the-file")
    for words in (variable, "tiny-harness demo", "base_url", f"[{provider}]", "the-file", vendor):
        assert words in str(refused.value)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_key_or_a_server_of_your_own_is_enough(provider: str) -> None:
    require_model_key(_settings(provider), {f"{provider.upper()}_API_KEY": "k"})
    require_model_key(_settings(provider, base_url="http://127.0.0.1:9"), {})


def test_a_script_needs_no_key() -> None:
    require_model_key(_settings("scripted"), {})
