"""The command line does nothing that a program cannot do (R11.4): the table in docs/capabilities/sdk.md is true."""

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final

import pytest

import tiny_harness
from tiny_harness.cli import main

ROOT: Final = Path(__file__).parents[2]
CLI: Final = Path(main.__file__).parent
PAGE: Final = ROOT / "docs" / "capabilities" / "sdk.md"
HEADING: Final = "## The command line, from Python"

FROM_ELSEWHERE: Final = frozenset({"tiny_harness_gateway", "tiny_harness_engine", "tiny_harness_hooks"})


def commands(parser: argparse.ArgumentParser, words: str = "tiny-harness") -> Iterator[str]:
    """Name every command and sub-command that the parser takes."""
    actions = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]  # pyright: ignore[reportPrivateUsage] - argparse has no public way
    if not actions or words == "tiny-harness":
        yield words
    for action in actions:
        for name, sub in action.choices.items():
            yield from commands(sub, f"{words} {name}")


def table() -> dict[str, list[str]]:
    """Read the page's table: the names behind each command."""
    section = PAGE.read_text().partition(HEADING)[2].partition("\n## ")[0]
    rows = [line.strip("| ").split("|") for line in section.splitlines() if line.startswith("| `")]
    quoted = [[cell.split("`")[1::2] for cell in row] for row in rows]
    return {command: names for ([command], names) in quoted}


def resolve(name: str) -> Any:
    """Find a public name: one of `tiny_harness`'s own with what hangs on it, or `tiny_harness.module:name`."""
    if ":" in name:
        return resolve_name(name)
    first = name.partition(".")[0]
    assert first in tiny_harness.__all__, f"{first} is not public"
    return resolve_name(f"tiny_harness:{name}")


TABLE: Final = table()


def test_every_command_is_in_the_table_and_no_other() -> None:
    assert sorted(TABLE) == sorted(commands(main.build_parser()))


@pytest.mark.parametrize("command", TABLE)
def test_what_a_command_does_can_be_called(command: str) -> None:
    assert TABLE[command]
    for name in TABLE[command]:
        assert not any(part.startswith("_") for part in name.replace(":", ".").split("."))
        found = resolve(name)
        assert callable(found)
        assert found.__doc__, f"{name} does not say what it is for"


@pytest.mark.parametrize("command", TABLE)
def test_a_command_calls_what_the_table_says(command: str) -> None:
    words = command.split()[1:]
    files = [CLI / "start.py", CLI / f"{words[0] if words else 'tui'}.py", *CLI.glob(f"{'_'.join(words)}.py")]
    used = {word for file in files for word in identifiers(ast.parse(file.read_text()))}
    for name in TABLE[command]:
        assert name.replace(":", ".").rpartition(".")[2] in used, f"{command} does not use {name}"


def test_the_command_line_reaches_for_nothing_private_and_for_no_service() -> None:
    for file in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                module, names = node.module or "", [each.name for each in node.names]
                ours = module.startswith("tiny_harness") and module != "tiny_harness._version"
                assert module.partition(".")[0] not in FROM_ELSEWHERE, file.name
                private = [each for each in (*module.split("."), *names) if ours and each.startswith("_")]
                assert private == [], f"{file.name} imports {private} from {module}"


def test_the_parser_is_walked_to_its_leaves() -> None:
    found = set(commands(main.build_parser()))
    assert {"tiny-harness", "tiny-harness tui", "tiny-harness tasks purge", "tiny-harness hooks check"} <= found
    assert "tiny-harness tasks" not in found, "a command that needs a verb is none by itself"


def identifiers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case _:
                pass
