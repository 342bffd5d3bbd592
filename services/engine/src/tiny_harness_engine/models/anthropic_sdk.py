"""The only file that imports the SDK of Anthropic: 3.3 s, so it is imported when the first question is asked."""

import anthropic

from tiny_harness.settings import AnthropicSettings
from tiny_harness_engine.models.sdk_session import SdkSession


class AnthropicSession(SdkSession):
    """Anthropic's client. It is always given a key, so that it looks for none in places that we do not know."""

    def __init__(self, settings: AnthropicSettings, key: str | None) -> None:
        super().__init__(anthropic, anthropic.AsyncAnthropic, settings, key)
