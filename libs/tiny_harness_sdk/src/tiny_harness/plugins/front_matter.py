"""The YAML head of a Markdown file, read as what skills need: text, lists and maps of text, and nothing clever.

Only importing this imports the YAML library.
"""

from typing import Any, Final

import yaml
from yaml.nodes import MappingNode

MAX_HEAD_CHARS: Final = 16_000
FENCE: Final = "---"


class _Reader(yaml.BaseLoader):
    """Takes every scalar as the text that it is (`1.0` stays `1.0`); knows no tags; refuses what only confuses."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):  # a few of them can stand for gigabytes
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        if any(not isinstance(key, str) for key in keys):
            raise yaml.YAMLError("a key must be text")
        if twins := {key for key in keys if keys.count(key) > 1}:
            raise yaml.YAMLError(f"the key {min(twins)!r} is there twice")
        return super().construct_mapping(node, deep)


def split(text: str) -> tuple[dict[str, Any], str]:
    """Take a file apart.

    Returns:
        Its head, and the Markdown below it without blank lines around.

    Raises:
        ValueError: It has no head, or one that cannot be read.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        raise ValueError(f"must begin with a line {FENCE}")
    end = next((place for place, line in enumerate(lines) if place and line.rstrip() == FENCE), None)
    if end is None:
        raise ValueError(f"has no line {FENCE} that ends its head")
    return _read("\n".join(lines[1:end])), "\n".join(lines[end + 1 :]).strip()


def _read(head: str) -> dict[str, Any]:
    if len(head) > MAX_HEAD_CHARS:
        raise ValueError(f"has a head of more than {MAX_HEAD_CHARS} characters")
    try:
        found = yaml.load(head, Loader=_Reader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"has a head that is not valid YAML: {_why(error)}") from error
    if not isinstance(found, dict):
        raise ValueError("has a head that is no map of fields")
    return found


def _why(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem} in its line {error.problem_mark.line + 1}"
    return str(error)
