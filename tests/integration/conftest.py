"""Stores on both databases. The PostgreSQL server lives for the whole session; each test has a database of its own."""

from collections.abc import AsyncGenerator

import pytest

from tests.postgres import new_database, some_postgres
from tiny_harness.settings import Settings
from tiny_harness.store.open import VARIABLE, migrate_store


@pytest.fixture(scope="session")
async def postgres_template() -> AsyncGenerator[str]:
    """A database that is migrated and left alone, to be copied."""
    async with some_postgres() as server:
        url = await new_database(server)
        await migrate_store(Settings.model_validate({"model": {"provider": "scripted"}}), {VARIABLE: url})
        yield url


@pytest.fixture
async def on_postgres(settings: Settings, postgres_template: str) -> Settings:
    """Settings whose store is a PostgreSQL database of the test's own, migrated."""
    url = await new_database(postgres_template, postgres_template.rpartition("/")[2])
    store = settings.store.model_copy(update={"url": url})
    return settings.model_copy(update={"store": store})


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest) -> Settings:
    """Settings whose store is empty, on either database."""
    return request.getfixturevalue("settings" if request.param == "sqlite" else "on_postgres")
