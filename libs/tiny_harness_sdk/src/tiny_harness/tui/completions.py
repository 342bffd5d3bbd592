"""The commands that fit what is being typed."""

import re
from typing import Final

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tiny_harness.client import CommandOffer
from tiny_harness.tui.printable import one_line

_BEGUN: Final = re.compile(r"/([a-z0-9-]*)")


def matching(offers: tuple[CommandOffer, ...], text: str) -> tuple[CommandOffer, ...]:
    """List the commands that a text may become: the one that it is first, the others in their order. Pure."""
    begun = _BEGUN.fullmatch(text)
    if begun is None:
        return ()
    fits = [offer for offer in offers if offer.name.startswith(begun[1])]
    return tuple(sorted(fits, key=lambda offer: offer.name != begun[1]))


class Completions(OptionList, can_focus=False):
    """A list above the composer. It never has the focus: the composer hands it the keys that choose."""

    def __init__(self) -> None:
        super().__init__(id="completions", markup=False)
        self._offers: tuple[CommandOffer, ...] = ()
        self._shown: tuple[CommandOffer, ...] = ()
        self._is_dismissed = False

    @property
    def is_open(self) -> bool:
        """Whether there is something to choose."""
        return bool(self._shown)

    @property
    def chosen(self) -> str:
        """Name of the highlighted command; empty if the list is closed."""
        return self._shown[self.highlighted or 0].name if self._shown else ""

    def offer(self, offers: tuple[CommandOffer, ...]) -> None:
        """Set the commands that there are."""
        self._offers = offers

    def narrow(self, text: str) -> None:
        """Show what fits a text; what was dismissed stays closed until another command is begun."""
        fits = matching(self._offers, text)
        self._is_dismissed = self._is_dismissed and bool(fits)
        self._show(() if self._is_dismissed else fits)

    def move(self, by: int) -> None:
        """Highlight another one; past the end comes the start."""
        self.highlighted = ((self.highlighted or 0) + by) % len(self._shown)

    def dismiss(self) -> None:
        """Close it."""
        self._is_dismissed = True
        self._show(())

    def _show(self, fits: tuple[CommandOffer, ...]) -> None:
        if fits == self._shown:
            return
        self._shown = fits
        self.clear_options()
        self.add_options([Option(_line(offer), id=offer.name) for offer in fits])
        self.highlighted = 0 if fits else None
        self.set_class(bool(fits), "open")


def _line(offer: CommandOffer) -> Content:
    head = f"/{offer.name} {one_line(offer.argument_hint)}".rstrip()
    return Content.assemble(Content.styled(head, "bold"), Content.styled(f"  {one_line(offer.description)}", "dim"))
