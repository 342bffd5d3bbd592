"""What was said before the messages that a task is shown with: read back from its events, page by page."""

from contextlib import aclosing
from typing import Final

from tiny_harness.client import Changed, HarnessClient, MessageView, Received, Replied, Stepped, TaskEvent, TaskShown

PAGE: Final = 400
"""Events that are read at a time: about 200 messages."""
HEAL_S: Final = 10.0


async def read_older(client: HarnessClient, task_id: str, before: int) -> tuple[tuple[MessageView, ...], int]:
    """Read one page.

    Args:
        client: Who asks.
        task_id: The task.
        before: `seq` up to which to read, an event that there is.

    Returns:
        The page's messages, oldest first, and up to where to read the next page; 0: there is none.

    Raises:
        HarnessError: The harness could not be reached, or refused.
    """
    start = max(0, before - PAGE)
    found: list[MessageView] = []
    async with aclosing(client.follow(task_id, start, heal_s=HEAL_S)) as events:
        async for event in events:
            found += _said(event)
            if isinstance(event, TaskShown | Changed) and (event.seq is None or event.seq >= before):
                break
    return tuple(found), start


def _said(event: TaskEvent) -> tuple[MessageView, ...]:
    if isinstance(event, TaskShown):
        return event.view.messages
    message = event.message if isinstance(event, Received | Replied | Stepped) else None
    return (message,) if message and message.text else ()
