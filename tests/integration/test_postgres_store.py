"""The store on a real PostgreSQL: many writers, and a server that is killed, frozen, cut off, full and taken over."""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import inspect
from sqlalchemy.ext.asyncio import create_async_engine

from tests.integration.remote_hooks.test_tls import make_certificate
from tests.postgres import Postgres, new_database, running_postgres
from tests.stores import execute
from tiny_harness.contracts import TaskSnapshot
from tiny_harness.errors import ConfigError, Unavailable
from tiny_harness.ext.task import Participant
from tiny_harness.hooks import Verdict
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness.store import Commit, NewEvent, Store, migrate_store, open_store
from tiny_harness.store.schema import metadata

pytestmark = pytest.mark.timeout(240)

PATIENCE_S = 60
WRITERS = 4


def commit(cause: str, head: int, task_id: str = "t", state: TaskState = TaskState.WORKING) -> Commit:
    people = (Participant(id="ann", role="reporter"),)
    snapshot = TaskSnapshot(task_id=task_id, context_id="c", state=state, participants=people)
    return Commit(task_id, cause, head, [NewEvent("input", lambda seq, _at, _words: f'{{"seq":{seq}}}')], snapshot, "")


async def write(store: Store, cause: str, task_id: str = "t") -> None:
    """Commit as a workflow does: adopt what is found, until the cause is there."""
    head = 0
    while (done := await store.commit(commit(cause, head, task_id))).written is None:
        head = done.snapshot.head


def with_url(settings: Settings, url: str | None, **more: object) -> Settings:
    return settings.model_copy(update={"store": settings.store.model_copy(update={"url": url, **more})})


@pytest.fixture
async def empty(settings: Settings, postgres_template: str) -> Settings:
    """A database without tables."""
    return with_url(settings, await new_database(postgres_template))


@pytest.fixture(scope="module")
async def server() -> AsyncGenerator[Postgres]:
    """A server that tests may break, and leave whole."""
    async with running_postgres() as found:
        yield found


@pytest.fixture
async def own(settings: Settings, server: Postgres) -> Settings:
    """A migrated database on it, with little patience."""
    found = with_url(settings, await new_database(server.url()), timeout=1.0, max_connections=3)
    await migrate_store(found)
    return found


# Many writers


async def test_writers_on_many_connections_number_a_tasks_events_without_a_gap(on_postgres: Settings) -> None:
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(open_store(on_postgres)) for _ in range(WRITERS)]
        await asyncio.gather(*(write(store, f"m:{n}") for n in range(20) for store in stores))
        events = await stores[0].events("t", 0, 1_000)
    assert [event.seq for event in events] == list(range(1, 21))
    assert sorted(event.cause for event in events) == sorted(f"m:{n}" for n in range(20))


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.integration.test_postgres_store import write
from tiny_harness.settings import Settings
from tiny_harness.store import open_store

async def main():
    settings = Settings.load(Path(sys.argv[1]))
    async with open_store(settings) as store:
        await asyncio.gather(*(write(store, f"m:{n}", f"t{n % 3}") for n in range(60)))
        await asyncio.gather(*(store.save_step("t0", 1, n, sys.argv[2]) for n in range(20)))

