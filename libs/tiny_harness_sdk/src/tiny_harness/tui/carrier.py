"""Carries words between the person and the client: rooms, streams, messages on their way, the connection."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from textual import work
from textual.app import App
from textual.reactive import reactive
from textual.widgets import Static

from tiny_harness.client import (
    Changed,
    Connected,
    HarnessClient,
    MessageView,
    Question,
    Reconnecting,
    TaskEvent,
    TaskShown,
)
from tiny_harness.errors import HarnessError, TaskNotCancelable
from tiny_harness.tui.completions import Completions
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.conversation import Conversation
from tiny_harness.tui.driver import LastingDriver
from tiny_harness.tui.family import Family
from tiny_harness.tui.lines import Notice, StatusLine
from tiny_harness.tui.older import read_older
from tiny_harness.tui.outbox import Outbox, Outgoing
from tiny_harness.tui.question import QuestionPanel
from tiny_harness.tui.room import Room
from tiny_harness.tui.side import Side
from tiny_harness.tui.words import SENDING
from tiny_harness.tui.writing import Drafts

LINK_CHECK_S: Final = 2.0
"""How often to ask whether the harness is there while no stream tells it."""
LINK_TIMEOUT_S: Final = 2.5
FULL: Final = 100
"""Messages with which a task is shown at most; one with fewer is shown whole."""


class Carrier(App[None]):
    """One open room at a time, on a screen that the subclass lays out."""

    possible: reactive[frozenset[str]] = reactive(frozenset[str](), bindings=True)
    """The actions that the open room allows; the keys in the footer follow them."""
    asks_cancel: reactive[bool] = reactive(False, bindings=True)
    """Whether the next F3 cancels."""

    def __init__(self, client: HarnessClient) -> None:
        super().__init__(driver_class=LastingDriver)
        self._client = client
        self._room = Room()
        self._outbox = Outbox(client)
        self._drafts = Drafts()
        self._is_watching = False
        """Whether a stream tells whether the harness is there."""
        self._drawing = asyncio.Lock()
        """Two streams may bring news at once; each is drawn to its end."""

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
        if outgoing.room is self._room:
            self.query_one(Composer).put_back(outgoing.text)
        else:
            self._drafts.put_back(outgoing.room.task_id, outgoing.text)
        self._show_room()
        self._tell(str(error))

    @work(exclusive=True, group="watch")
    async def _watch(self, room: Room, task_id: str, begun: AsyncGenerator[TaskEvent] | None = None) -> None:
        self._is_watching = True
        try:
            if begun is not None:
                await self._watch_turn(room, begun)
            async with aclosing(self._client.follow(task_id, room.cursor)) as events:
                async for event in events:
                    await self.see(room, event)
        except HarnessError as error:
            self._tell(str(error))
        finally:
            if room is self._room:
                self._is_watching = False

    async def _watch_turn(self, room: Room, begun: AsyncGenerator[TaskEvent]) -> None:
        async with aclosing(begun) as events:
            try:
                async for event in events:
                    await self.see(room, event)
            except HarnessError:
                return  # following the task tells whether it can be reached

    async def see(self, room: Room, event: TaskEvent, *, is_watched: bool = False) -> None:
        """Take an event in and show it, unless the room is not open or its own stream shows it."""
        if not self._is_shown:
            return
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
            self._follow_up(event)

    def _follow_up(self, event: TaskEvent) -> None:
        """Ask for what an event does not tell."""
        if isinstance(event, TaskShown) and self.query_one(Conversation).is_short and len(event.view.messages) >= FULL:
            self._read_older()
        if isinstance(event, Changed) and (event.ends_turn or event.state.is_terminal):
            self._read_usage()

    @work(exclusive=True, group="usage")
    async def _read_usage(self) -> None:
        """Learn what the task has used: events do not tell it."""
        room = self._room
        if room.task_id is None:
            return
        try:
            told = await self._client.task(room.task_id, 0)
        except HarnessError:
            return  # it is told after the next turn
        if room.view is not None:
            room.view = replace(room.view, usage=told.usage)
            if room is self._room:
                self._show_room()

    @work(group="older")
    async def _read_older(self) -> None:
        """Read what came before the first message that is shown, page by page until there is something new."""
        room, conversation = self._room, self.query_one(Conversation)
        room.wants_older = room.is_reading
        if room.is_reading or room.task_id is None:
            return
        room.is_reading = True
        try:
            while room.oldest and room is self._room:
                messages, room.oldest = await read_older(self._client, room.task_id, room.oldest)
                async with self._drawing:
                    is_more = room is self._room and await conversation.prepend(messages)
                if is_more and not room.wants_older:
                    return
                room.wants_older = room.wants_older and not is_more
        except HarnessError as error:
            self._tell(str(error))
        finally:
            room.is_reading = False

    @work(group="link")
    async def _check_link(self) -> None:
        """Say whether the harness is there while no stream does."""
        while True:
            await asyncio.sleep(LINK_CHECK_S)
            if self._is_watching:
                continue
            trouble = ""
            try:
                async with asyncio.timeout(LINK_TIMEOUT_S):
                    await self._client.tasks(limit=1)
            except (HarnessError, TimeoutError) as error:
                trouble = str(error) or "no answer"
            if self._is_shown and not self._is_watching:
                self.query_one(StatusLine).show_link(trouble)

    def _enter(self, room: Room) -> None:
        """Open a room; what was watched before is no longer, what was being written waits for its room."""
        composer = self.query_one(Composer)
        self._drafts.leave(self._room.task_id, composer.take_out())
        composer.go_on(self._drafts.take(room.task_id))
        self._is_watching = False
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

    @property
    def _is_shown(self) -> bool:
        """Whether the screen is whole; news may come while it is being taken down."""
        return bool(self.screen_stack and self.screen_stack[0].query("#name"))

    def _show_room(self) -> None:
        if not self._is_shown:
            return
        self.possible = self._room.possible
        self.query_one(StatusLine).show(self._room)
        self.query_one(Family).show(self._room)
        self.query_one(Side).show(self._room)
        self.query_one(QuestionPanel).show(self._room.question)
        self.query_one("#welcome", Static).display = not self._room.has_words
        self.query_one(Composer).placeholder = self._room.prompt

    def _tell(self, words: str) -> None:
        self.asks_cancel = False
        if self._is_shown:
            self.query_one(Notice).tell(words)
