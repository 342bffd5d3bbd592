"""What happens to a task, each time in a few words on one line: the list of events. Pure."""

from datetime import datetime

from tiny_harness.client import Changed, Received, Replied, StateChanged, Stepped, TaskEvent, TaskShown
from tiny_harness.states import describe
from tiny_harness.tui.printable import one_line
from tiny_harness.tui.telling import used


def happened(event: TaskEvent) -> str:
    """Put an event into words, such as `10:31:05 #4 Replied · Input required · Your turn`; empty if it is none."""
    if isinstance(event, TaskShown):
        return " ".join(part for part in (clock(event.view.updated_at), number(event.seq), "Shown whole") if part)
    if not isinstance(event, Changed):
        return ""
    state = describe(event.state, event.sub_state)
    return " ".join(part for part in (clock(event.at), number(event.seq), f"{_what(event)} · {state}") if part)


def clock(at: datetime | None) -> str:
    """Show a time of day where we are; empty if there is none."""
    return at.astimezone().strftime("%H:%M:%S") if at else ""


def number(seq: int | None) -> str:
    """Show an event's number; empty if it has none."""
    return "" if seq is None else f"#{seq}"


def _what(event: Changed) -> str:
    if isinstance(event, Received):
        return "Note" if event.message.role == "note" else f"Message, {event.received_as or 'taken in'}"
    if isinstance(event, Stepped):
        return one_line(used(event.tool_calls)).capitalize()
    if isinstance(event, Replied):
        return f"/{one_line(event.message.command.name)}" if event.message.command else "Reply"
    if isinstance(event, StateChanged) and event.data is not None:
        return "Data changed"
    return "State changed"
