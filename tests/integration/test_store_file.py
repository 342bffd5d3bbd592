"""The store's file: who may read it, what it is migrated from, and how it is copied."""

import sqlite3
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, inspect

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.errors import ConfigError
from tiny_harness.hooks import Verdict
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness.store import Commit, NewEvent, Store, open_store
from tiny_harness.store.migrate import MIGRATIONS
from tiny_harness.store.schema import metadata
from tiny_harness.store.sqlite import open_engine

REFUSED = Verdict("policies/no-secrets", "command.invoked.pre", "refused", "no", 12)


@pytest.fixture
async def store(settings: Settings) -> AsyncGenerator[Store]:
    async with open_store(settings) as opened:
        yield opened


def render(seq: int, at: datetime, _words: str) -> str:
    return f'{{"seq":{seq},"at":"{at.isoformat()}"}}'


def commit(cause: str, head: int) -> Commit:
    snapshot = TaskSnapshot(task_id="t1", context_id="c", state=TaskState.WORKING)
    return Commit("t1", cause, head, [NewEvent("input", render)], snapshot, "")


async def seqs(store: Store) -> list[tuple[int, str]]:
    return [(event.seq, event.cause) for event in await store.events("t1", 0, 100)]


async def test_a_backup_is_a_store_of_its_own_and_never_overwrites(store: Store, tmp_path: Path) -> None:
    await store.commit(commit("m:1", 0))
    copy = tmp_path / "copy.db"
    await store.backup(copy)
    assert copy.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(copy) as connection:
        assert connection.execute("select task_id from tasks").fetchall() == [("t1",)]
    connection.close()
    with pytest.raises(FileExistsError):
        await store.backup(copy)


async def test_two_processes_worth_of_stores_share_one_file(store: Store, settings: Settings) -> None:
    async with open_store(settings) as other:
        await store.commit(commit("m:1", 0))
        await other.commit(commit("m:2", 1))
        assert await seqs(store) == await seqs(other) == [(1, "m:1"), (2, "m:2")]


async def test_the_migrations_make_exactly_the_tables_of_the_schema(store: Store, settings: Settings) -> None:
    engines = [create_engine(f"sqlite:///{settings.store.sqlite_path}"), create_engine("sqlite://")]
    metadata.create_all(engines[1])
    shapes: list[dict[str, object]] = []
    for engine in engines:
        seen = inspect(engine)
        shapes.append(
            {
                name: (
                    [(c["name"], str(c["type"]), c["nullable"], c["primary_key"]) for c in seen.get_columns(name)],
                    sorted((i["name"] or "", tuple(i["column_names"])) for i in seen.get_indexes(name)),
                    seen.get_foreign_keys(name)[0]["options"] if seen.get_foreign_keys(name) else None,
                )
                for name in seen.get_table_names()
                if name != "alembic_version"
            }
        )
        engine.dispose()
    assert shapes[0] == shapes[1]


async def test_a_store_of_a_newer_version_is_refused(settings: Settings) -> None:
    async with open_store(settings):
        pass
    connection = sqlite3.connect(settings.store.sqlite_path)
    connection.execute("update alembic_version set version_num = '9999'")
    connection.commit()
    connection.close()
    with pytest.raises(ConfigError, match="newer"):
        async with open_store(settings):
            pass


async def test_a_store_file_that_is_a_link_is_refused(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "target.db").touch()
    settings.store.sqlite_path.symlink_to(tmp_path / "target.db")
    with pytest.raises(ConfigError):
        async with open_store(settings):
            pass


async def test_the_store_file_is_for_its_owner_only(store: Store, settings: Settings) -> None:
    await store.commit(commit("m:1", 0))
    for path in settings.store.sqlite_path.parent.glob("store.db*"):
        assert path.stat().st_mode & 0o077 == 0, path


async def test_a_file_that_is_no_database_is_refused(settings: Settings) -> None:
    settings.store.sqlite_path.write_bytes(b"no database at all " * 300)
    with pytest.raises(ConfigError) as caught:
        async with open_store(settings):
            pass
    assert caught.value.file == str(settings.store.sqlite_path)


async def test_a_database_of_another_program_is_refused(settings: Settings) -> None:
    connection = sqlite3.connect(settings.store.sqlite_path)
    connection.execute("create table recipes(name)")
    connection.close()
    with pytest.raises(ConfigError, match="recipes"):
        async with open_store(settings):
            pass


async def test_a_database_of_the_first_version_is_copied_and_migrated(settings: Settings, tmp_path: Path) -> None:
    path = settings.store.sqlite_path
    make_first_version(path)
    async with open_store(settings) as store:
        assert (await store.heads(["t1"])) == {"t1": 1}
        await store.commit(replace(commit("m:2", 1), verdicts=[REFUSED]))
        assert [one.verdict for one in await store.verdicts("t1")] == [REFUSED]
        record = await store.task("t1")
    assert record is not None
    assert (record.snapshot.children, record.snapshot.model) == ((), None)
    with sqlite3.connect(copy_of(path)) as connection:
        assert connection.execute("select version_num from alembic_version").fetchall() == [("0001",)]
        assert connection.execute("select task_id, head from tasks").fetchall() == [("t1", 1)]
    connection.close()


def copy_of(path: Path) -> Path:
    """Find the copy that was made before the migration; its name says what the newest version is."""
    [copy] = path.parent.glob(f"{path.name}.before-*")
    return copy


def make_first_version(path: Path) -> None:
    """Make what 0.1 left: its tables, and a task as it wrote them."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = open_engine(path, size=1, begin="BEGIN IMMEDIATE")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.exec_driver_sql(
            "insert into tasks values ('t1', 'c', 'TASK_STATE_WORKING', 1, ?, '{}', 1, 1)",
            ('{"task_id":"t1","context_id":"c","state":"TASK_STATE_WORKING","head":1,"participants":[]}',),
        )
    engine.dispose()
