"""`tiny-harness store migrate`: a deployment's one job."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.postgres import new_database
from tests.stores import execute
from tiny_harness.cli.main import main
from tiny_harness.settings import Settings


def test_the_job_says_what_it_did_and_a_service_what_it_lacks(
    postgres_template: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = asyncio.run(new_database(postgres_template))
    config = tmp_path / "c.toml"
    config.write_text(f"model.provider = 'scripted'\nstore.url = '{url}'\n")
    assert run(config, "tokens", "list") == 2
    assert "store migrate" in capsys.readouterr().err
    assert run(config, "store", "migrate") == 0
    assert capsys.readouterr().out.startswith("made the tables, at revision ")
    assert run(config, "store", "migrate", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["before"] == said["after"]
    assert said["copy"] is None
    assert run(config, "tokens", "list") == 0
    asyncio.run(execute(Settings.load(config), "update alembic_version set version_num = '9001'"))
    assert run(config, "store", "migrate") == 2
    assert "9001" in capsys.readouterr().err


def test_a_file_is_migrated_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f"model.provider = 'scripted'\nstore.sqlite_path = '{tmp_path / 's.db'}'\n")
    assert run(config, "store", "migrate") == 0
    assert run(config, "store", "migrate") == 0
    assert "nothing was done" in capsys.readouterr().out


def test_a_server_is_backed_up_by_its_own_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.toml"
    config.write_text("model.provider = 'scripted'\nstore.url = 'postgresql://db/harness'\n")
    assert run(config, "backup", str(tmp_path / "copy")) == 2
    assert "pg_dump" in capsys.readouterr().err


def run(config: Path, *arguments: str) -> int:
    return main([*arguments, "--config", str(config)])


def test_a_task_that_nobody_knows_cannot_be_repaired_and_all_can_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f"model.provider = 'scripted'\nstore.sqlite_path = '{tmp_path / 's.db'}'\n")
    assert run(config, "tasks", "repair") == 2
    capsys.readouterr()
    assert run(config, "tasks", "repair", "nope") == 1
    assert "nope" in capsys.readouterr().err
    assert run(config, "tasks", "repair", "--all", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"told": 0}
