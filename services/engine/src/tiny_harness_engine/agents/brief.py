"""The message that gives a piece of work to an agent: the same on every attempt, and never a command there. Pure."""

from typing import Any

from tiny_harness.contracts import Model
from tiny_harness.envelope import MEDIA_TYPE
from tiny_harness.ext import commands, stream


class Brief(Model):
    """What an agent is asked to do; kept in the store for as long as the parent."""

    goal: str
    description: str = ""
    acceptance_criteria: tuple[str, ...] = ()


def brief_message(child_id: str, brief: Brief, *, is_harness: bool) -> dict[str, Any]:
    """Write it as an A2A message.

    Args:
        child_id: Our id of the sub-task: it names the message, its context and its idempotency key.
        brief: What is to be done.
        is_harness: Whether the agent reads a task's data, which then carries what does not fit a sentence.
    """
    if is_harness:
        parts = [{"text": brief.goal}, {"data": _envelope(brief), "mediaType": MEDIA_TYPE}]
    else:
        parts = [{"text": _text(brief)}]
    return {
        "messageId": f"brief:{child_id}",
        "contextId": child_id,
        "role": "ROLE_USER",
        "parts": parts,
        "metadata": {commands.KEY: {"literal": True}, stream.KEY: {"idempotency_key": child_id}},
    }


def _envelope(brief: Brief) -> dict[str, Any]:
    payload: dict[str, Any] = {"goal": brief.goal}
    if brief.description:
        payload["description"] = brief.description
    if brief.acceptance_criteria:
        payload["acceptance_criteria"] = [{"text": text} for text in brief.acceptance_criteria]
    return {"kind": "task", "payload": payload}


def _text(brief: Brief) -> str:
    sections = [brief.goal]
    if brief.description:
        sections.append(brief.description)
    if brief.acceptance_criteria:
        sections.append("It is done when:\n" + "\n".join(f"- {text}" for text in brief.acceptance_criteria))
    return "\n\n".join(sections)
