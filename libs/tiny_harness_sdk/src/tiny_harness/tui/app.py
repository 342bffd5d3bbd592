"""The full-screen surface: one conversation at a time, whatever other surfaces do to it shown at once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.widgets import Footer, Static, TextArea

from tiny_harness.client import (
    Address,
    Changed,
    Connected,
    DeltaText,
    HarnessClient,
    MessageView,
    Received,
    Reconnecting,
    Replied,
    TaskEvent,
    TaskShown,
    connect,
)
from tiny_harness.errors import HarnessError, TaskNotCancelable
from tiny_harness.ids import new_id
from tiny_harness.states import TaskState
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.conversation import QUEUED, SENDING, Conversation
from tiny_harness.tui.lines import Notice, StatusLine
from tiny_harness.tui.picker import TaskPicker
from tiny_harness.tui.room import Room
from tiny_harness.tui.terminal import ending_by_signal, is_terminal_lost

TERMINAL_CHECK_S: Final = 1.0
WELCOME: Final = "Type a message and press Enter. The agent answers here; the task stays open until you end it."
ENDED: Final = "This task has ended. A message starts a new one in the same context."
ASK_CANCEL: Final = "Cancel this task? F3 again cancels it, Escape keeps it."


@dataclass(frozen=True)
class Outgoing:
    """A message on its way to a room."""

    room: Room
    text: str
    message_id: str


class HarnessApp(App[None]):
    """Composes the screen and carries words between the person and the client."""

    TITLE = "tiny-harness"
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2", "complete", "Complete"),
        Binding("f3", "cancel", "Cancel"),
        Binding("escape", "interrupt", "Interrupt"),
        Binding("f4,ctrl+n", "new", "New"),
        Binding("f5,ctrl+t", "tasks", "Tasks"),
        Binding("ctrl+q", "quit", "Quit", priority=True),
    ]

    phase: reactive[TaskState | None] = reactive(None, bindings=True)
    """The open task's state; the keys in the footer follow it."""
    asks_cancel: reactive[bool] = reactive(False, bindings=True)
    """Whether the next F3 cancels."""

    def __init__(self, client: HarnessClient, task_id: str | None = None) -> None:
        """`task_id` names the task to open first; default: a new conversation."""
        super().__init__()
        self._client = client
        self._first_task = task_id
        self._room = Room()
        self._outbox: asyncio.Queue[Outgoing] = asyncio.Queue()
        self._drawing = asyncio.Lock()
        """Two streams may bring news at once; each is drawn to its end."""
        self._unsent: dict[str, str] = {}
        """Message ids of texts that could not be sent: they may be in all the same, so the id is used again."""

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield StatusLine()
        yield Static(WELCOME, id="welcome", markup=False)
        yield Conversation()
        yield Notice()
        yield Composer(id="composer", placeholder="Message", soft_wrap=True, show_line_numbers=False)
        yield Footer()

    def on_mount(self) -> None:
        """Start to deliver."""
        self.query_one(StatusLine).show_link("")
        self._show_room()
        self.query_one(Composer).focus()
        self._deliver_all()
        if self._first_task is not None:
            self._open(self._first_task)
        if not self.is_headless:
            self.set_interval(TERMINAL_CHECK_S, self._leave_a_lost_terminal)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say which keys work now; the others are dimmed."""
        enabled = {
            "complete": self._room.is_open,
            "cancel": self._room.is_open,
            "interrupt": self._room.is_busy or self.asks_cancel,
            "new": self._room.view is not None,
        }
        return True if enabled.get(action, True) else None

    @on(Composer.Sent)
    def send(self, event: Composer.Sent) -> None:
        """Put a message on its way, shown at once."""
        self._tell("")
        room = self._room
        if room.has_ended and room.view:
            room = Room(context_id=room.view.context_id)
            self._enter(room)
        room.has_words = True
        self._show_room()
        message_id = self._unsent.pop(event.text, None) or new_id()
        self._post(Outgoing(room, event.text, message_id))

    @on(TextArea.Changed)
    def forget_question(self) -> None:
        """Writing on answers the question with no."""
        if self.asks_cancel:
            self._tell("")

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

    def _open(self, task_id: str) -> None:
        """Go to a task."""
        self._tell("")
        room = Room(has_words=True)
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

    @work(group="deliver")
    async def _deliver_all(self) -> None:
        while True:
            outgoing = await self._outbox.get()
            try:
                await self._deliver(outgoing)
            except HarnessError as error:
                await self._return(outgoing, error)

    async def _deliver(self, outgoing: Outgoing) -> None:
        """Send a message and wait until the harness has it; what follows is watched."""
        room = outgoing.room
        task_id = room.view.task_id if room.view else None
        events = self._client.stream(
            outgoing.text, task_id=task_id, context_id=room.context_id, message_id=outgoing.message_id
        )
        is_handed_over = False
        try:
            async for event in events:
                await self._see(room, event, is_watched=task_id is not None)
                if _is_receipt(event, outgoing.message_id):
                    break
            if task_id is None and room.view and room is self._room:
                # The stream of a first message goes on as the room's: pieces of the reply are never repeated.
                is_handed_over = True
                self._watch(room, room.view.task_id, events)
        finally:
            if not is_handed_over:
                await events.aclose()

    async def _return(self, outgoing: Outgoing, error: HarnessError) -> None:
        self._unsent[outgoing.text] = outgoing.message_id
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
                    await self._see(room, event)
        except HarnessError as error:
            self._tell(str(error))

    async def _watch_turn(self, room: Room, begun: AsyncGenerator[TaskEvent]) -> None:
        async with aclosing(begun) as events:
            try:
                async for event in events:
                    await self._see(room, event)
            except HarnessError:
                return  # following the task tells whether it can be reached

    async def _see(self, room: Room, event: TaskEvent, *, is_watched: bool = False) -> None:
        """Take an event in and show it, unless the room is not open or its own stream shows it."""
        if isinstance(event, Reconnecting | Connected):
            self.query_one(StatusLine).show_link(event.reason if isinstance(event, Reconnecting) else "")
            return
        if is_watched:
            return
        room.see(event)
        if room is self._room:
            async with self._drawing:
                await self._draw(room, event)
            self._show_room()

    async def _draw(self, room: Room, event: TaskEvent) -> None:
        conversation = self.query_one(Conversation)
        if isinstance(event, TaskShown):
            await conversation.show(event.view)
        elif isinstance(event, DeltaText):
            await conversation.piece(event)
        elif isinstance(event, Received):
            await conversation.add(event.message, QUEUED if event.received_as == "queued" else "")
        elif isinstance(event, Replied):
            await conversation.add(event.message)
        if isinstance(event, Changed) and event.in_reply_to:
            await conversation.cut()
        conversation.note_all(room.queued)

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
            self._outbox.put_nowait(outgoing)

    def _show_room(self) -> None:
        self.phase = self._room.state
        self.query_one(StatusLine).show(self._room)
        self.query_one("#welcome").display = not self._room.has_words
        self.query_one(Composer).placeholder = ENDED if self._room.has_ended else "Message"

    def _tell(self, words: str) -> None:
        self.asks_cancel = False
        self.query_one(Notice).tell(words)

    def _leave_a_lost_terminal(self) -> None:
        if is_terminal_lost():
            self.exit()


async def run_tui(address: Address, participant: str, task_id: str | None = None) -> None:
    """Show the full-screen surface until the person leaves, or the terminal does.

    Args:
        address: The harness.
        participant: Who talks.
        task_id: The task to open first; default: a new conversation.

    Raises:
        ConnectionLost: Nothing answers at the address.
        ServerRefused: What answers does not let us in.
    """
    async with connect(address, participant) as client:
        app = HarnessApp(client, task_id)
        with ending_by_signal(app.exit):
            await app.run_async()


def _is_receipt(event: TaskEvent, message_id: str) -> bool:
    if isinstance(event, TaskShown):
        return any(message.message_id == message_id for message in event.view.messages)
    if isinstance(event, Received):
        return event.message.message_id == message_id
    return isinstance(event, Changed) and message_id in event.in_reply_to
