"""Brings a store's tables up to this version, and says whether they fit.

A revision's first digit counts the changes that are more than additions (DESIGN: additive within a minor release): a
program works on every newer revision that begins with the same digit, so that services of two versions live beside each
other while a deployment is renewed, and the older one can come back.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect

from tiny_harness.errors import ConfigError
from tiny_harness.store.sqlite import copy_database

MIGRATIONS: Final = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration did."""

    before: str | None
    """The revision that was found, `None` for an empty database."""
    after: str
    copy: Path | None = None
    """The copy of what was there before, where one was made."""


def migrate_file(engine: Engine, path: Path) -> Migrated:
    """Run the migrations that an SQLite file lacks.

    A file with tables is copied first, to `<name>.before-<revision>`.

    Raises:
        ConfigError: The database was written by a newer version, or by another program.
    """
    with engine.connect() as connection:
        found = find_revision(connection)
    if found is not None and found == newest_revision():
        return Migrated(found, found)
    if found is not None and not _is_known(found):
        raise ConfigError(f"was written by a newer tiny-harness (revision {found})", file=str(path))
    copy = path.with_name(f"{path.name}.before-{newest_revision()}") if found is not None else None
    if copy is not None and not copy.exists():
        copy_database(path, copy)
    with engine.begin() as connection:
        return Migrated(found, upgrade(connection), copy)


def migrate_tables(connection: Connection) -> Migrated:
    """Run the migrations that a database lacks, in the connection's transaction. A newer one that fits stays as it is.

    Raises:
        ConfigError: The tables are those of a version that does not fit, or of another program.
    """
    found = find_revision(connection)
    if found is not None and not _is_known(found):
        check_revision(connection)
        return Migrated(found, found)
    return Migrated(found, upgrade(connection))


def check_revision(connection: Connection) -> None:
    """See whether this version can work on a database's tables.

    Raises:
        ConfigError: They are to be migrated, or are those of a version that does not fit, or of another program.
    """
    found, newest = find_revision(connection), newest_revision()
    if found == newest:
        return
    if found is None:
        raise ConfigError("has no tables yet; make them with `tiny-harness store migrate`", key="store.url")
    if _is_known(found):
        reason = f"is at revision {found}, this version needs {newest}; run `tiny-harness store migrate`"
        raise ConfigError(reason, key="store.url")
    if found[0] != newest[0]:
        raise ConfigError(f"is at revision {found}, which does not fit this version ({newest})", key="store.url")


def find_revision(connection: Connection) -> str | None:
    """Find which revision a database's tables have, `None` if there are none.

    Raises:
        ConfigError: They are another program's.
    """
    found = MigrationContext.configure(connection).get_current_revision()
    tables = inspect(connection).get_table_names()
    if found is None and tables:
        raise ConfigError(f"is a database of another program (it has the table {tables[0]})", key="store")
    if found is not None and not (len(found) == len(newest_revision()) and found.isdecimal()):
        raise ConfigError(f"is a database of another program (revision {found})", key="store")
    return found


def newest_revision() -> str:
    """Name the revision that this version makes and needs."""
    newest = ScriptDirectory.from_config(_config()).get_current_head()
    assert newest is not None, "there are migrations"
    return newest


def upgrade(connection: Connection) -> str:
    """Run all migrations that lack, in the connection's transaction; gives the revision that was reached."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    return newest_revision()


def _is_known(revision: str) -> bool:
    scripts = ScriptDirectory.from_config(_config())
    return revision in {script.revision for script in scripts.walk_revisions()}


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config
