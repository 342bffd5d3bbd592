"""Where the configuration is, and how a home is made (R2, abuse cases 7 and 8)."""

import os
import threading
from pathlib import Path

import pytest

from tiny_harness.errors import ConfigError
from tiny_harness.paths import check_home, default_home, prepare_home, resolve_config
from tiny_harness.settings import Settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".tiny-harness"


def test_the_given_file_comes_first_and_the_home_second(home: Path) -> None:
    assert resolve_config("x.toml").path == Path("x.toml")
    assert (resolve_config().path, resolve_config().origin) == (home / "config.toml", "the default location")


def test_resolving_makes_nothing(home: Path) -> None:
    resolve_config()
    resolve_config("x.toml")
    assert not home.exists()


def test_a_home_is_made_for_its_owner_alone_whatever_the_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        assert prepare_home() == home / "config.toml"
    finally:
        os.umask(before)
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in home.iterdir()] == ["config.toml"]


def test_the_made_file_is_valid_and_keeps_everything_under_the_home(home: Path) -> None:
    path = prepare_home()
    assert path is not None
    settings = Settings.load(path)
    assert settings.temporal.mode == "embedded"
    assert settings.temporal.embedded.persist
    for where in (settings.store.sqlite_path, settings.temporal_database, settings.o11y.log_file):
        assert where is not None
        assert where.parent == home


def test_every_key_of_the_made_file_is_explained_above_it(home: Path) -> None:
    path = prepare_home()
    assert path is not None
    lines = path.read_text().splitlines()
    keys = [number for number, line in enumerate(lines) if "=" in line and not line.startswith("#")]
    assert len(keys) >= 9
    assert all(lines[number - 1].startswith("# ") for number in keys)


def test_a_file_that_is_there_is_never_changed(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("mine")
    assert prepare_home() is None
    assert (home / "config.toml").read_text() == "mine"


@pytest.mark.parametrize("what", [".tiny-harness", ".tiny-harness/config.toml"])
def test_a_symbolic_link_is_refused_and_nothing_is_written_through_it(home: Path, tmp_path: Path, what: str) -> None:
    target = tmp_path / "elsewhere"
    link = tmp_path / what
    if link == home:
        target.mkdir()
    else:
        home.mkdir(mode=0o700)
        target.touch()
    link.symlink_to(target)
    for check in (prepare_home, check_home):
        with pytest.raises(ConfigError) as caught:
            check()
        assert caught.value.file == str(link)
    assert list(target.iterdir()) == [] if target.is_dir() else target.read_text() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("what", [".tiny-harness", ".tiny-harness/config.toml"])
def test_what_belongs_to_another_user_is_refused(home: Path, tmp_path: Path, what: str) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").touch()
    os.chown(tmp_path / what, 12345, 12345)
    with pytest.raises(ConfigError) as caught:
        prepare_home()
    assert caught.value.file == str(tmp_path / what)


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError) as caught:
        prepare_home(tmp_path / "file" / "home")
    assert caught.value.file.endswith("file/home")


def test_of_two_first_starts_at_once_one_makes_the_file(home: Path) -> None:
    barrier = threading.Barrier(8)
    made: list[Path | None] = []

    def start() -> None:
        barrier.wait(10)
        made.append(prepare_home())

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(made) == 8
    assert sum(path is not None for path in made) == 1
    assert default_home() == home
    Settings.load(home / "config.toml")
