"""What the files under `deploy/` say, for tests: the services of the Compose file, the stages of the container file."""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
OURS: Final = ("gateway", "engine", "hooks", "temporal")
"""Targets of the container file that become images."""

Json = dict[str, Any]


@cache
def compose() -> Json:
    """Read the Compose file, anchors resolved."""
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def services() -> dict[str, Json]:
    """All services of the Compose file."""
    return compose()["services"]


@dataclass
class Stage:
    """One `FROM` of the container file, with its instructions in order."""

    base: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def all(self, word: str) -> list[str]:
        """What stands behind each instruction of a kind."""
        return [rest for kind, rest in self.instructions if kind == word]

    def last(self, word: str) -> str | None:
        """What stands behind the last instruction of a kind, if there is one."""
        return next(reversed(self.all(word)), None)


@cache
def stages() -> dict[str, Stage]:
    """Take the container file apart."""
    text = (DEPLOY / "Containerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    found: dict[str, Stage] = {}
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found[name] = Stage(base, name)
        elif found:  # what stands before the first is for the first
            found[next(reversed(found))].instructions.append((word, rest.strip()))
    return found


def inherited(target: str) -> list[Stage]:
    """A target's stage and those that it stands on, the lowest first."""
    stage = stages()[target]
    return [*(inherited(stage.base) if stage.base in stages() else []), stage]


def instruction(target: str, word: str) -> str:
    """What holds for a target: the last instruction of a kind, its own or an inherited one."""
    return next(found for stage in reversed(inherited(target)) if (found := stage.last(word)) is not None)


def listed(target: str, word: str) -> list[str]:
    """The same, of an instruction that holds a JSON list; `HEALTHCHECK` has one behind its options."""
    return json.loads(instruction(target, word).partition("CMD ")[2] or instruction(target, word))


def environment(target: str) -> dict[str, str]:
    """The variables that an image sets."""
    lines = [line for stage in inherited(target) for line in stage.all("ENV")]
    return dict(re.findall(r"(\w+)=(\S+)", " ".join(lines)))


def left_out(target: str) -> set[str]:
    """The distributions that an image's Python does not have."""
    copied = re.search(r"--from=(\S+) /opt/venv", " ".join(stages()[target].all("COPY")))
    assert copied, target
    runs = [line for stage in inherited(copied[1]) for line in stage.all("RUN")]
    found = [names for line in runs for names in re.findall(r"uninstall --yes ([^&]+)", line)]
    return {name for names in found for name in names.split()}
