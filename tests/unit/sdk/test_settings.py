"""What settings derive from others."""

import getpass
import re
from typing import Any

import pytest
from pydantic import ValidationError

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


JWT = {"mode": "jwt", "issuer": "https://id.example", "audience": "us", "jwks_url": "https://id.example/jwks"}


@pytest.mark.parametrize("auth", [{"mode": "tokens"}, JWT, {**JWT, "jwks_url": None, "jwks_file": "/etc/jwks.json"}])
def test_who_checks_credentials_may_listen_anywhere(auth: dict[str, Any]) -> None:
    assert Settings.model_validate({"auth": auth, "server": {"bind": "0.0.0.0:8080"}}).auth.mode == auth["mode"]


@pytest.mark.parametrize("mode", ["local", "none"])
@pytest.mark.parametrize("bind", ["0.0.0.0:8080", "[::]:8080", "10.0.0.1:8080", "agent.example:8080"])
def test_who_believes_names_listens_on_loopback_only(mode: str, bind: str) -> None:
    with pytest.raises(ValidationError, match="needs a loopback address"):
        Settings.model_validate({"auth": {"mode": mode}, "server": {"bind": bind}})


@pytest.mark.parametrize(
    "auth",
    [
        {**JWT, "issuer": None},
        {**JWT, "audience": None},
        {**JWT, "jwks_url": None},
        {**JWT, "jwks_file": "/etc/jwks.json"},
        {**JWT, "jwks_url": "http://id.example/jwks"},
        {**JWT, "jwks_url": "https://user:secret@id.example/jwks"},
        {**JWT, "algorithms": ["HS256"]},
        {**JWT, "algorithms": ["none"]},
        {**JWT, "algorithms": []},
        {**JWT, "mode": "tokens"},
        {"issuer": "https://id.example"},
    ],
)
def test_what_checks_too_little_or_by_a_secret_is_no_configuration(auth: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"auth": auth})
