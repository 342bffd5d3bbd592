"""The command line: what is read, and how it ends."""

from pathlib import Path

import pytest

from tiny_harness._version import __version__
from tiny_harness.cli.main import COMMANDS, build_parser, main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path / ".tiny-harness"


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tiny-harness {__version__}\n"


@pytest.mark.parametrize("words", [["--config", "x.toml", "send", "hi"], ["send", "--config", "x.toml", "hi"]])
def test_the_configuration_may_stand_before_and_behind_the_command(words: list[str]) -> None:
    assert build_parser(words).parse_args(words).config == "x.toml"


def test_the_one_behind_the_command_wins() -> None:
    words = ["--config", "a", "tasks", "list", "--config", "b"]
    assert build_parser(words).parse_args(words).config == "b"
    assert "configuration in effect: b " in build_parser(words).format_help()


@pytest.mark.parametrize("words", [["--url", "http://x", "send", "hi"], ["send", "--url", "http://x", "hi"]])
def test_an_address_counts_wherever_it_stands(words: list[str]) -> None:
    assert build_parser(words).parse_args(words).url == "http://x"


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        assert main([command.NAME, "--help"]) == 0
        assert command.HELP in capsys.readouterr().out


@pytest.mark.parametrize("value", ["", "relative"])
def test_without_a_home_help_is_given_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    monkeypatch.setenv("HOME", value)
    assert main(["--help"]) == 0
    assert "configuration in effect: none" in capsys.readouterr().out
    assert main(["send", "hi"]) == 2
    assert "HOME" in capsys.readouterr().err


def test_an_error_commands_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.toml").write_text('"\\u001b[2J" = 1')
    assert main(["--config", str(tmp_path / "c.toml"), "tasks", "list"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_list_of_nothing_is_bad_usage(limit: str) -> None:
    assert main(["tasks", "list", f"--limit={limit}"]) == 2


def test_doctor_without_a_home_looks_where_it_will_be(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir("/")
    assert main(["config", "explain", "store.sqlite_path"]) == 0
    assert f"value: {home / 'tiny-harness.db'}" in capsys.readouterr().out
    assert main(["doctor"]) == 1
    assert "OPENAI_API_KEY" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_doctor_and_backup_refuse_a_linked_home(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "elsewhere").mkdir()
    home.symlink_to(tmp_path / "elsewhere")
    assert main(["doctor"]) == 1
    assert f"FAIL  home: {home}" in capsys.readouterr().out
    assert main(["backup", str(tmp_path / "copy")]) == 2
    assert str(home) in capsys.readouterr().err
