"""Reads A2A requests: what the SDK's parser lets through and a gateway must not. Pure.

Works around the A2A SDK 1.3: no version header means 0.3 and any 1.x passes, unknown enum values are ignored, what
its JSON reader cannot take becomes an internal error with the exception's own words.
"""

import base64
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from a2a import types as a2a
from a2a.utils.errors import JSONParseError, VersionNotSupportedError
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError, SerializeToJsonError
from google.protobuf.message import Message
from starlette.requests import Request

from tiny_harness import states
from tiny_harness.errors import InvalidInput
from tiny_harness.ext import stream
from tiny_harness.store import TaskQuery
from tiny_harness_gateway.views import DEFAULT_HISTORY, MAX_HISTORY

M = TypeVar("M", bound=Message)

VERSION: Final = "1.0"
MAX_NESTING: Final = 64
"""How deep a body may be nested. Readers behind, A2A's and the models', have limits of their own, which are higher."""
_TOO_DEEP: Final = "is nested too deeply"

_FIELD: Final = re.compile(r"Failed to parse ([A-Za-z_]+) field")


def check_version(request: Request) -> None:
    """Let A2A 1.0 pass, named in the header or in the query.

    Raises:
        VersionNotSupportedError: Another version, or none, which means 0.3 (A2A 1.0 §3.6.1).
    """
    given = request.headers.get("a2a-version") or request.query_params.get("A2A-Version") or "0.3"
    if given != VERSION:
        raise VersionNotSupportedError(message=f"A2A version {given!r} is not served here; send A2A-Version: {VERSION}")


def check_status_filter(value: Any) -> None:
    """Refuse a status that A2A does not have."""
    names = [value.name for value in a2a.TaskState.DESCRIPTOR.values]
    # The JavaScript SDK 1.3 writes a filter that was left out as UNRECOGNIZED.
    if value not in (None, "", "UNRECOGNIZED", *names, *range(len(names))):
        raise InvalidInput("invalid_params", "status", f"is none of {', '.join(names)}")


def read_json(body: bytes) -> Any:
    """Read a body that is nested `MAX_NESTING` deep at most.

    Raises:
        JSONParseError: It is no JSON. JSON-RPC has an answer of its own for that.
        InvalidInput: It is nested too deeply to be read.
    """
    try:
        found = json.loads(body)
    except ValueError:
        raise JSONParseError(message="the body is no JSON") from None
    except RecursionError:
        raise InvalidInput("invalid_params", "body", _TOO_DEEP) from None
    # What has fewer brackets than that in all needs no look; a client's message has about ten.
    if body.count(b"[") + body.count(b"{") > MAX_NESTING and _is_deeper(found, MAX_NESTING):
        raise InvalidInput("invalid_params", "body", _TOO_DEEP)
    return found


def _is_deeper(found: Any, depth: int) -> bool:
    """Whether JSON is nested deeper than this, looked at level by level: it may be deeper than Python's stack."""
    level = [found]
    for _ in range(depth):
        level = [inner for outer in level for inner in _contents(outer) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _contents(holder: Any) -> Iterable[Any]:
    if isinstance(holder, dict):
        return holder.values()
    return holder if isinstance(holder, list) else ()


def parse(params: Any, into: M) -> M:
    """Read parameters into their message; unknown fields are ignored.

    Raises:
        InvalidInput: They are malformed.
    """
    if not isinstance(params, dict):
        raise InvalidInput("invalid_params", "params", "must be an object")
    try:
        return ParseDict(params, into, ignore_unknown_fields=True)
    except (ParseError, TypeError, ValueError, OverflowError) as error:
        # Its words are often an exception's of Python's; only the path in them is worth telling.
        field = ".".join(_FIELD.findall(str(error)))
        raise InvalidInput("invalid_params", field or "params", "is malformed") from None


def message_json(request: a2a.SendMessageRequest) -> dict[str, Any]:
    """Give a request's message as the JSON that is stored.

    Raises:
        InvalidInput: It holds a number that JSON does not have.
    """
    try:
        return {"role": "ROLE_USER", **MessageToDict(request.message)}
    except SerializeToJsonError:
        raise InvalidInput("invalid_params", "message", "holds a number that JSON does not have") from None


def refuse_tenant(tenant: str) -> None:
    """Nothing here has tenants; a request for one is not served as if it had none."""
    if tenant:
        raise InvalidInput("invalid_params", "tenant", "this harness has no tenants")


def history_length(holder: Any, default: int = DEFAULT_HISTORY) -> int:
    """Read how many messages of history a request wants."""
    if not holder.HasField("history_length"):
        return default
    if holder.history_length < 0:
        raise InvalidInput("invalid_params", "historyLength", "must not be negative")
    return min(holder.history_length, MAX_HISTORY)


def wants_deltas(requested_extensions: set[str]) -> bool:
    """Whether a stream's client activated the extension that deltas come with."""
    return stream.URI in requested_extensions


def read_cursor(request: Request) -> int | None:
    """Read the number of the last event that a client has.

    Raises:
        InvalidInput: `invalid_cursor`.
    """
    given = request.headers.get("last-event-id")
    if given is None:
        return None
    if not _is_number(given, digits=9):
        raise InvalidInput("invalid_cursor", "Last-Event-ID", "is no event number of this harness")
    return int(given)


def task_query(request: a2a.ListTasksRequest, participant_id: str) -> TaskQuery:
    """Read which tasks a list is to show."""
    size = request.page_size if request.HasField("page_size") else 50
    if not 1 <= size <= 100:
        raise InvalidInput("invalid_params", "pageSize", "must be from 1 to 100")
    since = None
    if request.HasField("status_timestamp_after"):
        since = request.status_timestamp_after.ToDatetime(tzinfo=UTC)
    return TaskQuery(
        participant_id=participant_id,
        context_id=request.context_id or None,
        state=states.TaskState(a2a.TaskState.Name(request.status)) if request.status else None,
        updated_after=since,
        limit=size,
        after=_read_page_token(request.page_token) if request.page_token else None,
    )


def page_token(updated_at: datetime, task_id: str) -> str:
    """Name the place after a task in a list."""
    return base64.urlsafe_b64encode(f"{round(updated_at.timestamp() * 1000)} {task_id}".encode()).decode()


def _read_page_token(token: str) -> tuple[datetime, str]:
    try:
        millis, _, task_id = base64.urlsafe_b64decode(token.encode()).decode().partition(" ")
    except ValueError:
        millis = task_id = ""
    if not _is_number(millis, digits=13) or not task_id:
        raise InvalidInput("invalid_params", "pageToken", "is none of this harness")
    return datetime.fromtimestamp(int(millis) / 1000, UTC), task_id


def _is_number(text: str, digits: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= digits
