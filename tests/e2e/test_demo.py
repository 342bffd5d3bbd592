"""`tiny-harness demo` as its user runs it: piped, without a network, and on a terminal."""

import asyncio
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import termios
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.e2e.process import relatives_of, until_gone
from tests.tools import go_without
from tiny_harness.demo import PLUGIN, ledger

BINARY = Path(sysconfig.get_path("scripts")) / "tiny-harness"
PATIENCE_S = 90
LAST_WORDS = "Done. I paid back 79.00 EUR for order A-17 to the card."


def environment(home: Path) -> dict[str, str]:
    """An environment that shows what is written where: a home and a folder for temporary files of its own."""
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    return {**os.environ, "HOME": str(home), "TMPDIR": str(home / "tmp"), "TERM": "xterm-256color", "NO_COLOR": "1"}


def run(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def files(home: Path) -> list[str]:
    return [str(path.relative_to(home)) for path in home.rglob("*") if not path.is_dir()]


def without_network() -> tuple[str, ...]:
    """Say how a command is run where there is nothing but loopback; empty if that cannot be had here."""
    words = ("unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "-")
    can = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    return words if can else ()


async def test_the_story_is_told_without_a_network_and_leaves_nothing(tmp_path: Path) -> None:
    prefix = without_network()
    done = run(environment(tmp_path), *prefix, str(BINARY), "demo")
    assert (done.returncode, done.stderr) == (0, "")
    out = done.stdout
    for told in (
        "used load_skill, orders.look_up",
        "spawn_subtask, ask_participant",
        "[INPUT_REQUIRED, awaiting-answer; choices: card, voucher]",
        "79.00 EUR may be paid back for order A-17",
        "[INPUT_REQUIRED, awaiting-approval; choices: approve, refuse]",
        "Plan · 4 of 4 done",
        f"agent  {LAST_WORDS}",
        "[COMPLETED]",
        "refused: ",
        "The shop's ledger has 1 refund: A-17 79.00 card",
        f'plugins = ["{PLUGIN}"]',
    ):
        assert told in out
    assert Path(re.findall(r", in (\S+),", out)[0]).parent == tmp_path / "tmp"
    assert files(tmp_path) == []
    assert list((tmp_path / "tmp").iterdir()) == []
    await until_gone(tmp_path, relatives_of)
    if not prefix:
        go_without("no network namespace can be made here: whether the demo needs a network was not tested")


async def test_on_a_terminal_it_goes_on_as_a_tui_on_the_same_task(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, 120))
    process = await asyncio.create_subprocess_exec(
        *(BINARY, "demo", "--keep", str(kept)),
        env=environment(tmp_path),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    screen, news = bytearray(), asyncio.Event()

    def read() -> None:
        try:
            screen.extend(os.read(master, 65_536))
        except OSError:
            asyncio.get_running_loop().remove_reader(master)
        news.set()

    asyncio.get_running_loop().add_reader(master, read)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while b"Your turn" not in screen or screen.count(LAST_WORDS.encode()) < 2:  # printed, then in the TUI
                news.clear()
                await news.wait()
            os.write(master, b"\x11")
            assert await process.wait() == 0
    finally:
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    await until_gone(tmp_path, relatives_of)
    assert b"[COMPLETED]" not in screen
    assert ledger(kept).read_text() == "A-17 79.00 card\n"
    assert (kept / "tiny-harness.db").exists()
    assert [name for name in files(tmp_path) if not name.startswith("kept/")] == []


@pytest.fixture
def openai_url() -> Generator[str]:
    command = [sys.executable, "-m", "tiny_harness.testing.openai_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1] + "/v1"
        server.terminate()


async def test_its_plugin_works_by_configuration_with_another_provider(tmp_path: Path, openai_url: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        f'plugins = ["{PLUGIN}"]\n[openai]\nbase_url = "{openai_url}"\n[store]\nsqlite_path = "{tmp_path / "s.db"}"\n'
    )

    def send(text: str, status: int) -> str:
        """Send a message as somebody whose PATH knows no Python of ours."""
        env = {**environment(tmp_path), "PATH": os.defpath}
        done = run(env, str(BINARY), "--config", str(config), "send", text)
        assert done.returncode == status, done.stderr
        return done.stdout

    calls = '[{"name": "support_orders_look_up", "arguments": {"order": "B-4"}},'
    calls += ' {"name": "support_orders_refund", "arguments": {"order": "B-4", "amount": 12.5, "to": "voucher"}}]'
    said = send(f"!calls {calls}", 0)
    assert "Order B-4: a mug, 12.50 EUR" in said
    assert "Paid back: 12.50 EUR for order B-4 to the voucher." in said
    large = '{"order": "A-17", "amount": 60, "to": "card"}'
    assert "60.00 EUR is more than 50.00 EUR" in send(f"!call support_orders_refund {large}", 3)
    assert ledger(tmp_path).read_text() == "B-4 12.50 voucher\n"
    await until_gone(tmp_path, relatives_of)
