"""Brings a store's tables up to this version, after a copy of what was there."""

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect

from tiny_harness.errors import ConfigError
from tiny_harness.store.sqlite import copy_database

MIGRATIONS: Final = Path(__file__).parent / "migrations"


def migrate(engine: Engine, path: Path) -> None:
    """Run the migrations that the database lacks.

    A database with tables is copied first, to `<name>.before-<revision>`.

    Raises:
        ConfigError: The database was written by a newer version, or by another program.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    newest = scripts.get_current_head()
    with engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
        tables = inspect(connection).get_table_names()
    if found == newest:
        return
    if found is None and tables:
        raise ConfigError(f"is a database of another program (it has the table {tables[0]})", file=str(path))
    if found is not None:
        if found not in {script.revision for script in scripts.walk_revisions()}:
            raise ConfigError(f"was written by a newer tiny-harness (revision {found})", file=str(path))
        copy = path.with_name(f"{path.name}.before-{newest}")
        if not copy.exists():
            copy_database(path, copy)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
