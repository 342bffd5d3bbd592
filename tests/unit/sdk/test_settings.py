"""What settings derive from others."""

import getpass
import re

import pytest

from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN
from tiny_harness.settings import ServerSettings, Settings, login_name


@pytest.mark.parametrize(
    ("bind", "host", "port", "url"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080, "http://127.0.0.1:8080"),
        ("[::1]:9", "::1", 9, "http://[::1]:9"),
        ("localhost:0", "localhost", 0, "http://localhost:0"),
    ],
)
def test_bind_is_taken_apart(bind: str, host: str, port: int, url: str) -> None:
    server = ServerSettings(bind=bind)
    assert (server.host, server.port, server.url) == (host, port, url)


def test_a_base_url_has_no_slash_at_its_end() -> None:
    assert ServerSettings(base_url="https://agent.example/").url == "https://agent.example"


def test_temporals_database_stands_beside_the_store() -> None:
    settings = Settings.model_validate({"store": {"sqlite_path": "/data/x.db"}})
    assert str(settings.temporal_database) == "/data/temporal.db"


@pytest.mark.parametrize("login", ["ada", "CORP\\ada lovelace", "ünï", "x" * 300])
def test_any_login_makes_a_participant_id(monkeypatch: pytest.MonkeyPatch, login: str) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: login)
    assert re.fullmatch(PARTICIPANT_ID_PATTERN, login_name())


def test_a_process_without_a_user_has_a_name_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert re.fullmatch(PARTICIPANT_ID_PATTERN, login_name())
