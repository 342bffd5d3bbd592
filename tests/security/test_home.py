"""Nobody redirects, reads or tampers with a home (abuse cases 7 and 8, fail closed)."""

import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from tiny_harness.cli.main import main
from tiny_harness.config_file import default_config
from tiny_harness.errors import ConfigError
from tiny_harness.paths import check_home, prepare_home

NOBODY: Final = 65534
IN_A_HOME: Final = ("config.toml", "tiny-harness.db", "temporal.db", "tiny-harness.log", "token", "run")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path / ".tiny-harness"


@pytest.fixture
def powerless() -> Generator[Path]:
    """A folder of a user for whom permissions count, as whom the test then runs."""
    folder = Path(tempfile.mkdtemp(prefix="th-home-"))
    default_config(folder)  # loads what it takes while this process may still read everything
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o700)
        shutil.rmtree(folder)


def refusal(home: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Start, check that nothing did, and give the words."""
    before = sorted(home.parent.rglob("*"))
    assert main(["send", "hello"]) == 2
    assert sorted(home.parent.rglob("*")) == before
    return capsys.readouterr().err


@pytest.mark.parametrize("name", IN_A_HOME)
@pytest.mark.parametrize("is_dangling", [True, False])
def test_a_link_anywhere_in_a_home_stops_the_start(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, is_dangling: bool
) -> None:
    home.mkdir(mode=0o700)
    (home / name).symlink_to(tmp_path / "elsewhere")
    if not is_dangling:
        (tmp_path / "elsewhere").mkdir() if name == "run" else (tmp_path / "elsewhere").touch()
    assert f"{home / name}: is a symbolic link" in refusal(home, capsys)
    with pytest.raises(ConfigError):
        check_home()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", ["", *IN_A_HOME])
def test_what_somebody_else_owns_stops_the_start(home: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    home.mkdir(mode=0o700)
    if name:
        (home / name).touch()
    os.chown(home / name, NOBODY, NOBODY)
    assert f"{home / name}: belongs to another user" in refusal(home, capsys)
    with pytest.raises(ConfigError):
        check_home()


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_home_that_others_may_write_to_stops_the_start(
    home: Path, capsys: pytest.CaptureFixture[str], mode: int
) -> None:
    home.mkdir()
    home.chmod(mode)
    assert str(home) in refusal(home, capsys)
    with pytest.raises(ConfigError):
        check_home()


@pytest.mark.parametrize("umask", [0, 0o022, 0o277, 0o377])
def test_modes_do_not_depend_on_the_umask(powerless: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        made = prepare_home(powerless / "home")
    finally:
        os.umask(before)
    assert made is not None
    assert (made.parent.stat().st_mode & 0o777, made.stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_home_in_a_folder_that_cannot_be_written_is_refused(powerless: Path) -> None:
    powerless.chmod(0o500)
    with pytest.raises(ConfigError) as caught:
        prepare_home(powerless / "home")
    assert caught.value.file == str(powerless / "home")


def test_a_home_that_cannot_be_written_is_refused(powerless: Path) -> None:
    home = powerless / "home"
    home.mkdir(mode=0o500)
    with pytest.raises(ConfigError) as caught:
        prepare_home(home)
    assert caught.value.file == str(home / "config.toml")
    assert list(home.iterdir()) == []


def test_a_home_that_cannot_be_read_is_refused(powerless: Path) -> None:
    home = powerless / "home"
    home.mkdir(mode=0o000)
    for check in (prepare_home, check_home):
        with pytest.raises(ConfigError) as caught:
            check(home)
        assert caught.value.file == str(home)


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_stands_where_the_file_should_be_is_not_read(
    home: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").mkdir() if kind == "folder" else os.mkfifo(home / "config.toml")
    assert str(home / "config.toml") in refusal(home, capsys)


def test_a_file_that_stands_where_the_home_should_be_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.touch()
    assert str(home) in refusal(home, capsys)


@pytest.mark.parametrize("words", [["tasks", "purge"], ["serve"], ["worker"], ["tui"], ["backup", "copy"]])
def test_every_command_that_uses_a_home_checks_it(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    home.symlink_to(tmp_path / "elsewhere")
    assert main(words) == 2
    assert str(home) in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()
