"""Configuration faults and ways to end, seen by the shell: real processes, their statuses and their streams."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

COMMAND: Final = (sys.executable, "-m", "tiny_harness")


def run(home: Path | str | None, *words: str, text: bytes = b"", **more: str) -> subprocess.CompletedProcess[bytes]:
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "OPENAI_API_KEY")}
    env |= {"HOME": str(home)} if home is not None else {}
    return subprocess.run([*COMMAND, *words], env=env | more, input=text, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("place", ["--config", "default"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[server\n", "line 1"),
        ("[server]\nbnid = 1\n", "[server.bnid]: there is no such key; did you mean bind?"),
        ("[server]\nmax_streams = 'many'\n", "[server.max_streams]"),
        ("[server]\nbnid = 1\n[store]\nnope = 2\n", "also wrong: store.nope"),
        ("[openai]\nmodels = []\n", "[openai.models]: models must hold the default model"),
        ("[openai]\nmodel = 'a'\nmodels = ['b']\n", "[openai.models]: models must hold the default model, a"),
    ],
)
def test_a_fault_in_the_file_ends_with_2_and_names_file_and_key(
    tmp_path: Path, place: str, text: str, words: str
) -> None:
    path = tmp_path / ("c.toml" if place == "--config" else ".tiny-harness/config.toml")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(text)
    done = run(tmp_path, *(["--config", str(path)] if place == "--config" else []), "tasks", "list")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().startswith(f"tiny-harness: {path}")
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert path.read_text() == text


@pytest.mark.parametrize("home", ["/dev/null", "/proc", "", "relative"])
def test_a_home_that_cannot_be_made_ends_with_2(home: str) -> None:
    done = run(home, "send", "hello")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert (home or "HOME").encode() in done.stderr or b"HOME" in done.stderr


def test_without_a_variable_the_home_is_the_accounts() -> None:
    done = run(None, "config", "path")
    assert done.returncode == 0
    assert done.stdout.decode().startswith("/")


def test_an_address_needs_no_home_and_no_key(tmp_path: Path) -> None:
    for words in (["--url", "http://127.0.0.1:1", "send", "hi"], ["send", "hi", "--url", "nonsense"]):
        done = run(tmp_path, *words)
        assert done.returncode == 1
        assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_input_that_is_no_text_ends_with_2(tmp_path: Path) -> None:
    assert run(tmp_path, "send", "-", text=b"a\xffb").returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_gone_is_no_crash(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        env = os.environ | {"HOME": str(tmp_path)}
        for words in (["--help"], ["config", "path"]):
            done = subprocess.run(
                [*COMMAND, *words], env=env, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
            )
            assert done.returncode in (0, 1)
            assert b"Traceback" not in done.stderr
    finally:
        os.close(writing)


def test_letters_that_the_terminal_does_not_know_are_no_crash(tmp_path: Path) -> None:
    (tmp_path / "Ω").mkdir()
    done = run(tmp_path / "Ω", "config", "path", PYTHONIOENCODING="ascii")
    assert (done.returncode, b"\\u03a9" in done.stdout) == (0, True)
