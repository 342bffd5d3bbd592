"""All skills of an engine, and what a model is told of them (DESIGN: agent core; Agent Skills: progressive disclosure).

Skills are as trusted as the plugins that bring them: their instructions are instructions. They read files of their own
folders only, and run nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from tiny_harness.errors import RegistryError
from tiny_harness.plugins.skills import Skill, read_file
from tiny_harness_engine.records import CallResult

MAX_FILE_CHARS: Final = 60_000
"""What a model is shown of one file."""
_SHOWN_NAMES: Final = 20


class SkillLibrary:
    """Skills by name. Names are unique: `resolve` saw to it."""

    def __init__(self, skills: Iterable[Skill]) -> None:
        self._skills: Final = {skill.name: skill for skill in sorted(skills, key=lambda skill: skill.name)}

    def __len__(self) -> int:
        return len(self._skills)

    def catalogue_text(self) -> str:
        """List names and descriptions, for every prompt; empty without skills. The same as long as the plugins are."""
        return "\n".join(f"- {skill.name}: {skill.description}" for skill in self._skills.values())

    def bodies(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Give the instructions of the skills that a task has loaded, for its prompt: (name, Markdown), in their order.

        One whose plugin is gone is left out.
        """
        return tuple((name, self._skills[name].body) for name in names if name in self._skills)

    def load_skill(self, name: str) -> CallResult:
        """Answer a call of `load_skill`: the instructions themselves stand in the task's prompt from then on."""
        skill = self._skills.get(name)
        if skill is None:
            return self._unknown(name)
        lines = [f"The skill {name} is loaded: your instructions hold it from now on."]
        if skill.compatibility:
            lines.append(f"It needs: {skill.compatibility}")
        if skill.files:
            lines.append("Its files, for read_skill_file:")
            lines += [f"- {file}" for file in skill.files]
        return CallResult(text="\n".join(lines))

    def read_skill_file(self, name: str, path: str) -> CallResult:
        """Answer a call of `read_skill_file`. Reads from disk: not for an event loop."""
        skill = self._skills.get(name)
        if skill is None:
            return self._unknown(name)
        try:
            text = read_file(skill, path)
        except RegistryError as error:
            return CallResult(text=f"read_skill_file was not carried out: {error}", is_error=True)
        if len(text) > MAX_FILE_CHARS:
            left_out = len(text) - MAX_FILE_CHARS
            return CallResult(text=f"{text[:MAX_FILE_CHARS]}\n\n[{left_out} more characters are left out]")
        return CallResult(text=text)

    def _unknown(self, name: str) -> CallResult:
        names = [*self._skills][:_SHOWN_NAMES]
        return CallResult(text=f"There is no skill {name!r}. There are: {', '.join(names) or 'none'}", is_error=True)
