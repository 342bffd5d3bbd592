"""The command line as its user runs it: real processes, a real server that speaks OpenAI's API."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.e2e.process import children_of

IS_SOAK = bool(os.environ.get("TINY_HARNESS_SOAK"))
BINARY = Path(sysconfig.get_path("scripts")) / "tiny-harness"


class Shell:
    """Somebody at a prompt, with a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {**os.environ, "HOME": str(home)}
        self.env.pop("OPENAI_API_KEY", None)

    @property
    def config(self) -> Path:
        return self.home / ".tiny-harness" / "config.toml"

    def run(self, *words: str, status: int = 0, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        done = subprocess.run(
            [BINARY, *words], env=self.env, capture_output=True, text=True, timeout=90, input=text, check=False
        )
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command that goes on."""
        return subprocess.Popen(
            [BINARY, *words],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Generator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    assert children_of(tmp_path / ".tiny-harness") == []


@pytest.fixture(scope="module")
def openai_url() -> Generator[str]:
    command = [sys.executable, "-m", "tiny_harness.testing.openai_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1] + "/v1"
        server.terminate()


@pytest.fixture
def configured(shell: Shell, openai_url: str) -> Shell:
    """A home whose file points at the server."""
    shell.run("send", "hello", status=2)
    text = shell.config.read_text()
    shell.config.write_text(re.sub(r"^# base_url = .*$", f'base_url = "{openai_url}"', text, flags=re.MULTILINE))
    return shell


def test_a_first_send_without_a_key_makes_the_file_and_names_the_ways_on(shell: Shell) -> None:
    done = shell.run("send", "hello", status=2)
    assert f"created {shell.config}" in done.stderr
    for words in ("OPENAI_API_KEY", "tiny-harness demo", "base_url"):
        assert words in done.stderr
    assert "created" not in shell.run("send", "hello", status=2).stderr


def test_a_conversation_goes_on_over_several_commands(configured: Shell) -> None:
    shell = configured
    task = json.loads(shell.run("send", "--json", "hello").stdout)
    assert (task["reply"], task["state"], task["sub_state"]) == (
        "You said: hello",
        "INPUT_REQUIRED",
        "awaiting-next-message",
    )
    assert shell.run("send", "--task", task["task_id"], "-", text="again\n").stdout == "You said: again\n\n"
    assert "INPUT_REQUIRED, awaiting-next-message" in shell.run("tasks", "show", task["task_id"]).stdout
    assert task["task_id"] in shell.run("tasks", "list").stdout
    assert "COMPLETED" in shell.run("tasks", "complete", task["task_id"]).stdout
    assert "COMPLETED" in shell.run("send", "--task", task["task_id"], "more", status=1).stderr
    assert "COMPLETED" in shell.run("tasks", "cancel", task["task_id"], status=1).stderr
    assert "not found" in shell.run("tasks", "show", "nope", status=1).stderr


def test_other_commands_attach_to_a_running_harness(configured: Shell) -> None:
    shell = configured
    with shell.start("serve", "--config", str(_with_free_port(shell))) as host:
        assert host.stdout is not None
        assert host.stdout.readline().startswith("serving http://127.0.0.1:")
        config = ("--config", str(shell.config))
        task = json.loads(shell.run("send", "--json", "hello", *config).stdout)
        assert task["task_id"] in shell.run(*config, "tasks", "list").stdout
        assert "in use by process" in shell.run("serve", *config, status=2).stderr
        assert json.loads(shell.run("doctor", "--json", *config).stdout)[-1]["detail"].startswith("running")
        host.send_signal(signal.SIGTERM)
        host.communicate(timeout=60)
    assert host.returncode == 0


@pytest.mark.timeout(1200)
def test_many_sends_in_a_row_all_end_well(configured: Shell) -> None:
    for number in range(100 if IS_SOAK else 8):
        assert configured.run("send", f"n{number}").stdout.strip() == f"You said: n{number}"


def test_sends_at_once_share_one_harness_and_all_end_well(configured: Shell) -> None:
    running = [configured.start("send", f"n{number}") for number in range(5)]
    for number, process in enumerate(running):
        out, err = process.communicate(timeout=90)
        assert (process.returncode, out.strip()) == (0, f"You said: n{number}"), err


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["config", "path"], ["doctor"], ["config", "explain", "server.bind"]]
)
def test_looking_makes_no_home(shell: Shell, words: list[str]) -> None:
    shell.run(*words, status=1 if words == ["doctor"] else 0)
    assert not shell.config.parent.exists()


def test_help_lists_every_command_and_names_the_configuration_in_effect(shell: Shell) -> None:
    out = shell.run("--help").stdout
    for command in ("tui", "demo", "send", "tasks", "serve", "worker", "config", "backup", "doctor"):
        assert f"    {command} " in out
    assert f"{shell.config} (from the default location; not there yet)" in out
    assert "/x.toml (from --config; there is no such file)" in shell.run("--config", "/x.toml", "--help").stdout


def test_a_given_file_that_is_missing_is_not_made(shell: Shell) -> None:
    missing = shell.home / "missing.toml"
    assert str(missing) in shell.run("--config", str(missing), "tasks", "list", status=2).stderr
    assert not missing.exists()
    assert not shell.config.parent.exists()


def test_a_bad_default_file_is_named_and_not_replaced(shell: Shell) -> None:
    shell.config.parent.mkdir(mode=0o700)
    shell.config.write_text("[server]\nbnid = 'x'\n")
    err = shell.run("send", "hello", status=2).stderr
    assert str(shell.config) in err
    assert "server.bnid" in err
    assert shell.config.read_text() == "[server]\nbnid = 'x'\n"


def test_a_linked_home_is_refused(shell: Shell) -> None:
    (shell.home / "elsewhere").mkdir()
    (shell.home / ".tiny-harness").symlink_to(shell.home / "elsewhere")
    assert str(shell.home / ".tiny-harness") in shell.run("send", "hello", status=2).stderr
    assert list((shell.home / "elsewhere").iterdir()) == []


def test_worker_says_that_an_embedded_server_needs_none(configured: Shell) -> None:
    assert "serve" in configured.run("worker", status=2).stderr


def test_options_before_the_command_count(configured: Shell) -> None:
    err = configured.run("--url", "http://127.0.0.1:9", "tasks", "list", status=1).stderr
    assert "connection" in err


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_harm_nobody(configured: Shell, closing: str) -> None:
    done = subprocess.run(["sh", "-c", f"{BINARY} send hi {closing}"], env=configured.env, timeout=90, check=False)
    assert done.returncode == 0


def test_a_backup_is_made_once(configured: Shell) -> None:
    configured.run("send", "hello")
    copy = configured.home / "copy.db"
    configured.run("backup", str(copy))
    assert copy.stat().st_size > 0
    assert str(copy) in configured.run("backup", str(copy), status=2).stderr


def test_purge_keeps_what_is_young(configured: Shell) -> None:
    task = json.loads(configured.run("send", "--json", "hello").stdout)
    configured.run("tasks", "complete", task["task_id"])
    assert json.loads(configured.run("tasks", "purge", "--json").stdout) == {"purged": 0, "found": 0}
    assert task["task_id"] in configured.run("tasks", "list").stdout


def test_plain_mode_holds_a_conversation_over_pipes(configured: Shell) -> None:
    out = configured.run("tui", "--plain", text="hello\nagain\n").stdout
    assert "You said: hello" in out
    assert "You said: again" in out


BAD_USAGE = [
    ["send"],
    ["tasks"],
    ["nonsense"],
    ["send", "  "],
    ["send", "--task", "", "hi"],
    ["send", "--participant", "é ö", "hi"],
]


@pytest.mark.parametrize("words", BAD_USAGE)
def test_bad_usage_ends_with_2(shell: Shell, words: list[str]) -> None:
    shell.run(*words, status=2)


def _with_free_port(shell: Shell) -> Path:
    text = shell.config.read_text()
    shell.config.write_text(text.replace('bind = "127.0.0.1:8080"', 'bind = "127.0.0.1:0"'))
    return shell.config
