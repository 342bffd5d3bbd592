"""Which database the store is in, and where its password may stand."""

import pytest
from pydantic import ValidationError

from tiny_harness.errors import ConfigError
from tiny_harness.settings import Settings
from tiny_harness.store.open import VARIABLE, store_url

URL = "postgresql://harness@db.example:5432/harness?sslmode=verify-full"


def settings(**store: object) -> Settings:
    return Settings.model_validate({"store": store})


def test_without_an_address_the_store_is_the_file() -> None:
    assert store_url(settings(), {}) is None
    assert store_url(settings(), {VARIABLE: ""}) is None


def test_the_variable_wins_and_its_password_is_not_shown() -> None:
    secret = "postgresql://harness:s3cret@db/harness"
    found = store_url(settings(url=URL), {VARIABLE: secret})
    assert found is not None
    assert found.get_secret_value() == secret
    assert "s3cret" not in repr(found)
    assert store_url(settings(url=URL), {}) is not None


@pytest.mark.parametrize(
    "url", [URL, "postgres:///harness", "postgresql://one:5432,two:5433/harness?target_session_attrs=read-write"]
)
def test_addresses_as_libpq_writes_them_are_taken(url: str) -> None:
    assert settings(url=url).store.url == url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db",
        "mysql://db/harness",
        "db/harness",
        "postgresql://[/harness",
        "postgresql://ann:word@db/harness",
        "postgresql://db/harness?password=word",
        "postgresql://db/harness?sslpassword=word",
    ],
)
def test_other_addresses_and_passwords_in_the_file_are_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        settings(url=url)


def test_a_variable_that_is_no_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        store_url(settings(), {VARIABLE: "s3cret-nonsense"})
    assert "s3cret" not in str(refused.value)
