"""Logs: JSON lines, in a file for its owner alone."""

import json
import logging
from collections.abc import Generator
from pathlib import Path

import pytest

from tiny_harness.errors import ConfigError
from tiny_harness.logs import configure_logs
from tiny_harness.settings import ObservabilitySettings, Settings


@pytest.fixture(autouse=True)
def root() -> Generator[logging.Logger]:
    """The root logger, given back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_record_is_one_line_of_json(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "x.log"
    configure_logs(ObservabilitySettings(log_file=file), is_service=False)
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("some.where").exception("it\nfailed: %s", "é")
    (line,) = file.read_text().splitlines()
    told = json.loads(line)
    assert (told["level"], told["logger"], told["message"]) == ("error", "some.where", "it\nfailed: é")
    assert "ValueError: two\nlines" in told["exception"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_configuring_again_leaves_one_open_file(tmp_path: Path, root: logging.Logger) -> None:
    settings = ObservabilitySettings(log_file=tmp_path / "x.log")
    configure_logs(settings, is_service=False)
    (first,) = root.handlers
    configure_logs(settings, is_service=False)
    logging.getLogger("a").warning("once")
    assert isinstance(first, logging.StreamHandler)
    assert first.stream.closed  # pyright: ignore[reportUnknownMemberType] - of whichever stream
    assert len((tmp_path / "x.log").read_text().splitlines()) == 1


def test_the_level_is_obeyed(tmp_path: Path) -> None:
    configure_logs(ObservabilitySettings(log_file=tmp_path / "x.log", log_level="error"), is_service=False)
    logging.getLogger("a").warning("not wanted")
    assert (tmp_path / "x.log").read_text() == ""


def test_only_services_log_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(ObservabilitySettings(), is_service=False)
    logging.getLogger("a").warning("quiet")
    assert capsys.readouterr().err == ""
    configure_logs(ObservabilitySettings(), is_service=True)
    logging.getLogger("a").warning("told")
    assert json.loads(capsys.readouterr().err)["message"] == "told"


def test_a_linked_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError) as caught:
        configure_logs(ObservabilitySettings(log_file=tmp_path / "x.log"), is_service=False)
    assert (caught.value.key, caught.value.file) == ("o11y.log_file", str(tmp_path / "x.log"))
    assert not (tmp_path / "elsewhere").exists()


def test_secrets_are_masked_in_words_and_tracebacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_X", "a configured secret")
    file = tmp_path / "x.log"
    configure_logs(ObservabilitySettings(log_file=file), is_service=False)
    looks_like_one = "sk-proj-" + "a1B2" * 10
    try:
        raise ValueError("not a configured secret")
    except ValueError:
        logging.getLogger("some.where").exception("with %s and %s", looks_like_one, "a configured secret")
    told = file.read_text()
    assert "with :masked: and :masked:" in told
    assert "ValueError: not :masked:" in told
    assert looks_like_one not in told
    assert "configured secret" not in told


def test_a_variable_that_the_configuration_names_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLERK_PASS", "hush-hush-9")
    file = tmp_path / "log"
    settings = Settings.model_validate({"agents": {"clerk": {"url": "https://a.example", "token_env": "CLERK_PASS"}}})
    configure_logs(ObservabilitySettings(log_file=file), is_service=False, variables=settings.secret_variables)
    logging.getLogger("x").warning("it said hush-hush-9")
    assert "hush-hush-9" not in file.read_text()
    assert "it said" in file.read_text()
