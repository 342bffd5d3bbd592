"""Only the chosen provider's SDK is ever imported."""

import subprocess
import sys
from typing import Any

import pytest

SDKS = {"openai", "anthropic"}


@pytest.mark.parametrize("provider", sorted(SDKS))
def test_the_first_question_imports_the_chosen_sdk_and_no_other(servers: dict[str, str], provider: str) -> None:
    program = f"""
import asyncio, sys
from tiny_harness.settings import Settings
from tiny_harness_engine.models import ModelMessage, ModelRequest, open_provider
async def main():
    section = {{"base_url": "{servers[provider]}{"/v1" if provider == "openai" else ""}"}}
    settings = Settings.model_validate({{"model": {{"provider": "{provider}"}}, "{provider}": section}})
    async with open_provider(settings, {{}}) as model:
        print(sorted({SDKS} & set(sys.modules)))
        await model.reply(ModelRequest(1, 1, 1, [ModelMessage("user", "hi")]), lambda _: None)
        print(sorted({SDKS} & set(sys.modules)))
asyncio.run(main())
"""
    done: Any = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[]", f"['{provider}']"]
