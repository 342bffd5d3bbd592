"""The scripted model: a provider for demos and tests that needs no key and no network.

What it answers depends on the request alone, so it is the same after a restart and on every worker.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from tiny_harness.errors import ModelError
from tiny_harness.settings import Settings
from tiny_harness_engine.models.port import ModelMessage, ModelReply, ModelRequest, ModelUsage, ToolCall
from tiny_harness_engine.models.reason import GARBAGE
from tiny_harness_engine.models.script import DEMO, Result, Rule, Script, Streaming, When, read_script

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
    return ScriptedModel(read_script(path), path.name, settings.scripted.model)


class ScriptedModel:
    """Answers by the first rule that fits."""

    def __init__(self, script: Script, name: str, model: str) -> None:
        """Take a script.

        Args:
            script: The rules.
            name: The script's, for people.
            model: The model's, where a task chose none.
        """
        self._script = script
        self._name = name
        self._model = model

    @property
    def looks_at_tools(self) -> bool:
        """Whether a rule depends on what is offered."""
        return any(rule.when.offers is not None for rule in self._script.rules)

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
        return ModelReply(text, tuple(_tool_calls(rule, request, facts)), _usage(rule, request, text))

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _choose(self, request: ModelRequest) -> tuple[Rule, Facts]:
        model = request.model or self._model
        for rule in self._script.rules:
            facts = _match(rule, request, model)
            if facts is not None:
                return rule, facts
        raise ModelError(f"no rule of the script {self._name} fits the message")


def _match(rule: Rule, request: ModelRequest, model: str) -> Facts | None:
    """Say what the rule's template can name, or None when a condition does not hold."""
    when = rule.when
    said = [message for message in request.messages if message.role == "user"]
    last_text, last_id = (said[-1].text, said[-1].message_id) if said else ("", "")
    if not _words_hold(when, request, model) or not last_id.startswith(when.message_id or ""):
        return None
    found = (
        _groups(rule.remember, (message.text for message in reversed(said[:-1]))),
        _groups(when.system, (request.system,)),
        _result(when.result, request.messages),
        _groups(when.text, (last_text,)),
    )
    facts = _facts(request) | {"text": last_text, "message_id": last_id, "model": model}
    for groups in found:
        if groups is None:
            return None
        facts |= groups
    return facts


def _words_hold(when: When, request: ModelRequest, model: str) -> bool:
    pairs = (
        (when.turn, request.turn),
        (when.step, request.step),
        (when.attempt, request.attempt),
        (when.model, model),
    )
    offered = {tool.name for tool in request.tools}
    return all(wanted in (None, actual) for wanted, actual in pairs) and (when.offers is None or when.offers in offered)


def _facts(request: ModelRequest) -> dict[str, str]:
    numbers = {"turn": request.turn, "step": request.step, "attempt": request.attempt}
    return {name: str(number) for name, number in (numbers | {"messages": len(request.messages)}).items()}


def _result(wanted: Result | None, messages: Iterable[ModelMessage]) -> dict[str, str] | None:
    """Give the groups of the first of the newest results that fits, and its text; None when none does."""
    if wanted is None:
        return {}
    for name, message in _newest_results(messages):
        if wanted.name in (None, name) and wanted.is_error in (None, message.is_error):
            groups = _groups(wanted.text, (message.text,))
            if groups is not None:
                return {"result": message.text} | groups
    return None


def _newest_results(messages: Iterable[ModelMessage]) -> list[tuple[str, ModelMessage]]:
    """Give the results that came since the model last said something, each with its tool."""
    names: dict[str, str] = {}
    newest: list[tuple[str, ModelMessage]] = []
    for message in messages:
        if message.role == "assistant":
            names = {call.call_id: call.name for call in message.tool_calls}
            newest = []
        elif message.role == "tool":
            newest.append((names.get(message.call_id, ""), message))
    return newest


def _groups(pattern: re.Pattern[str] | None, texts: Iterable[str]) -> dict[str, str] | None:
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


def _filled(value: Any, facts: Facts) -> Any:
    """Fill every text of an argument."""
    match value:
        case str():
            return _fill(value, facts)
        case dict():
            return {name: _filled(inner, facts) for name, inner in value.items()}
        case list():
            return [_filled(inner, facts) for inner in value]
        case _:
            return value


async def _stream(text: str, how: Streaming, on_text: Callable[[str], None]) -> None:
    for start in range(0, len(text), how.chunk_chars):
        if start > 0:
            await asyncio.sleep(how.chunk_delay_s)
        on_text(text[start : start + how.chunk_chars])


def _tool_calls(rule: Rule, request: ModelRequest, facts: Facts) -> Iterator[ToolCall]:
    for number, call in enumerate(rule.tool_calls, start=1):
        filled = _filled(call.arguments, facts)
        arguments = filled if isinstance(filled, str) else json.dumps(filled, ensure_ascii=False)
        yield ToolCall(f"call-{request.turn}-{request.step}-{number}", call.name, arguments)


def _usage(rule: Rule, request: ModelRequest, text: str) -> ModelUsage:
    """Count words as tokens, unless the rule says a number: one that a test can foretell in either case."""
    if rule.usage is not None:
        return ModelUsage(rule.usage.input_tokens, rule.usage.output_tokens, rule.usage.cached_tokens)
    heard = (request.system, *(message.text for message in request.messages))
    return ModelUsage(sum(len(words.split()) for words in heard), len(text.split()))
