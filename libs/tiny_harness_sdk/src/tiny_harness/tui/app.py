"""The full-screen surface: one conversation at a time, whatever other surfaces do to it shown at once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar, Final

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.widgets import Footer, OptionList, Static, TextArea

from tiny_harness.client import (
    Address,
    Changed,
    Connected,
    HarnessClient,
    MessageView,
    Question,
    Reconnecting,
    TaskEvent,
    TaskShown,
    connect,
)
from tiny_harness.errors import HarnessError, TaskNotCancelable
from tiny_harness.tui.completions import Completions
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.conversation import Conversation
from tiny_harness.tui.family import Family, SubTaskPicker
from tiny_harness.tui.lines import Notice, StatusLine
from tiny_harness.tui.outbox import Outbox, Outgoing
from tiny_harness.tui.picker import TaskPicker
from tiny_harness.tui.question import QuestionPanel
from tiny_harness.tui.room import Room
from tiny_harness.tui.telling import chosen
from tiny_harness.tui.terminal import ending_by_signal, is_terminal_lost
from tiny_harness.tui.words import SENDING

TERMINAL_CHECK_S: Final = 1.0
WELCOME: Final = (
    "Type a message and press Enter. The agent answers here; the task stays open until you end it. "
    "A / at the start lists the commands."
)
SOMETIMES: Final = frozenset({"complete", "cancel", "interrupt", "new", "sub_task", "parent"})
"""Actions that a room may not allow (`Room.possible`)."""
ASK_CANCEL: Final = "Cancel this task? F3 again cancels it, Escape keeps it."


class HarnessApp(App[None]):
    """Composes the screen and carries words between the person and the client."""

    TITLE = "tiny-harness"
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2", "complete", "Complete"),
        Binding("f3", "cancel", "Cancel"),
        Binding("escape", "interrupt", "Interrupt"),
        # The composer would select a line.
        Binding("f6", "answer", "Answer", priority=True),
        Binding("f4,ctrl+n", "new", "New"),
        Binding("f5,ctrl+t", "tasks", "Tasks"),
        Binding("f8,ctrl+g", "sub_task", "Child"),
        Binding("f9,ctrl+p", "parent", "Parent"),
        Binding("ctrl+q", "quit", "Quit", priority=True),
    ]

    possible: reactive[frozenset[str]] = reactive(frozenset[str](), bindings=True)
    """The actions that the open room allows; the keys in the footer follow them."""
    asks_cancel: reactive[bool] = reactive(False, bindings=True)
    """Whether the next F3 cancels."""

    def __init__(self, client: HarnessClient, task_id: str | None = None) -> None:
        """`task_id` names the task to open first; default: a new conversation."""
        super().__init__()
        self._client = client
        self._first_task = task_id
        self._room = Room()
        self._outbox = Outbox(client)
        self._drawing = asyncio.Lock()
        """Two streams may bring news at once; each is drawn to its end."""

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        completions = Completions()
        yield StatusLine()
        yield Family()
        yield Static(WELCOME, id="welcome", markup=False)
        yield Conversation()
        yield Notice()
        yield QuestionPanel()
        yield completions
        yield Composer(completions)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Start to deliver."""
        self.query_one(StatusLine).show_link("")
        self._show_room()
        self.query_one(Composer).focus()
        self._deliver_all()
        self._load_commands(refresh=False)
        if self._first_task is not None:
            self._open(self._first_task)
        if not self.is_headless:
            self.set_interval(TERMINAL_CHECK_S, self._leave_a_lost_terminal)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say which keys work now; the others are dimmed, or not there when there is nothing to answer."""
        if action == "answer":
            return action in self._room.possible
        if action not in SOMETIMES or action in self._room.possible:
            return True
        return True if action == "interrupt" and self.asks_cancel else None

    @on(Composer.Sent)
    def send(self, event: Composer.Sent) -> None:
        """Put a message on its way, shown at once."""
        self._tell("")
        room = self._room
        choice = chosen(room.question, event.text)
        if choice is not None and room.question is not None:
            self._answer(room, room.question, choice)
            return
        if room.has_ended and room.view:
            room = Room(context_id=room.view.context_id)
            self._enter(room)
        room.has_words = True
        self._show_room()
        self._post(self._outbox.write(room, event.text))

    @on(QuestionPanel.Chosen)
    def choose(self, event: QuestionPanel.Chosen) -> None:
        """Answer the question: by itself if it asks for just that, else by a message."""
        self._tell("")
        if event.question.request_id is not None:
            self._answer(self._room, event.question, event.choice)
        elif event.question == self._room.question:
            self._post(self._outbox.write(self._room, event.choice))

    @on(QuestionPanel.Left)
    def write_again(self) -> None:
        """Go back to the composer."""
        self.query_one(Composer).focus()

    @on(OptionList.OptionSelected, "#completions")
    def complete_command(self, event: OptionList.OptionSelected) -> None:
        """Write a command out that was clicked."""
        composer = self.query_one(Composer)
        composer.complete(event.option_id or "")
        composer.focus()

    @on(TextArea.Changed)
    def note_writing(self, event: TextArea.Changed) -> None:
        """Take writing on as a no to the question; a slash, as the wish to see the commands."""
        if self.asks_cancel:
            self._tell("")
        if event.text_area.text == "/":
            self._load_commands(refresh=True)  # it may be another harness by now, with other plugins

    def action_complete(self) -> None:
        """End the task as done."""
        self._tell("")
        self._act("complete")

    def action_cancel(self) -> None:
        """Ask once, then cancel the task."""
        if not self.asks_cancel:
            self._tell(ASK_CANCEL)
            self.asks_cancel = True
            return
        self._tell("")
        self._act("cancel")

    def action_interrupt(self) -> None:
        """Take a question back, or cut the running turn."""
        asked = self.asks_cancel
        self._tell("")
        if not asked:
            self._act("interrupt")

    def action_answer(self) -> None:
        """Choose an answer to the open question."""
        self.query_one(QuestionPanel).take_keys()

    def action_new(self) -> None:
        """Begin another conversation; this one stays as it is."""
        self._tell("")
        self._enter(Room())

    @work(group="pick")
    async def action_tasks(self) -> None:
        """Let the person choose a task and open it."""
        chosen = await self.push_screen_wait(TaskPicker(self._client))
        if chosen is not None and not (self._room.view and self._room.view.task_id == chosen):
            self._open(chosen)

    @work(group="pick")
    async def action_sub_task(self) -> None:
        """Open the sub-task, or let the person choose one of several."""
        children = self._room.sub_tasks
        if not children:
            return
        [first, *others] = children
        chosen = await self.push_screen_wait(SubTaskPicker(self._client, children)) if others else first.task_id
        if chosen is not None:
            self._open(chosen)

    def action_parent(self) -> None:
        """Go back to the task that this one is a part of."""
        if self._room.parent is not None:
            self._open(self._room.parent)

    def _open(self, task_id: str) -> None:
        """Go to a task."""
        self._tell("")
        room = Room(has_words=True, opened=task_id)
        self._enter(room)
        self._watch(room, task_id)

    @work(group="act")
    async def _act(self, what: str) -> None:
        room = self._room
        if room.view is None:
            return
        calls = {"complete": self._client.complete, "cancel": self._client.cancel, "interrupt": self._client.interrupt}
        try:
            await calls[what](room.view.task_id)
        except TaskNotCancelable:
            pass  # somebody else ended it first: the stream shows how
        except HarnessError as error:
            self._tell(str(error))

    @work(group="act")
    async def _answer(self, room: Room, question: Question, choice: str) -> None:
        if room.view is None or question.request_id is None:
            return
        try:
            events = self._client.stream_answer(room.view.task_id, question.request_id, choice)
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, TaskShown | Changed):
                        return  # it is in: the room's own stream shows the rest
        except HarnessError as error:
            self._tell(str(error))

    @work(exclusive=True, group="commands")
    async def _load_commands(self, *, refresh: bool) -> None:
        try:
            offers = await self._client.commands(refresh=refresh)
        except HarnessError:
            return  # those that are known stay on offer; what is sent tells whether the harness is there
        completions = self.query_one(Completions)
        completions.offer(offers)
        completions.narrow(self.query_one(Composer).text)

    @work(group="deliver")
    async def _deliver_all(self) -> None:
        await self._outbox.deliver_all(self)

    def take_over(self, room: Room, events: AsyncGenerator[TaskEvent]) -> bool:
        """Watch a task on the stream of its first message (`outbox.Sender`)."""
        if room.view is None or room is not self._room:
            return False
        self._watch(room, room.view.task_id, events)
        return True

    async def take_back(self, outgoing: Outgoing, error: HarnessError) -> None:
        """Return a message to the composer (`outbox.Sender`)."""
        if outgoing.room is self._room:
            async with self._drawing:
                await self.query_one(Conversation).take_back(outgoing.message_id)
        outgoing.room.has_words = outgoing.room.view is not None
        self.query_one(Composer).put_back(outgoing.text)
        self._show_room()
        self._tell(str(error))

    @work(exclusive=True, group="watch")
    async def _watch(self, room: Room, task_id: str, begun: AsyncGenerator[TaskEvent] | None = None) -> None:
        try:
            if begun is not None:
                await self._watch_turn(room, begun)
            async with aclosing(self._client.follow(task_id, room.cursor)) as events:
                async for event in events:
                    await self.see(room, event)
        except HarnessError as error:
            self._tell(str(error))

    async def _watch_turn(self, room: Room, begun: AsyncGenerator[TaskEvent]) -> None:
        async with aclosing(begun) as events:
            try:
                async for event in events:
                    await self.see(room, event)
            except HarnessError:
                return  # following the task tells whether it can be reached

    async def see(self, room: Room, event: TaskEvent, *, is_watched: bool = False) -> None:
        """Take an event in and show it, unless the room is not open or its own stream shows it."""
        if isinstance(event, Reconnecting | Connected):
            self.query_one(StatusLine).show_link(event.reason if isinstance(event, Reconnecting) else "")
            return
        if is_watched:
            return
        room.see(event)
        if room is self._room:
            async with self._drawing:
                conversation = self.query_one(Conversation)
                await conversation.see(event)
                conversation.note_all(room.queued)
            self._show_room()

    def _enter(self, room: Room) -> None:
        """Open a room; what was watched before is no longer."""
        self._room = room
        self.workers.cancel_group(self, "watch")
        self._clear()
        self._show_room()
        self.query_one(Composer).focus()

    @work(exclusive=True, group="clear")
    async def _clear(self) -> None:
        async with self._drawing:
            await self.query_one(Conversation).clear()

    @work(group="post")
    async def _post(self, outgoing: Outgoing) -> None:
        """Show a message, then put it on its way; the lock keeps them in the order in which they were written."""
        async with self._drawing:
            if outgoing.room is self._room:
                message = MessageView(outgoing.message_id, "user", outgoing.text)
                await self.query_one(Conversation).add(message, SENDING)
            self._outbox.post(outgoing)

    def _show_room(self) -> None:
        self.possible = self._room.possible
        self.query_one(StatusLine).show(self._room)
        self.query_one(Family).show(self._room)
        self.query_one(QuestionPanel).show(self._room.question)
        self.query_one("#welcome").display = not self._room.has_words
        self.query_one(Composer).placeholder = self._room.prompt

    def _tell(self, words: str) -> None:
        self.asks_cancel = False
        self.query_one(Notice).tell(words)

    def _leave_a_lost_terminal(self) -> None:
        if is_terminal_lost():
            self.exit()


async def run_tui(address: Address, participant: str | None, task_id: str | None = None) -> None:
    """Show the full-screen surface until the person leaves, or the terminal does.

    Args:
        address: The harness.
        participant: Who talks; `None`: whom the address's token says.
        task_id: The task to open first; default: a new conversation.

    Raises:
        ConnectionLost: Nothing answers at the address.
        ServerRefused: What answers does not let us in.
    """
    async with connect(address, participant) as client:
        app = HarnessApp(client, task_id)
        with ending_by_signal(app.exit):
            await app.run_async()