asyncio.run(main())
"""


async def test_two_processes_write_each_cause_and_each_record_once(on_postgres: Settings, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f"model.provider = 'scripted'\nstore.url = '{on_postgres.store.url}'\n")
    async with open_store(on_postgres) as store, asyncio.timeout(PATIENCE_S):
        processes = [
            await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(config), name) for name in "ab"
        ]
        assert [await process.wait() for process in processes] == [0, 0]
        for task in range(3):
            events = await store.events(f"t{task}", 0, 1_000)
            assert [event.seq for event in events] == list(range(1, 21))
            assert {event.cause for event in events} == {f"m:{n}" for n in range(60) if n % 3 == task}
        records = [row.record for row in await store.steps("t0", [1])]
        assert len(records) == 20
        again = await asyncio.gather(*(store.save_step("t0", 1, n, "late") for n in range(20)))
        assert again == records


async def test_of_many_claims_records_keys_and_requests_at_once_one_counts(on_postgres: Settings) -> None:
    async with open_store(on_postgres) as store:
        await store.commit(commit("m:1", 0))
        names = [f"n{number}" for number in range(20)]
        claims = await asyncio.gather(*(store.claim_call("t", 1, 1, 0, name) for name in names))
        records = await asyncio.gather(*(store.save_call("t", 1, 1, 0, name) for name in names))
        keys = await asyncio.gather(*(store.reserve_task("ann", "k", name) for name in names))
        await asyncio.gather(*(store.request_cancel("t", name) for name in names))
        await asyncio.gather(*(store.acknowledge("t", "ann") for _ in names))
        await asyncio.gather(*(store.save_beat("b", name) for name in names))
        await asyncio.gather(*(store.register_observers([name, "o"]) for name in names))
        await asyncio.gather(*(store.advance_observer("o", "t", number) for number in range(20)))
        await asyncio.gather(*(store.save_catalogue(name, name) for name in names))
        for found in (claims, records, keys):
            assert len(set(found)) == 1
        [row] = await store.calls("t", [1])
        assert (row.claim, row.record) == (claims[0], records[0])
        assert len(await store.pending_cancels(timedelta())) == 1
        assert await execute(on_postgres, "select seq from observed") == [(19,)]


async def test_two_that_purge_at_once_count_each_task_once(on_postgres: Settings) -> None:
    async with open_store(on_postgres) as store, open_store(on_postgres) as other:
        await asyncio.gather(
            *(store.commit(commit("m:1", 0, f"t{number}", TaskState.COMPLETED)) for number in range(40))
        )
        counts = await asyncio.gather(store.purge(timedelta()), other.purge(timedelta()))
        assert sum(counts) == 40


async def test_what_outsiders_name_with_a_nul_stops_no_commit(on_postgres: Settings) -> None:
    async with open_store(on_postgres) as store:
        verdict = Verdict("a", "b", "refused", "no\0reason", 1)
        news = commit("m:1", 0)
        done = await store.commit(Commit("t", "m:1", 0, news.events, news.snapshot, "", [verdict]))
        assert done.written
        assert [kept.verdict.reason for kept in await store.verdicts("t")] == ["no\ufffdreason"]
        assert await store.task("a\0b") is None


# Names that one process holds


async def test_a_name_is_held_by_one_at_a_time(either: Settings) -> None:
    async with open_store(either) as store, open_store(either) as other:
        async with store.alone("n") as ours, other.alone("n") as theirs, other.alone("m") as another:
            assert (ours, theirs, another) == (True, False, True)
        async with other.alone("n") as theirs:
            assert theirs


async def test_who_dies_lets_go_of_a_name(on_postgres: Settings) -> None:
    cut = "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted"
    async with open_store(on_postgres) as store, open_store(on_postgres) as other:
        async with store.alone("n") as ours:
            await execute(
                on_postgres, f"{cut} and database = (select oid from pg_database where datname = current_database())"
            )
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    async with other.alone("n") as theirs:
                        if theirs:
                            break
        assert ours


# Tables


async def test_one_job_makes_the_tables_and_the_next_finds_them(empty: Settings) -> None:
    done = await asyncio.gather(*(migrate_store(empty) for _ in range(3)))
    assert sorted(one.before is None for one in done) == [False, False, True]
    assert len({one.after for one in done}) == 1
    async with open_store(empty) as store:
        await write(store, "m:1")


async def test_the_migrations_make_exactly_the_tables_of_the_schema_on_postgresql_too(
    on_postgres: Settings, empty: Settings
) -> None:
    shapes: list[object] = []
    for settings in (on_postgres, empty):
        engine = create_async_engine((settings.store.url or "").replace("postgresql:", "postgresql+asyncpg:"))
        async with engine.begin() as connection:
            if settings is empty:
                await connection.run_sync(metadata.create_all)
            shapes.append(await connection.run_sync(lambda sync: _shape_of(inspect(sync))))
        await engine.dispose()
    assert shapes[0] == shapes[1]


def _shape_of(seen: object) -> object:
    from sqlalchemy import Inspector

    assert isinstance(seen, Inspector)
    return {
        name: (
            [(c["name"], str(c["type"]), c["nullable"]) for c in seen.get_columns(name)],
            seen.get_pk_constraint(name)["constrained_columns"],
            sorted((i["name"] or "", tuple(i["column_names"])) for i in seen.get_indexes(name)),
            sorted(
                (tuple(k["constrained_columns"]), k["referred_table"], k.get("options", {}).get("ondelete"))
                for k in seen.get_foreign_keys(name)
            ),
        )
        for name in seen.get_table_names()
        if name != "alembic_version"
    }


@pytest.mark.parametrize(
    ("revision", "words"),
    [("0001", "store migrate"), ("9001", "does not fit"), ("a1b2c3d4e5f6", "another program"), ("0999", None)],
)
async def test_services_refuse_tables_that_do_not_fit(on_postgres: Settings, revision: str, words: str | None) -> None:
    await execute(on_postgres, f"update alembic_version set version_num = '{revision}'")
    if words is None:  # additions of a newer version
        async with open_store(on_postgres) as store:
            await write(store, "m:1")
        assert (await migrate_store(on_postgres)).after == revision
        return
    with pytest.raises(ConfigError, match=words):
        async with open_store(on_postgres):
            pass


async def test_services_make_no_tables_and_touch_none_of_others(empty: Settings) -> None:
    with pytest.raises(ConfigError, match="store migrate"):
        async with open_store(empty):
            pass
    await execute(empty, "create table recipes(name text)")
    with pytest.raises(ConfigError, match="recipes"):
        await migrate_store(empty)


# Doors


async def test_who_is_not_let_in_is_told_at_once_and_no_password_is_shown(server: Postgres, settings: Settings) -> None:
    for url in (
        server.url(user="nobody:s3cret-words"),
        server.url("nowhere").replace("harness@", "harness:s3cret-words@"),
    ):
        with pytest.raises(ConfigError) as refused:
            async with open_store(settings, {"TINY_HARNESS_STORE_URL": url}):
                pass
        assert "s3cret" not in str(refused.value)
        assert f"127.0.0.1:{server.port}" in str(refused.value)


async def test_tls_is_spoken_with_a_server_that_a_named_authority_vouches_for_and_with_no_other(
    settings: Settings, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    options = ("-c", "ssl=on", "-c", "ssl_cert_file=tls.pem", "-c", "ssl_key_file=tls.pem")
    async with running_postgres(*options, files={"tls.pem": certificate.read_bytes()}) as secure:
        url = await new_database(secure.url())
        trusting = with_url(settings, url, ca_file=certificate)
        await migrate_store(trusting)
        async with open_store(trusting) as store:
            await write(store, "m:1")
            users = await secure.execute(
                "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where datname != 'postgres'"
            )
            assert [row["ssl"] for row in users] == [True]
        (tmp_path / "other").mkdir()
        with pytest.raises(ConfigError, match="certificate"):
            async with open_store(with_url(settings, url, ca_file=make_certificate(tmp_path / "other"))):
                pass


# A server that breaks


async def test_a_killed_server_is_unavailable_until_it_is_back(
    server: Postgres, own: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_store(own) as store:
        await write(store, "m:1")
        await server.kill()
        try:
            with caplog.at_level(logging.INFO, "tiny_harness.store"):
                for _ in range(3):
                    with pytest.raises(Unavailable):
                        await write(store, "m:2")
                    with pytest.raises(Unavailable):
                        await store.task("t")
        finally:
            await server.start()
        with caplog.at_level(logging.INFO, "tiny_harness.store"):
            await write(store, "m:2")
        assert [event.cause for event in await store.events("t", 0, 10)] == ["m:1", "m:2"]
    said = [record.getMessage() for record in caplog.records if record.name.startswith("tiny_harness.store")]
    assert len(said) == 2, said  # once that it went, once that it is back


async def test_a_restart_between_two_operations_fails_none(server: Postgres, own: Settings) -> None:
    async with open_store(own) as store:
        await asyncio.gather(*(store.task("t") for _ in range(10)))  # all connections are open
        await server.stop()
        await server.start()
        await asyncio.gather(*(write(store, f"m:{number}") for number in range(10)))
        assert len(await store.events("t", 0, 100)) == 10


async def test_a_frozen_server_is_unavailable_within_its_time_and_serves_again(server: Postgres, own: Settings) -> None:
    async with open_store(own) as store:
        await write(store, "m:1")
        server.pause()
        try:
            async with asyncio.timeout(PATIENCE_S):
                results = await asyncio.gather(
                    *(store.task("t") for _ in range(6)), store.commit(commit("m:2", 1)), return_exceptions=True
                )
        finally:
            server.resume()
        assert {type(result) for result in results} == {Unavailable}
        async with asyncio.timeout(PATIENCE_S):
            await _until_it_answers(store)
        await write(store, "m:2")
        assert [event.cause for event in await store.events("t", 0, 10)] == ["m:1", "m:2"]


async def test_a_writer_that_others_keep_waiting_gives_up_and_leaves_nothing(server: Postgres, own: Settings) -> None:
    import asyncpg

    async with open_store(own) as store:
        await write(store, "m:1")
        blocker = await asyncpg.connect(own.store.url)
        try:
            await blocker.execute("begin; select * from tasks for update")
            with pytest.raises(Unavailable):
                await store.commit(commit("m:2", 1))
            assert await store.task("t") is not None  # readers are not kept waiting
        finally:
            await blocker.close()
        await write(store, "m:2")
        assert [event.seq for event in await store.events("t", 0, 10)] == [1, 2]


async def test_a_server_that_became_a_standby_is_left_as_soon_as_another_takes_writes(
    server: Postgres, own: Settings
) -> None:
    name = (own.store.url or "").rpartition("/")[2]
    async with open_store(own) as store:
        await write(store, "m:1")
        await server.execute(f"alter database {name} set default_transaction_read_only = on")
        await server.execute(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'")
        with pytest.raises(Unavailable):
            await write(store, "m:2")
        assert await store.task("t") is not None
        await server.execute(f"alter database {name} set default_transaction_read_only = off")
        await write(store, "m:2")  # although open connections still lead to the old one


async def test_a_server_that_is_never_there_is_told_where_it_was_looked_for(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiny_harness.store import postgres_opening

    monkeypatch.setattr(postgres_opening, "START_PATIENCE_S", 0.0)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1/harness"):
        async with open_store(with_url(settings, "postgresql://harness@127.0.0.1:1/harness")):
            pass


async def _until_it_answers(store: Store) -> None:
    while True:
        try:
            await store.task("t")
        except Unavailable:
            continue
        return
