"""The keys at the bottom of every screen, on as many lines as they need: none is ever out of sight."""

from typing import Final

from textual.content import Content
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Static

from tiny_harness.tui.keys import KEYS

GAP: Final = 2
"""Cells between two keys."""
NAMES: Final = {"escape": "Esc", "enter": "Enter"}


class KeyLine(Static):
    """Names each key and what it does. What cannot be done now is dimmed; a click does the same as the key."""

    def __init__(self) -> None:
        super().__init__(id="keys", markup=False)
        self._keys: tuple[Key, ...] = ()

    def on_mount(self) -> None:
        """Follow the screen's keys."""
        self.screen.bindings_updated_signal.subscribe(self, self._follow)
        self._follow(self.screen)

    def on_unmount(self) -> None:
        """Stop following."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Say how many lines it needs."""
        return max(1, len(wrapped(self._keys, width)))

    def render(self) -> Content:
        """Show the keys, line by line."""
        lines = wrapped(self._keys, self.size.width)
        return Content("\n").join(Content(" " * GAP).join(key.content for key in line) for line in lines)

    def _follow(self, screen: Screen[object]) -> None:
        if self.is_attached and screen is self.screen and screen.app.app_focus:
            keys = _keys(screen)
            if keys != self._keys:
                self._keys = keys
                self.refresh(layout=True)


class Key:
    """A key and what it does.

    Args:
        name: The key's name.
        words: What it does.
        action: What a click does, `None` if nothing.
        is_on: Whether it can be done now.
    """

    def __init__(self, name: str, words: str, action: str | None, *, is_on: bool) -> None:
        self._told = (name, words, action, is_on)
        text = Content.assemble(Content.styled(name, "bold"), f" {words}")
        self.width = text.cell_length
        styles = ([f"@click={action}"] if action else []) + ([] if is_on else ["dim"])
        self.content = text.stylize(" ".join(styles))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self._told == other._told

    def __hash__(self) -> int:
        return hash(self._told)


def wrapped(keys: tuple[Key, ...], width: int) -> list[list[Key]]:
    """Distribute keys over lines of a width in cells. Pure."""
    lines: list[list[Key]] = []
    left = 0
    for key in keys:
        if lines and key.width + GAP <= left:
            lines[-1].append(key)
            left -= key.width + GAP
        else:
            lines.append([key])
            left = width - key.width
    return lines


def _keys(screen: Screen[object]) -> tuple[Key, ...]:
    found: dict[str, Key] = {}
    for key, active in screen.active_bindings.items():
        binding = active.binding
        if binding.show and binding.action not in found:
            place = "app" if active.node is screen.app else "screen" if active.node is screen else None
            click = f"{place}.{binding.action}()" if place and active.enabled else None
            found[binding.action] = Key(_name(key), binding.description, click, is_on=active.enabled)
    order = [binding.action for binding in KEYS]
    return tuple(found[action] for action in sorted(found, key=lambda action: [*order, action].index(action)))


def _name(key: str) -> str:
    if key in NAMES:
        return NAMES[key]
    return f"^{key[-1].upper()}" if key.startswith("ctrl+") else key.upper()
