"""The documents are true where a test can tell."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from tiny_harness.access import Act, may
from tiny_harness.commands.builtin import BUILTIN_COMMANDS, ROLES
from tiny_harness.errors import HarnessError
from tiny_harness.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read(page: str) -> str:
    return (ROOT / page).read_text()


def tree(root: type[HarnessError] = HarnessError) -> list[type[HarnessError]]:
    return [root, *(found for child in root.__subclasses__() for found in tree(child))]


def test_the_readme_has_the_two_commands() -> None:
    text = read("README.md")
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_error_is_in_the_catalogue() -> None:
    listed = set(re.findall(r"^\| `(\w+)`", read("docs/errors.md"), flags=re.MULTILINE))
    assert listed == {kind.code for kind in tree()}


def test_every_refusal_of_the_gateway_by_http_status_is_in_the_catalogue() -> None:
    sources = [path.read_text() for path in sorted((ROOT / "services/gateway/src").rglob("*.py"))]
    written = {found for text in sources for found in re.findall(r"plain_response\(\s*(\d{3}), \"(\w+)\"", text)}
    listed = set(re.findall(r"^\| (\d{3}) \| `(\w+)`", read("docs/errors.md"), flags=re.MULTILINE))
    assert listed == written - {("500", "internal")}  # that one is an error of the tree


def test_every_configuration_key_is_listed_with_its_default() -> None:
    page = read("docs/capabilities/configuration.md")
    listed: dict[str, dict[str, str]] = {}
    head = r"^### (?:`\[([\w.]+)\]`|Above all sections)\n"
    for section, table in re.findall(head + r"(.*?)(?=^##|\Z)", page, flags=re.MULTILINE | re.DOTALL):
        cells = re.findall(r"^\| `(\w+)` \|([^|]*)\|", table, flags=re.MULTILINE)
        listed[section] = {key: default.strip(" `") for key, default in cells}
    assert listed == defaults(Settings(), "")


def defaults(holder: BaseModel, prefix: str) -> dict[str, dict[str, str]]:
    """Give the defaults by section, as TOML writes them; empty when unset."""
    found: dict[str, dict[str, str]] = {}
    for name, value in holder:
        if isinstance(value, BaseModel):
            found |= defaults(value, f"{prefix}.{name}".lstrip("."))
        else:
            text = str(value) if isinstance(value, Path) else value
            found.setdefault(prefix, {})[name] = "" if text is None else json.dumps(text)
    return found


def test_the_conversation_in_the_readme_is_what_the_demo_prints() -> None:
    command = [sys.executable, "-m", "tiny_harness", "demo", "--plain"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    shown = next(block for block in re.findall(r"```\n(.*?)```", read("README.md"), re.DOTALL) if "you    " in block)
    assert trimmed(shown) in trimmed(done.stdout)


def trimmed(text: str) -> str:
    """Cut blanks at the ends of lines, which an editor would cut too, and make all task ids one."""
    lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return re.sub(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<task>", lines)


def test_the_example_in_the_readme_is_cut_from_the_one_that_runs() -> None:
    [shown] = re.findall(r"```python\n(.*?)```", read("README.md"), re.DOTALL)
    whole = [line.strip() for line in read("docs/examples/embed.py").splitlines()]
    assert [line for line in shown.splitlines() if line.strip() not in whole] == []


def run_example(name: str) -> list[str]:
    """Run an example as its reader does; the lines that it prints."""
    command = [sys.executable, str(ROOT / "docs" / "examples" / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_example_of_the_readme_runs() -> None:
    lines = run_example("embed.py")
    assert "Ada" in lines[0]
    assert lines[-1] == "COMPLETED"


def test_the_example_with_a_command_and_a_policy_runs() -> None:
    assert run_example("embed_commands.py") == ["That makes 42.", "refused: that project has no name here"]


def test_every_built_in_command_is_listed_with_its_argument_and_its_roles() -> None:
    page = read("docs/capabilities/commands.md").replace("\\|", "|")
    listed = re.findall(r"^\| `/([^`]+)` \| ([^|]+) \|", page, flags=re.MULTILINE)
    assert listed == [(f"{spec.name} {spec.argument_hint}".strip(), who_may(spec.act)) for spec in BUILTIN_COMMANDS]


def who_may(act: Act) -> str:
    """Name the roles that allow an act, as the page does."""
    roles = [role for role in ROLES if may(role, act)]
    return "everybody on the task" if roles == list(ROLES) else ", ".join(roles)


def test_every_page_is_reached_from_the_readme() -> None:
    decisions = ROOT / "docs" / "adr"  # the README names their folder
    assert [page for page in PAGES if page.parent != decisions and page not in reached(ROOT / "README.md")] == []


def reached(start: Path) -> set[Path]:
    """Follow the links between pages."""
    found, waiting = {start}, [start]
    while waiting:
        page = waiting.pop()
        for target in re.findall(r"\]\(([^)#\s]+\.md)", page.read_text()):
            to = (page.parent / target).resolve()
            if "://" not in target and to not in found:
                found.add(to)
                waiting.append(to)
    return found
