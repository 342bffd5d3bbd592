"""The scripted model: a provider for demos and tests that needs no key and no network.

What it answers depends on the request alone, so it is the same after a restart and on every worker.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tiny_harness.errors import ModelError
from tiny_harness.settings import Settings
from tiny_harness_engine.models.port import ModelReply, ModelRequest, ModelUsage, ToolCall
from tiny_harness_engine.models.reason import GARBAGE
from tiny_harness_engine.models.script import DEMO, Rule, Script, Streaming, When, read_script

PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")

Facts = Mapping[str, str]
"""What a template can name."""


def open_scripted(settings: Settings, environ: Mapping[str, str]) -> "ScriptedModel":
    """Read the script of `[scripted] script`, else the demo's.

    Raises:
        ConfigError: The script cannot be used.
    """
    del environ  # it has no secrets
    path = (settings.scripted.script or DEMO).expanduser()
    return ScriptedModel(read_script(path), path.name)


class ScriptedModel:
    """Answers by the first rule that fits."""

    def __init__(self, script: Script, name: str) -> None:
        self._script = script
        self._name = name

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """Answer a request as the script says."""
        rule, facts = self._choose(request)
        await asyncio.sleep(rule.delay_s)
        if rule.hang:
            await asyncio.Event().wait()
        if rule.fail is not None and (rule.fail.times is None or request.attempt <= rule.fail.times):
            raise ModelError(rule.fail.reason, rule.fail.transient)
        text = _fill(rule.reply or "", facts)
        await _stream(text, rule.stream or self._script.stream, on_text)
        if rule.garbage:
            raise ModelError(GARBAGE, transient=True)
        return ModelReply(text, tuple(_tool_calls(rule, request)), _usage(request, text))

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _choose(self, request: ModelRequest) -> tuple[Rule, Facts]:
        for rule in self._script.rules:
            facts = _match(rule, request)
            if facts is not None:
                return rule, facts
        raise ModelError(f"no rule of the script {self._name} fits the message")


def _match(rule: Rule, request: ModelRequest) -> Facts | None:
    """Say what the rule's template can name, or None when a condition does not hold."""
    said = [message for message in request.messages if message.role == "user"]
    last_text, last_id = (said[-1].text, said[-1].message_id) if said else ("", "")
    if not _numbers_hold(rule.when, request) or not last_id.startswith(rule.when.message_id or ""):
        return None
    remembered = _groups(rule.remember, (message.text for message in reversed(said[:-1])))
    found = _groups(rule.when.text, (last_text,))
    if remembered is None or found is None:
        return None
    numbers = {"turn": request.turn, "attempt": request.attempt, "messages": len(request.messages)}
    facts = {name: str(number) for name, number in numbers.items()} | {"text": last_text, "message_id": last_id}
    return facts | remembered | found


def _numbers_hold(when: When, request: ModelRequest) -> bool:
    pairs = ((when.turn, request.turn), (when.step, request.step), (when.attempt, request.attempt))
    return all(wanted is None or wanted == actual for wanted, actual in pairs)


def _groups(pattern: re.Pattern[str] | None, texts: Iterator[str] | tuple[str, ...]) -> dict[str, str] | None:
    """Give the groups of the first text that matches, by number and name; None when none does."""
    if pattern is None:
        return {}
    match = next(filter(None, map(pattern.search, texts)), None)
    if match is None:
        return None
    numbered = {str(number): group for number, group in enumerate(match.groups(""), start=1)}
    return numbered | match.groupdict("")


def _fill(template: str, facts: Facts) -> str:
    """Put facts into a template; a name that is unknown stays as it is, since Markdown may hold braces."""
    return PLACEHOLDER.sub(lambda match: facts.get(match[1], match[0]), template)


async def _stream(text: str, how: Streaming, on_text: Callable[[str], None]) -> None:
    for start in range(0, len(text), how.chunk_chars):
        if start > 0:
            await asyncio.sleep(how.chunk_delay_s)
        on_text(text[start : start + how.chunk_chars])


def _tool_calls(rule: Rule, request: ModelRequest) -> Iterator[ToolCall]:
    for number, call in enumerate(rule.tool_calls, start=1):
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        yield ToolCall(f"call-{request.turn}-{request.step}-{number}", call.name, arguments)


def _usage(request: ModelRequest, text: str) -> ModelUsage:
    """Count words as tokens: a number that a test can foretell."""
    return ModelUsage(sum(len(message.text.split()) for message in request.messages), len(text.split()))
