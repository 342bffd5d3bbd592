"""An open question: a panel above the composer, with what can be chosen. It never takes the keys by itself."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tiny_harness.client import Question
from tiny_harness.tui.printable import one_line, printable
from tiny_harness.tui.telling import asked


class QuestionPanel(Vertical):
    """Shows one question; without one, it takes no room."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back")]

    class Chosen(Message):
        """The person has chosen an answer."""

        def __init__(self, question: Question, choice: str) -> None:
            super().__init__()
            self.question = question
            self.choice = choice

    class Left(Message):
        """The person wants to write instead, or there is nothing to choose any more."""

    def __init__(self) -> None:
        super().__init__(id="question")
        self.question: Question | None = None

    def compose(self) -> ComposeResult:
        """Lay out the words over the choices."""
        yield Static(id="question-words", markup=False)
        yield OptionList(id="question-choices", markup=False)

    def show(self, question: Question | None) -> None:
        """Show a question, or none."""
        if question == self.question:
            return
        self.question = question
        choices = self.query_one(OptionList)
        if question is None and choices.has_focus:
            self.post_message(self.Left())
        self.set_class(question is not None, "open")
        choices.clear_options()
        choices.display = bool(question and question.choices)
        if question is not None:
            words = Content.assemble(Content.styled(asked(question), "bold"), f"\n{printable(question.words)}".rstrip())
            self.query_one("#question-words", Static).update(words)
            choices.add_options([Option(one_line(choice)) for choice in question.choices])
            choices.highlighted = 0 if question.choices else None

    def take_keys(self) -> None:
        """Let the arrows choose, and Enter answer; at once, for the next key may be there already."""
        self.screen.set_focus(self.query_one(OptionList))

    @on(OptionList.OptionSelected)
    def choose(self, event: OptionList.OptionSelected) -> None:
        """Hand over what was chosen."""
        event.stop()
        if self.question is not None:
            self.post_message(self.Chosen(self.question, self.question.choices[event.option_index]))
            self.post_message(self.Left())

    def action_leave(self) -> None:
        """Go back to writing."""
        self.post_message(self.Left())
