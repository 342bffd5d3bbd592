"""Anthropic, or any server that speaks its API at `[anthropic] base_url`. Importing this does not import the SDK."""

from collections.abc import Mapping
from functools import partial

from tiny_harness.settings import Settings
from tiny_harness_engine.models import anthropic_messages
from tiny_harness_engine.models.hosted import HostedModel
from tiny_harness_engine.models.key import read_key
from tiny_harness_engine.models.reading import Api

SDK = "tiny_harness_engine.models.anthropic_sdk:AnthropicSession"


def open_anthropic(settings: Settings, environ: Mapping[str, str]) -> HostedModel:
    """Check what can be checked without the network.

    Raises:
        ConfigError: No key, and no `base_url` of a server that may need none; or a bad key or address.
    """
    section = settings.anthropic
    api = Api("messages", partial(anthropic_messages.body, section), anthropic_messages.MessagesReading)
    return HostedModel(section, read_key(section, "anthropic", environ), api, SDK)
