"""A page that stays at its end until the reader scrolls away, and grows at its start without moving under the eyes."""

from collections.abc import Generator
from contextlib import contextmanager

from textual.containers import VerticalScroll


class EndScroll(VerticalScroll):
    """Scrolls by keys and wheel; calls `reached_top` when its first lines come into sight."""

    can_focus = True

    def on_mount(self) -> None:
        """Stay at the end."""
        self._is_growing = self._is_wanted = False
        self.anchor()

    @property
    def is_at_end(self) -> bool:
        """Whether the last line is in sight."""
        return self.max_scroll_y == 0 or self.scroll_y >= self.max_scroll_y

    def to_end(self) -> None:
        """Go to the last line and stay there."""
        self.anchor()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Notice when the reader comes near the start."""
        super().watch_scroll_y(old_value, new_value)
        if self.max_scroll_y > 0 and new_value < old_value and new_value < self.size.height:
            self.call_later(self._reach_top)

    async def reached_top(self) -> None:
        """Grow at the start, if there is more."""

    async def _reach_top(self) -> None:
        self._is_wanted = self._is_growing
        if self._is_growing:
            return
        self._is_growing = True
        try:
            await self.reached_top()
        finally:
            self._is_growing = False
        if self._is_wanted:
            self.call_after_refresh(self._look_again)

    async def _look_again(self) -> None:
        """Grow again if the reader has come to the start while it grew, and is there still."""
        if self.max_scroll_y > 0 and self.scroll_y < self.size.height:
            await self._reach_top()

    @contextmanager
    def staying(self) -> Generator[None]:
        """Keep what is in sight where it is while something is put above it."""
        was_at_end, below = self.is_at_end, self.virtual_size.height - self.scroll_y
        yield
        if not was_at_end:
            self.call_after_refresh(self._scroll_back, below)

    def _scroll_back(self, below: float) -> None:
        self.scroll_to(y=self.virtual_size.height - below, animate=False, immediate=True)
