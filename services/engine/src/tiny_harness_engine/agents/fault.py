"""What goes wrong with an agent somewhere else, and what that means for the call that was made.

Whatever the A2A client or the network raises becomes one exception here; only a kind and a sentence cross into
workflows.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import httpx
from a2a.client.errors import A2AClientError
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    InvalidRequestError,
    MethodNotFoundError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)

from tiny_harness_engine.core.remote import Fault, FaultKind
from tiny_harness_engine.tools.words import one_line

MAX_REASON_CHARS: Final = 300
PASSING_STATUSES: Final = frozenset({408, 425, 429, 503})
"""The server says itself that it did nothing, and that one may come again."""

_KINDS: Final[dict[type[A2AError], FaultKind]] = {
    TaskNotFoundError: "gone",
    TaskNotCancelableError: "final",
    ContentTypeNotSupportedError: "final",
    ExtensionSupportRequiredError: "final",
    InvalidParamsError: "final",
    InvalidRequestError: "final",
    MethodNotFoundError: "final",
    UnsupportedOperationError: "final",
    VersionNotSupportedError: "final",
}


class AgentFault(Exception):
    """An agent gave no answer that can be used."""

    def __init__(self, kind: FaultKind, reason: str) -> None:
        super().__init__(reason)
        self.kind: FaultKind = kind
        self.reason = one_line(reason, MAX_REASON_CHARS)

    def value(self) -> Fault:
        """Give it as a value that can cross."""
        return Fault(kind=self.kind, reason=self.reason)


@contextmanager
def translated() -> Generator[None]:
    """Raise `AgentFault` for whatever goes wrong in a call to an agent."""
    try:
        yield
    except AgentFault:
        raise
    except A2AClientError as error:
        raise _from_transport(error) from error
    except A2AError as error:
        raise AgentFault(_KINDS.get(type(error), "doubtful"), f"it refused: {error.message}") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _from_network(error) from error
    except TimeoutError as error:
        raise AgentFault("doubtful", "it did not answer in time") from error
    except NotImplementedError as error:
        raise AgentFault("final", "it does not stream") from error
    except Exception as error:
        # The client reads answers of a stranger, and raises whatever a wrong shape makes it stumble over.
        raise AgentFault("doubtful", f"its answer is not A2A 1.0 ({type(error).__name__})") from error


def _from_transport(error: A2AClientError) -> AgentFault:
    cause = error.__cause__
    if isinstance(cause, httpx.HTTPStatusError):
        return _from_status(cause.response)
    if isinstance(cause, httpx.HTTPError):
        return _from_network(cause)
    return AgentFault("doubtful", f"its answer cannot be used: {error.message}")


def _from_status(response: httpx.Response) -> AgentFault:
    status = response.status_code
    reason = f"it answered HTTP {status} {response.reason_phrase}"
    if response.is_redirect:
        return AgentFault("final", f"{reason}: redirects are never followed")
    if status in PASSING_STATUSES:
        return AgentFault("passing", reason)
    return AgentFault("doubtful" if response.is_server_error else "final", reason)


def _from_network(error: Exception) -> AgentFault:
    words = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return AgentFault("passing", f"it cannot be reached: {words}")
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return AgentFault("final", f"its address cannot be called: {words}")
    return AgentFault("doubtful", f"the connection broke: {words}")
