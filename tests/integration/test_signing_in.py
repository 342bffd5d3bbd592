"""Our clients sign in: the SDK; the command line by an option, a variable and a prompt; and what a wrong token says."""

import asyncio
import json
import os
import pty
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.gateway.served import Gateway, running_gateway
from tiny_harness import Address, SignInRefused, connect
from tiny_harness.cli.main import main
from tiny_harness.settings import Settings
from tiny_harness.tokens import create_token

pytestmark = pytest.mark.timeout(180)

PATIENCE_S = 90


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command went."""

    status: int | None
    out: str
    errors: str


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    settings = Settings.model_validate({"store": {"sqlite_path": folder / "store.db"}, "auth": {"mode": "tokens"}})
    async with running_gateway(settings, folder) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def token(gateway: Gateway) -> str:
    return (await create_token(gateway.store, "ann")).token


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "TINY_HARNESS_TOKEN"}
    return {**kept, "HOME": str(home), **more}


async def command(home: Path, *words: str, **more: str) -> Ended:
    """Run `tiny-harness` as a script does: no terminal."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tiny_harness", *words),
        env=environment(home, **more),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        out, errors = await process.communicate()
    return Ended(process.returncode, out.decode(), errors.decode())


async def test_a_program_signs_in_and_is_told_who_it_is(gateway: Gateway, token: str) -> None:
    async with connect(Address(gateway.url), token=token) as client:
        assert client.participant == "ann"
        task = (await client.send("hello")).task
    async with connect(Address(gateway.url, token=token), "ann") as client:
        assert (await client.task(task.task_id)).task_id == task.task_id


async def test_a_program_that_is_not_let_in_is_told_why(gateway: Gateway, token: str) -> None:
    late = await create_token(gateway.store, "ann", lifetime=timedelta(milliseconds=1))
    cases: dict[str, dict[str, Any]] = {
        "this token is not known here": {"token": "tht_" + "x" * 43},
        "this token has expired": {"token": late.token},
        "this credential is ann's": {"token": token, "participant": "bob"},
        "a bearer token is needed": {},
    }
    for words, given in cases.items():
        with pytest.raises(SignInRefused, match=words):
            async with connect(Address(gateway.url), **given):
                pass


async def test_a_token_that_is_revoked_ends_a_connection_that_was_let_in(gateway: Gateway) -> None:
    made = await create_token(gateway.store, "ann")
    async with connect(Address(gateway.url), token=made.token, heal_s=0.1) as client:
        await client.tasks()
        await gateway.store.revoke_token(made.token_id)
        with pytest.raises(SignInRefused, match="was revoked"):
            await client.tasks()


async def test_the_command_line_signs_in_by_option_and_variable(gateway: Gateway, token: str, tmp_path: Path) -> None:
    sent, examined, listed = await asyncio.gather(
        command(tmp_path, "send", "--url", gateway.url, "--token", token, "hello"),
        command(tmp_path, "doctor", "--json", "--url", gateway.url, TINY_HARNESS_TOKEN=token),
        command(tmp_path, "--url", gateway.url, "tasks", "list", "--json", TINY_HARNESS_TOKEN=token),
    )
    assert (sent.status, sent.errors) == (0, "")
    [check] = json.loads(examined.out)
    assert (examined.status, check["ok"], check["detail"]) == (0, True, f"{gateway.url} knows you as ann")
    assert (listed.status, isinstance(json.loads(listed.out), list)) == (0, True)


async def test_the_command_line_says_what_is_wrong_with_a_token(gateway: Gateway, token: str, tmp_path: Path) -> None:
    at = ("--url", gateway.url)
    unknown, other, none, broken, examined = await asyncio.gather(
        command(tmp_path, "send", *at, "--token", "tht_" + "x" * 43, "hello"),
        command(tmp_path, "tasks", "list", *at, "--participant", "bob", TINY_HARNESS_TOKEN=token),
        command(tmp_path, "tui", "--plain", *at),
        command(tmp_path, "send", *at, "hello", TINY_HARNESS_TOKEN="two words"),
        command(tmp_path, "doctor", *at),
    )
    assert unknown == Ended(2, "", "tiny-harness: not signed in: this token is not known here\n")
    assert (other.status, "this credential is ann's" in other.errors) == (2, True)
    assert (none.status, "a bearer token is needed" in none.errors) == (2, True)
    assert broken == Ended(2, "", "tiny-harness: TINY_HARNESS_TOKEN is no token\n")
    assert (examined.status, "not signed in" in examined.out) == (1, True)
    assert os.listdir(tmp_path) == [], "and nobody's home was made"


async def test_a_terminal_is_asked_for_the_token_without_echo(gateway: Gateway, token: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tiny_harness", "tasks", "list", "--json", "--url", gateway.url),
            env=environment(tmp_path),
            stdin=theirs,
            stdout=asyncio.subprocess.PIPE,
            stderr=theirs,
            start_new_session=True,  # no terminal of the test runner's is asked instead
        )
        os.close(theirs)
        shown = b""
        async with asyncio.timeout(PATIENCE_S):
            while b"token for" not in shown:
                shown += await asyncio.to_thread(os.read, ours, 1_000)
            os.write(ours, f"{token}\n".encode())
            out, _ = await process.communicate()
        assert (process.returncode, isinstance(json.loads(out), list)) == (0, True)
        assert token.encode() not in shown + await asyncio.to_thread(_rest, ours)
    finally:
        os.close(ours)


def _rest(handle: int) -> bytes:
    """Read what a terminal was shown before its program ended."""
    found = b""
    try:
        while piece := os.read(handle, 1_000):
            found += piece
    except OSError:  # Linux's way to say that nobody is at the other end
        pass
    return found


def test_tokens_are_made_shown_once_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f"auth.mode = 'tokens'\nstore.sqlite_path = '{tmp_path / 'store.db'}'\n")

    def tokens(*words: str) -> Ended:
        status = main(["--config", str(config), "tokens", *words])
        return Ended(status, *capsys.readouterr())

    made = tokens("create", "ann", "--note", "laptop", "--days", "7", "--json")
    known = json.loads(made.out)
    assert (made.status, made.errors, known["participant"], known["kind"]) == (0, "", "ann", "human")
    plain = tokens("add", "bot", "--kind", "agent")
    assert plain.out.startswith("tht_")
    assert "bot signs in with" in plain.errors
    listed = tokens("list")
    assert "laptop" in listed.out
    assert "valid" in listed.out
    for token in (known["token"], plain.out.strip()):
        assert token not in listed.out
        assert token.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("store.db*"))
    assert tokens("revoke", known["token_id"]) == Ended(0, f"revoked {known['token_id']}\n", "")
    again = json.loads(tokens("list", "--json").out)
    assert [token["state"] for token in again] == ["revoked", "valid"]
    nobody = tokens("revoke", "nobody")
    assert (nobody.status, "there is no token nobody" in nobody.errors) == (1, True)
    for bad in (("create", "a b"), ("create", "tiny-harness"), ("create", "ann", "--days", "0")):
        assert tokens(*bad).status == 2
