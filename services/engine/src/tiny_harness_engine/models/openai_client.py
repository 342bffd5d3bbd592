"""OpenAI, or any server that speaks its API at `[openai] base_url`. Importing this does not import the SDK."""

from collections.abc import Mapping
from functools import partial

from tiny_harness.settings import Settings
from tiny_harness_engine.models import openai_chat, openai_responses
from tiny_harness_engine.models.hosted import HostedModel
from tiny_harness_engine.models.key import read_key
from tiny_harness_engine.models.reading import Api

SDK = "tiny_harness_engine.models.openai_sdk:OpenAISession"


def open_openai(settings: Settings, environ: Mapping[str, str]) -> HostedModel:
    """Check what can be checked without the network.

    Raises:
        ConfigError: No key, and no `base_url` of a server that may need none; or a bad key or address.
    """
    section = settings.openai
    apis = {
        "responses": Api("responses", partial(openai_responses.body, section), openai_responses.ResponsesReading),
        "chat_completions": Api("chat.completions", partial(openai_chat.body, section), openai_chat.ChatReading),
    }
    return HostedModel(section, read_key(section, "openai", environ), apis[section.api], SDK)
