"""The line mode: each line read is a message, each reply is printed. For pipes, screen readers and small terminals."""

import asyncio
import threading
from contextlib import suppress
from typing import Final, TextIO

from tiny_harness.client import (
    Address,
    Changed,
    HarnessClient,
    Question,
    Received,
    Stepped,
    TaskEvent,
    TaskView,
    TurnResult,
    connect,
)
from tiny_harness.errors import AlreadyAnswered, HarnessError, TaskEnded
from tiny_harness.ext.plan import Plan
from tiny_harness.states import AWAITING_NEXT_MESSAGE, describe
from tiny_harness.tui.printable import one_line, printable
from tiny_harness.tui.telling import chosen, note_words, plan_lines, used

PROMPT: Final = "> "


async def run_plain(
    address: Address, participant: str | None, stdin: TextIO, stdout: TextIO, task_id: str | None = None
) -> int:
    """Hold a conversation line by line until the input ends.

    Returns:
        0, or 1 if a message could not be sent or was refused, or a command was refused or failed.

    Raises:
        ConnectionLost: Nothing answers at the address.
        ServerRefused: What answers does not let us in.
        TaskNotFound: There is no task `task_id`.
    """
    async with connect(address, participant) as client:
        lines = Lines(client, stdin, stdout)
        if task_id is not None:
            await lines.open(task_id)
        return await lines.run()


class Lines:
    """One conversation over two text streams."""

    def __init__(self, client: HarnessClient, stdin: TextIO, stdout: TextIO) -> None:
        self._client = client
        self._stdin = stdin
        self._stdout = stdout
        self._prompt = PROMPT if stdin.isatty() else ""
        self._task: TaskView | None = None
        self._plan: Plan | None = None
        """The one that was printed last."""
        self._failures = 0

    async def open(self, task_id: str) -> None:
        """Go on with a task, from its last words.

        Raises:
            TaskNotFound: There is no such task.
        """
        self._task = await self._client.task(task_id, history_length=1)
        for message in self._task.messages:
            self._print(printable(message.text))
        question = self._question()
        if question and all(message.text != question.words for message in self._task.messages):
            self._print(printable(question.words))
        self._show_choices()

    async def run(self) -> int:
        """Send each line in turn, and wait for its reply."""
        lines = _read_in_background(self._stdin)
        while True:
            self._print(self._prompt, end="")
            line = await lines.get()
            if line is None:
                return 1 if self._failures else 0
            if line.strip():
                await self._say(line.rstrip("\r\n"))

    async def _say(self, text: str) -> None:
        try:
            result = await self._answered(text)
        except HarnessError as error:
            self._failures += 1
            self._print(f"error: {printable(str(error))}")
            return
        self._task = result.task
        if result.is_refused or (result.command and result.command.outcome != "done"):
            self._failures += 1
            self._print(f"error: {printable(result.reply)}")
        elif result.reply:
            self._print(printable(result.reply))
        if result.task.sub_state != AWAITING_NEXT_MESSAGE:
            self._print(f"[{describe(result.task.state, result.task.sub_state)}]")
        self._show_choices()

    async def _answered(self, text: str) -> TurnResult:
        """Send a line: as the answer to the open question if it is one of its choices, else as a message."""
        task, question = self._task, self._question()
        choice = chosen(question, text)
        if task and question and question.request_id and choice is not None:
            try:
                return await self._client.answer(task.task_id, question.request_id, choice, on_event=self._tell)
            except AlreadyAnswered:
                self._task = await self._client.task(task.task_id, history_length=1)
                raise
        try:
            return await self._client.send(
                text, task_id=self._open_task(), context_id=self._context(), on_event=self._tell
            )
        except TaskEnded:
            # Another surface ended it: its words go on in a new task of the same context.
            return await self._client.send(text, context_id=self._context(), on_event=self._tell)

    def _tell(self, event: TaskEvent) -> None:
        """Print what happens on the way to the reply."""
        if isinstance(event, Stepped):
            if event.message is not None and event.message.text:
                self._print(printable(event.message.text))
            self._print(f"[{used(event.tool_calls)}]")
        elif isinstance(event, Received) and event.message.role == "note":
            self._print(f"[{one_line(note_words(event.message.text))}]")
        if isinstance(event, Changed) and event.data and event.data.plan not in (None, self._plan):
            self._plan = event.data.plan
            for line in plan_lines(event.data.plan):
                self._print(f"[{line}]")

    def _question(self) -> Question | None:
        return self._task.question if self._task else None

    def _show_choices(self) -> None:
        """Print what may be answered, if the task asks for one of several things."""
        question = self._question()
        if question and question.choices:
            self._print(f"[answer: {' | '.join(one_line(choice) for choice in question.choices)}]")

    def _open_task(self) -> str | None:
        return self._task.task_id if self._task and not self._task.state.is_terminal else None

    def _context(self) -> str | None:
        """The context of a task that has ended, for the next one to go on in."""
        return self._task.context_id if self._task else None

    def _print(self, text: str, end: str = "\n") -> None:
        self._stdout.write(text + end)
        self._stdout.flush()


def _read_in_background(stdin: TextIO) -> asyncio.Queue[str | None]:
    """Read lines in a thread that dies with the process: a blocked read must not keep it alive."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def read() -> None:
        # A loop that has closed meanwhile takes no more lines.
        with suppress(RuntimeError, OSError, ValueError):
            for line in stdin:
                loop.call_soon_threadsafe(lines.put_nowait, line)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, name="lines", daemon=True).start()
    return lines
