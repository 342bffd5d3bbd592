"""What a harness keeps in its home, and whom it trusts there."""

import json
import os
import socket
from pathlib import Path

import pytest

from tiny_harness.errors import AlreadyRunning, ConfigError
from tiny_harness.host import MAX_SOCKET_PATH, announced, find_host, read_token, run_folder, socket_path
from tiny_harness.locks import hold_lock

STRANGER = 12345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


def mode(path: Path) -> int:
    return path.lstat().st_mode & 0o777


def test_the_run_folder_is_closed_to_others(tmp_path: Path) -> None:
    assert mode(run_folder(tmp_path)) == 0o700
    (tmp_path / "run").chmod(0o755)
    assert mode(run_folder(tmp_path)) == 0o700


def test_a_file_in_the_run_folders_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(ConfigError) as caught:
        run_folder(tmp_path)
    assert caught.value.file == str(tmp_path / "run")


def test_a_linked_run_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError):
        run_folder(tmp_path)


def test_a_token_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    token = read_token(tmp_path)
    assert len(token) >= 43
    assert mode(tmp_path / "token") == 0o600
    (tmp_path / "token").chmod(0o644)
    assert read_token(tmp_path) == token
    assert mode(tmp_path / "token") == 0o600


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 40])
def test_a_token_file_without_a_token_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_token(tmp_path)
    assert caught.value.file == str(tmp_path / "token")


def test_a_linked_token_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (tmp_path / "token").symlink_to(target)
    with pytest.raises(ConfigError):
        read_token(tmp_path)
    assert not target.exists()


@needs_root
def test_a_strangers_token_is_refused(tmp_path: Path) -> None:
    read_token(tmp_path)
    os.chown(tmp_path / "token", STRANGER, STRANGER)
    with pytest.raises(ConfigError):
        read_token(tmp_path)


def test_a_token_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_token(tmp_path / "missing")
    assert caught.value.file == str(tmp_path / "missing" / "token")


@pytest.mark.parametrize("note", ["", "{", "[]", "null", "{}", '{"socket": 7}', '{"socket": "/nowhere/s"}'])
def test_a_note_that_leads_nowhere_is_no_host(tmp_path: Path, note: str) -> None:
    assert find_host(tmp_path) is None
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "host.json").write_text(note)
    assert find_host(tmp_path) is None


@needs_root
@pytest.mark.parametrize("stranger_owns", ["socket", "folder"])
def test_a_strangers_socket_is_no_host(tmp_path: Path, stranger_owns: str) -> None:
    folder = tmp_path / "th-x"
    folder.mkdir()
    run_dir = run_folder(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
        listener.listen()
        with announced(run_dir, folder / "s", None):
            assert find_host(tmp_path) is not None
            os.chown(folder / "s" if stranger_owns == "socket" else folder, STRANGER, STRANGER)
            assert find_host(tmp_path) is None


def test_a_note_is_for_its_owner_only_and_goes_with_the_host(tmp_path: Path) -> None:
    run_dir = run_folder(tmp_path)
    with announced(run_dir, run_dir / "s", "http://127.0.0.1:1"):
        note = run_dir / "host.json"
        assert mode(note) == 0o600
        assert json.loads(note.read_text())["pid"] == os.getpid()
    assert list(run_dir.iterdir()) == []


def test_a_socket_path_is_never_too_long_for_the_kernel(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * MAX_SOCKET_PATH)
    with socket_path(deep) as path:
        assert len(os.fsencode(path)) <= MAX_SOCKET_PATH
        assert mode(path.parent) == 0o700
    assert not path.parent.exists()
    assert not deep.exists()


def test_a_lock_is_one_holders_and_free_again_after(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold_lock(path, "it"):
        assert mode(path) == 0o600
        with pytest.raises(AlreadyRunning) as caught, hold_lock(path, "it"):
            pass
    assert (caught.value.what, caught.value.pid) == ("it", os.getpid())
    with pytest.raises(ZeroDivisionError), hold_lock(path, "it"):
        raise ZeroDivisionError
    with hold_lock(path, "it"):
        pass


@pytest.mark.parametrize("left", ["", "4194305\n", "rubbish" * 100])
def test_a_lock_file_that_a_dead_process_left_is_taken_over(tmp_path: Path, left: str) -> None:
    path = tmp_path / "lock"
    path.write_text(left)
    with hold_lock(path, "it"):
        assert path.read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("what", ["link", "folder"])
def test_a_lock_that_is_no_file_is_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "lock"
    if what == "link":
        path.symlink_to(tmp_path / "target")
    else:
        path.mkdir()
    with pytest.raises(ConfigError) as caught, hold_lock(path, "it"):
        pass
    assert caught.value.file == str(path)
