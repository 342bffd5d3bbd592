"""What the calls of a step do to its task: the next step, a question that ends the turn, or a pause. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from tiny_harness.contracts import Model, Question, TaskSnapshot
from tiny_harness.envelope import WorkerUpdate
from tiny_harness.ext.stream import ToolUse
from tiny_harness.hooks.verdict import Verdict
from tiny_harness.states import AWAITING_ANSWER, TaskState
from tiny_harness_engine.core import questions, supervision
from tiny_harness_engine.core.acting import Applied, Asking, TaskLimits, apply_act, needs_approval
from tiny_harness_engine.core.acts import Act
from tiny_harness_engine.core.drafts import Decision, Draft
from tiny_harness_engine.core.lifecycle import NO_STEP, TurnReport, is_current, with_report


class CallPlan(Model):
    """A call that a step asked for, as it is to be carried out."""

    call: int
    """Its place within the step, from 0."""
    call_id: str
    name: str
    is_parallel: bool = False
    """Whether it only reads, so that it may run beside its neighbours."""
    act: Act | None = None
    """Of an intrinsic that changes the task: what it does. All others are tools."""
    must_vet: bool = False
    """Of one that changes the task: whether hooks have a say, so that an activity asks them first."""
    skill: str | None = None
    """The skill that the agent has once this has worked."""
    error: str | None = None
    """Why it cannot be carried out at all."""

    @property
    def is_tool(self) -> bool:
        """Whether it is carried out in an activity."""
        return (self.act is None or self.must_vet) and self.error is None


class ToolAnswer(Model):
    """How a tool call went. Its words are in the store."""

    is_error: bool = False
    ask: str | None = None
    """Why a person must allow it first; nothing was called."""
    act: Act | None = None
    """Of a call that changes the task: what hooks left of it, to be applied; `None`: they refused or replaced it."""
    is_unknown: bool = False
    """It may have been made by an attempt that died, and must not be made twice."""
    verdicts: tuple[Verdict, ...] = ()


Answers = Mapping[int, ToolAnswer]
"""Of the tools that were called, by their places."""


def pause_step(
    snapshot: TaskSnapshot, turn: int, step: int, plans: tuple[CallPlan, ...], answers: Answers
) -> Decision | None:
    """Pause the turn if a person must allow one of its calls first; `None` if nobody must, or the turn is over."""
    if not is_current(snapshot, turn, step):
        return None
    for plan in plans:
        answer = answers.get(plan.call)
        act = answer.act if answer else plan.act
        why = (answer.ask if answer else None) or (needs_approval(snapshot, act) if act else None)
        if why is not None and not any(said.call == plan.call for said in snapshot.approvals):
            question = Question(request_id=f"{turn}.{step}.{plan.call}", kind="approval", call=plan.call)
            return questions.pause(snapshot, question, why)
    return None


def pause_for_budget(snapshot: TaskSnapshot, turn: int, step: int, why: str) -> Decision | None:
    """Pause the turn until somebody grants another budget; `None` if it is over already."""
    if not is_current(snapshot, turn, step):
        return None
    question = Question(request_id=f"budget.{turn}.{step}.{snapshot.budgets}", kind="budget")
    return questions.pause(snapshot, question, why)


def end_step(
    snapshot: TaskSnapshot,
    turn: int,
    step: int,
    plans: tuple[CallPlan, ...],
    answers: Answers,
    limits: TaskLimits,
    report: TurnReport,
) -> Decision | None:
    """Carry out what needs no tool, and go on to the next step, or ask somebody; `None` if the turn is over already."""
    if not is_current(snapshot, turn, step):
        return None
    applied = Applied(snapshot, limits=limits)
    for plan in plans:
        applied = _carry_out(applied, plan, answers)
    applied = _with_skills(applied, plans, answers)
    asking = applied.asking or _doubt(plans, answers)
    failed = {result.call for result in applied.results if result.is_error}
    failed |= {call for call, answer in answers.items() if answer.is_error}
    uses = tuple(ToolUse(call_id=plan.call_id, name=plan.name, is_error=plan.call in failed) for plan in plans)
    if applied.update is not None:
        decision = _report(snapshot, applied, uses, applied.update)
    else:
        decision = _ask(snapshot, applied, uses, asking) if asking else _go_on(snapshot, applied, uses)
    verdicts = (*report.verdicts, *(verdict for answer in answers.values() for verdict in answer.verdicts))
    told = decision.model_copy(
        update={"results": applied.results, "children": applied.children, "remotes": applied.remotes}
    )
    return with_report(told, report.model_copy(update={"verdicts": verdicts}))


def _carry_out(applied: Applied, plan: CallPlan, answers: Answers) -> Applied:
    if plan.error is not None:
        return applied.told(plan.call, plan.error, is_error=True)
    answer = answers.get(plan.call)
    if plan.is_tool:
        if answer is None:
            told = "It was not called: the call before it has to be settled first."
            return applied.told(plan.call, told, is_error=True)
        return applied if answer.act is None else apply_act(applied, plan.call, answer.act)
    if plan.act is None:
        return applied
    said = next((said for said in applied.snapshot.approvals if said.call == plan.call), None)
    if said is not None and not said.allowed:
        return applied.told(plan.call, f"It was refused. {said.reason}".strip(), is_error=True)
    return apply_act(applied, plan.call, plan.act)


def _with_skills(applied: Applied, plans: tuple[CallPlan, ...], answers: Answers) -> Applied:
    """Note the skills that were loaded: their instructions stand in the prompt from now on."""
    loaded = [plan.skill for plan in plans if plan.skill and plan.call in answers and not answers[plan.call].is_error]
    skills = tuple(dict.fromkeys((*applied.snapshot.skills, *loaded)))
    return replace(applied, snapshot=applied.snapshot.model_copy(update={"skills": skills}))


def _doubt(plans: tuple[CallPlan, ...], answers: Answers) -> Asking | None:
    """Ask whether a call took effect that may have been cut off, and must not be made twice."""
    names = [plan.name for plan in plans if plan.call in answers and answers[plan.call].is_unknown]
    if not names:
        return None
    return Asking(f"The harness was stopped while it called {names[0]}. Did the call take effect?")


def _go_on(snapshot: TaskSnapshot, applied: Applied, uses: tuple[ToolUse, ...]) -> Decision:
    """Begin the next step, which reads the messages that came meanwhile."""
    after = applied.snapshot.model_copy(
        update={
            "step": snapshot.step + 1,
            "reading": (*snapshot.reading, *snapshot.mailbox),
            "read_count": len(snapshot.reading),
            "mailbox": (),
            "approvals": (),
        }
    )
    return Decision(snapshot=after, drafts=(_step(snapshot, applied.snapshot, uses),), turn=snapshot.turn)


def _ask(snapshot: TaskSnapshot, applied: Applied, uses: tuple[ToolUse, ...], asking: Asking) -> Decision:
    """End the turn with a question. Messages that came before it are no answers: they are read after it."""
    after = applied.snapshot.model_copy(
        update={"state": TaskState.INPUT_REQUIRED, "sub_state": AWAITING_ANSWER, "step": 0, "reading": (), **NO_STEP}
    )
    question = Draft(
        kind="reply",
        state=after.state,
        sub_state=after.sub_state,
        turn=snapshot.turn,
        in_reply_to=tuple(message.message_id for message in snapshot.reading),
        words=asking.words,
        choices=asking.choices,
    )
    drafts = (_step(snapshot, applied.snapshot, uses), question)
    return Decision(snapshot=after, drafts=drafts, turn=snapshot.turn)


def _report(snapshot: TaskSnapshot, applied: Applied, uses: tuple[ToolUse, ...], update: WorkerUpdate) -> Decision:
    """End the turn with what the agent, as the task's worker, says of it."""
    answered = tuple(message.message_id for message in snapshot.reading)
    after = supervision.end_by(applied.snapshot.model_copy(update={"step": 0, "reading": (), **NO_STEP}), update)
    told = supervision.drafts_of(after, update, answered)
    drafts = tuple(draft.model_copy(update={"turn": snapshot.turn}) for draft in told)
    return Decision(snapshot=after, drafts=(_step(snapshot, applied.snapshot, uses), *drafts), turn=snapshot.turn)


def _step(before: TaskSnapshot, after: TaskSnapshot, uses: tuple[ToolUse, ...]) -> Draft:
    """Tell of the step; and of the task's data, if its own calls changed them."""
    return Draft(
        kind="step",
        state=before.state,
        turn=before.turn,
        step=before.step,
        read=tuple(message.message_id for message in before.reading[before.read_count :]),
        tool_calls=uses,
        tells_task=after != before,
    )
