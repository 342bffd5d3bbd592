"""The demo's story: what a customer says to the support desk, and what they see of what it does."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from tiny_harness.cli.output import choices_line, show, state_words
from tiny_harness.client import Changed, HarnessClient, Question, Received, Stepped, TaskEvent, TaskView, TurnResult
from tiny_harness.errors import TaskEnded
from tiny_harness.ext.plan import Plan
from tiny_harness.states import AWAITING_APPROVAL, TaskState
from tiny_harness.tui.telling import MARKS, note_words, plan_lines, used

GREETING: Final = "Hello!"
CASE: Final = "My kettle arrived broken. It is order A-17."
MAX_QUESTIONS: Final = 10
"""The story has two."""
LATE: Final = "One more thing ..."

Answer = Callable[[Question], str | None]
"""Answers a question; `None`: there is no answer to it in the story."""


def answer_of(question: Question) -> str | None:
    """Give the customer's answers: the money goes to the card, and the refund may be made."""
    if question.sub_state == AWAITING_APPROVAL:
        return "approve"
    return "card" if "card" in question.choices else None


class Story:
    """Tells the story on one task."""

    def __init__(self, client: HarnessClient, *, say: Callable[[str], None] = show, answer: Answer = answer_of) -> None:
        """Begin nothing yet.

        Args:
            client: The customer's.
            say: Prints a line.
            answer: What the customer answers.
        """
        self._client = client
        self._say = say
        self._answer = answer
        self._task_id: str | None = None
        self._seq: int | None = None
        self._plan: Plan | None = None
        self._is_child_open = False

    async def tell(self) -> TaskView:
        """Tell it until the agent waits for nothing in particular.

        Returns:
            The task as it is then, open.
        """
        await self._speak(GREETING)
        result = await self._speak(CASE)
        for _ in range(MAX_QUESTIONS):
            question = result.task.question
            answer = self._answer(question) if question else None
            if question is None or answer is None:
                break
            await self._until_child_ended()
            result = await self._reply(question, answer)
        return result.task

    async def end(self) -> None:
        """Complete the task, and try to go on with it."""
        assert self._task_id is not None
        done = await self._client.complete(self._task_id)
        self._say(f"you    (complete)\n       [{state_words(done)}]\n")
        self._say(f"you    {LATE}")
        try:
            await self._client.send(LATE, task_id=self._task_id)
        except TaskEnded as refusal:
            self._say(f"       refused: {refusal}\n")

    async def _speak(self, text: str) -> TurnResult:
        self._say(f"you    {text}")
        result = await self._client.send(text, task_id=self._task_id, on_event=self._tell)
        self._task_id = result.task.task_id
        self._heard(result)
        return result

    async def _reply(self, question: Question, answer: str) -> TurnResult:
        if question.request_id is None or self._task_id is None:
            return await self._speak(answer)
        self._say(f"you    ({answer})")
        result = await self._client.answer(self._task_id, question.request_id, answer, on_event=self._tell)
        self._heard(result)
        return result

    def _heard(self, result: TurnResult) -> None:
        self._say("agent  " + result.reply.strip().replace("\n", "\n       "))
        question = result.task.question
        choices = f"; {choices_line(question)}" if question and question.choices else ""
        self._say(f"       [{state_words(result.task)}{choices}]\n")

    def _tell(self, event: TaskEvent) -> None:
        """Tell what the agent does on the way to its reply."""
        if not isinstance(event, Changed):
            return
        self._seq = event.seq or self._seq
        if isinstance(event, Stepped):
            self._aside(used(event.tool_calls))
        if isinstance(event, Received) and event.message.role == "note":
            self._aside(note_words(event.message.text))
        if event.data is not None:
            self._is_child_open = any(not TaskState(child.state).is_terminal for child in event.data.sub_tasks)
            self._show_plan(event.data.plan)

    def _show_plan(self, plan: Plan | None) -> None:
        if plan is None or plan == self._plan:
            return
        is_new, self._plan = self._plan is None, plan
        head = plan_lines(plan)[0]
        steps = ", ".join(f"{MARKS[step.status]} {step.name}" for step in plan.steps)
        self._aside(f"{head}: {steps}" if is_new else head)

    def _aside(self, words: str) -> None:
        self._say("       " + words.replace("\n", "\n       "))

    async def _until_child_ended(self) -> None:
        """Follow the task until its sub-task has ended: the answer would come too early."""
        if not self._is_child_open or self._task_id is None:
            return
        async with aclosing(self._client.follow(self._task_id, self._seq)) as events:
            async for event in events:
                self._tell(event)
                if not self._is_child_open:
                    break
        self._say("")
