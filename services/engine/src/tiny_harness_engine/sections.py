"""The words that plugins add to every prompt, in the order of loading."""

from collections.abc import Iterable

from tiny_harness.plugins import Plugin
from tiny_harness_engine.core.prompt import Section


def prompt_sections(plugins: Iterable[Plugin]) -> tuple[Section, ...]:
    """List each plugin's system prompt and then its prompts, by name."""
    found: list[Section] = []
    for plugin in plugins:
        if plugin.system_prompt is not None:
            found.append(Section(plugin.name, plugin.system_prompt))
        found += [Section(f"{plugin.name}: {name}", text) for name, text in sorted(plugin.prompts.items())]
    return tuple(found)
