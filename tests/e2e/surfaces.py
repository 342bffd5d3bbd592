"""The ways in which people and programs talk to a harness, each told the same things on a task of its own."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from a2a.types import StreamResponse
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict
from textual.pilot import Pilot

from tests.e2e.home import PATIENCE_S, Life
from tests.e2e.test_official_clients import js_folder, official_client, say
from tests.tools import require_tool
from tests.unit.sdk.tui_pilot import notice, state, texts, write
from tiny_harness.client import Address, connect
from tiny_harness.ext import commands
from tiny_harness.tui.app import HarnessApp
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.conversation import Conversation
from tiny_harness.tui.words import HarnessWords

PROGRAM: Final = Path(__file__).with_name("js_commands.mjs")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one text."""

    words: str
    outcome: str | None
    """Of a command; `None` for the agent's words, `error` for a refusal that is an error of the protocol."""
    data: Any = None
    """The data part; `None` where the surface shows none."""


@dataclass(frozen=True, slots=True)
class Told:
    """All answers, and the task that they are on."""

    task_id: str
    answers: list[Answer]

    @property
    def plain(self) -> list[tuple[str, str | None]]:
        """Words and outcomes alone: what every surface shows."""
        return [(answer.words.replace(self.task_id, "<task>"), answer.outcome) for answer in self.answers]


Surface = Callable[[Life, Sequence[str]], Awaitable[Told]]


async def python_client(life: Life, said: Sequence[str]) -> Told:
    """Talk as a program with the official Python client."""
    task_id, answers = "", list[Answer]()
    async with official_client(life, "JSONRPC") as client:
        for text in said:
            try:
                events = await say(client, text, task_id)
            except A2AError as error:
                answers.append(Answer(error.message, "error"))
                continue
            task_id = task_id or events[0].task.id
            answers.append(_read(events[-1]))
    return Told(task_id, answers)


def _read(event: StreamResponse) -> Answer:
    update = MessageToDict(event)["statusUpdate"]
    parts = update["status"]["message"]["parts"]
    [words] = [part["text"] for part in parts if "text" in part]
    data = next((part["data"] for part in parts if "data" in part), None)
    return Answer(words, update["metadata"].get(commands.KEY, {}).get("outcome"), data)


async def js_client(life: Life, said: Sequence[str]) -> Told:
    """Talk as a program with the official JS client."""
    node, folder = require_tool("node"), await asyncio.to_thread(js_folder)
    # Node looks for packages beside the program, so the program goes to the packages.
    program = folder / f"commands-{os.getpid()}.mjs"
    shutil.copy(PROGRAM, program)
    try:
        status, out = await run_program(node, str(program), life.url, commands.KEY, *said, TOKEN=life.token)
    finally:
        await asyncio.to_thread(program.unlink)
    assert status == 0
    told = json.loads(out)
    return Told(told["task_id"], [Answer(**answer) for answer in told["answers"]])


async def attached_send(life: Life, said: Sequence[str]) -> Told:
    """Talk by `tiny-harness send`, attached through the home."""
    return await _send(said, "--config", str(life.home / "config.toml"))


async def remote_send(life: Life, said: Sequence[str]) -> Told:
    """Talk by `tiny-harness send` over TCP, with a token."""
    return await _send(said, "--url", life.url, "--participant", "ann", TINY_HARNESS_TOKEN=life.token)


async def _send(said: Sequence[str], *target: str, **environ: str) -> Told:
    task_id, answers = "", list[Answer]()
    for text in said:
        task = ("--task", task_id) if task_id else ()
        call = (sys.executable, "-m", "tiny_harness", "send", "--json", *target, *task, text)
        status, out = await run_program(*call, **environ)
        if not out.startswith("{"):
            answers.append(Answer(out.strip(), "error"))
            continue
        told = json.loads(out)
        task_id = told["task_id"]
        command = told["command"] or {}
        assert status == (1 if command.get("outcome") in ("refused", "failed") else 0)
        answers.append(Answer(told["reply"], command.get("outcome"), command.get("data")))
    return Told(task_id, answers)


async def full_screen(life: Life, said: Sequence[str]) -> Told:
    """Talk in the terminal."""
    async with connect(Address(life.url, token=life.token), "ann") as client:
        app = HarnessApp(client)
        async with app.run_test(size=(100, 40)) as pilot:
            answers = [await _type(pilot, app, text) for text in said]
        [newest, *_] = (await client.tasks()).tasks
    return Told(newest.task_id, answers)


async def _type(pilot: Pilot[None], app: HarnessApp, text: str) -> Answer:
    before = len(texts(app))
    await write(pilot, text)
    async with asyncio.timeout(PATIENCE_S):
        while not notice(app) and not (len(texts(app)) == before + 2 and "Your turn" in state(app)):
            await pilot.pause()
    if told := notice(app):
        app.query_one(Composer).text = ""  # what was refused is put back, to be changed
        return Answer(told, "error")
    shown = texts(app)[-1]
    if not isinstance(app.query_one(Conversation).children[-1], HarnessWords):
        return Answer(shown, None)
    head, _, words = shown.partition("\n")
    name, _, outcome = head.partition(" ")
    assert text.partition(" ")[0] == name
    return Answer(words, outcome or "done")


async def run_program(*command: str, **environ: str) -> tuple[int, str]:
    """Run a program to its end; its status and what it printed, errors if nothing else."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        out, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, (out or errors).decode()


SURFACES: Final[tuple[Surface, ...]] = (python_client, js_client, attached_send, remote_send, full_screen)
