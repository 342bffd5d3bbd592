"""The full-screen surface: one conversation at a time, whatever other surfaces do to it shown at once."""

import os
from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from textual import on, work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.command import Provider
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import OptionList, Static, TextArea

from tiny_harness.client import (
    Address,
    HarnessClient,
    connect,
)
from tiny_harness.tui.carrier import Carrier
from tiny_harness.tui.completions import Completions
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.conversation import Conversation
from tiny_harness.tui.family import Family, SubTaskPicker
from tiny_harness.tui.keyline import KeyLine
from tiny_harness.tui.keys import KEYS, Actions
from tiny_harness.tui.lines import Notice, StatusLine
from tiny_harness.tui.picker import TaskPicker
from tiny_harness.tui.question import QuestionPanel
from tiny_harness.tui.room import Room
from tiny_harness.tui.side import Side
from tiny_harness.tui.telling import chosen
from tiny_harness.tui.terminal import ending_by_signal, forget_size, is_terminal_lost, theme_for

TERMINAL_CHECK_S: Final = 1.0
USUAL: Final = 80
"""Columns from which on there is room to say what was used."""
WIDE: Final = 110
"""Columns from which on the details stand beside the conversation."""
WELCOME: Final = (
    "Type a message and press Enter. The agent answers here; the task stays open until you end it. "
    "A / at the start lists the commands.\n\n"
    "Ctrl+J breaks a line, Up brings an earlier message back, PageUp and PageDown move the conversation."
)
SOMETIMES: Final = frozenset({"complete", "cancel", "interrupt", "new", "sub_task", "parent", "copy"})
"""Actions that a room may not allow (`Room.possible`)."""
ASK_CANCEL: Final = "Cancel this task? F3 again cancels it, Escape keeps it."


class HarnessApp(Carrier):
    """Lays out the screen, and says what each key and each choice does."""

    TITLE = "tiny-harness"
    CSS_PATH = "app.tcss"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Actions} | App.COMMANDS
    COMMAND_PALETTE_BINDING = "ctrl+p"
    HORIZONTAL_BREAKPOINTS = [(0, "-small"), (USUAL, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - as Textual types it
    BINDINGS: ClassVar[list[BindingType]] = list(KEYS)

    def __init__(self, client: HarnessClient, task_id: str | None = None) -> None:
        """`task_id` names the task to open first; default: a new conversation."""
        super().__init__(client)
        self._first_task = task_id
        self.theme = theme_for(os.environ)

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        completions = Completions()
        yield StatusLine()
        with Horizontal(id="main"):
            with Vertical(id="page"):
                yield Family()
                yield Static(WELCOME, id="welcome", markup=False)
                yield Conversation()
            yield Side()
        yield Notice()
        yield QuestionPanel()
        yield completions
        yield Composer(completions)
        yield KeyLine()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Offer what the palette has beside the keys' actions."""
        yield SystemCommand(
            "Theme", "Choose other colours; the ansi ones are the terminal's own", self.action_change_theme
        )
        yield SystemCommand("Quit", "Leave; the tasks go on", self.action_quit)

    def on_mount(self) -> None:
        """Start to deliver."""
        self.query_one(StatusLine).show_link("")
        self._show_room()
        self.query_one(Composer).focus()
        self._deliver_all()
        self._load_commands(refresh=False)
        self._check_link()
        if self._first_task is not None:
            self._open(self._first_task)
        if not self.is_headless:
            self.set_interval(TERMINAL_CHECK_S, self._leave_a_lost_terminal)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say which keys work now; the others are dimmed, or not there when there is nothing to answer."""
        if action != "quit" and isinstance(self.screen, ModalScreen):
            return False  # the keys are those of what stands before the conversation
        return self.allows(action)

    def allows(self, action: str) -> bool | None:
        """Say whether the open room allows an action; `None`: not now, `False`: there is nothing to do it with."""
        if action == "answer":
            return action in self._room.possible
        if action not in SOMETIMES or action in self._room.possible:
            return True
        return True if action == "interrupt" and self.asks_cancel else None

    @on(Composer.Submitted)
    def send(self, event: Composer.Submitted) -> None:
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

    @on(Composer.Paged)
    def page(self, event: Composer.Paged) -> None:
        """Move the conversation."""
        conversation = self.query_one(Conversation)
        conversation.scroll_page_up(animate=False) if event.by < 0 else conversation.scroll_page_down(animate=False)

    @on(Side.Opened)
    def open_sub_task(self, event: Side.Opened) -> None:
        """Open a sub-task out of its list."""
        self._open(event.task_id)

    @on(Conversation.Wanting)
    def want_older(self) -> None:
        """Read what came before."""
        self._read_older()

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

    def action_details(self) -> None:
        """Show the details or the conversation alone; on a narrow screen one takes the other's place."""
        self.screen.toggle_class("-flipped")
        self.call_after_refresh(self._show_details)

    def _show_details(self) -> None:
        side = self.query_one(Side)
        side.show(self._room)
        if side.display and not self.screen.has_class("-wide"):
            side.take_keys()
        else:
            self.query_one(Composer).focus()

    def action_copy(self) -> None:
        """Copy the last reply."""
        self.copy_to_clipboard(self.query_one(Conversation).last_reply)
        self._tell("The last reply is on the clipboard, if your terminal lets programs put something there.")

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
    forget_size(os.environ)
    async with connect(address, participant) as client:
        app = HarnessApp(client, task_id)
        with ending_by_signal(app.exit):
            await app.run_async()
