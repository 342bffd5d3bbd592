"""The documents are true where a test can tell."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tiny_harness.errors import HarnessError
from tiny_harness.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def tree(root: type[HarnessError] = HarnessError) -> list[type[HarnessError]]:
    return [root, *(found for child in root.__subclasses__() for found in tree(child))]


def test_the_readme_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_error_is_in_the_catalogue() -> None:
    listed = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "errors.md").read_text(), flags=re.MULTILINE))
    assert listed == {kind.code for kind in tree()}


def test_every_configuration_key_is_listed() -> None:
    text = (ROOT / "docs" / "capabilities" / "configuration.md").read_text()
    for section, field in Settings.model_fields.items():
        assert f"`[{section}]`" in text
        for key in field.annotation.model_fields:  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
            assert f"`{key}`" in text or key == "embedded", f"{section}.{key}"


def test_the_example_of_the_readme_runs() -> None:
    command = [sys.executable, str(ROOT / "docs" / "examples" / "embed.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "Ada" in done.stdout
    assert done.stdout.splitlines()[-1] == "COMPLETED"
