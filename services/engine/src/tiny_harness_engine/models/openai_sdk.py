"""The only file that imports the SDK of OpenAI: 1.6 s, so it is imported when the first question is asked."""

import openai

from tiny_harness.settings import OpenAISettings
from tiny_harness_engine.models.sdk_session import SdkSession


class OpenAISession(SdkSession):
    """OpenAI's client."""

    def __init__(self, settings: OpenAISettings, key: str | None) -> None:
        super().__init__(openai, openai.AsyncOpenAI, settings, key)
