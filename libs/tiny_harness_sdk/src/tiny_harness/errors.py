"""Every error that tiny-harness raises on purpose, in one tree.

    HarnessError                    internal
    ├── ConfigError                 config             a file, a key, a variable (exit status 2)
    ├── AlreadyRunning              already_running    another process holds the home (exit status 2)
    ├── TaskNotFound                task_not_found     unknown, or the caller is not on it
    ├── TaskEnded                   task_ended         the task is in a terminal state
    ├── TaskNotCancelable           task_ended         the same, answered to CancelTask
    ├── RoleNotPermitted            role_not_permitted the caller's role does not allow it
    ├── InvalidInput                invalid_*          the message or a parameter is malformed
    ├── UnsupportedContent          unsupported_content  a part that nobody here reads
    ├── QueueFull                   queue_full         too many messages wait for the running turn
    ├── Unavailable                 unavailable        engine, store or Temporal cannot answer now
    ├── DiskFull                    disk_full          too little space to accept a message
    ├── ConnectionLost              connection_lost    a client lost its harness in the middle of a call
    ├── ServerRefused               server_refused     a server answered with a refusal of its own words
    │   └── SignInRefused           sign_in_refused    it does not let us in: the credentials (exit status 2)
    ├── ModelError                  model_failed       the model provider failed
    ├── UnknownTool                 unknown_tool       no tool has this name
    ├── InvalidArguments            invalid_arguments  a tool's arguments are not what its schema asks for
    ├── SchemaDrift                 schema_drift       a tool is no longer what the model was shown
    ├── ToolFailed                  tool_failed        a tool gave no answer; it may or may not have run
    ├── RegistryError               invalid_registry   a name that is invalid or taken, when a registry is built
    ├── RefusedByPolicy             refused_by_policy  a hook refused what was asked
    ├── AlreadyAnswered             already_answered   nobody waits for this answer
    ├── UnresolvedSubTasks          unresolved_sub_tasks  the task has sub-tasks that are still open
    ├── InvalidPlan                 invalid_plan       a plan with a cycle, or a step that cannot be done
    ├── CommandFailed               command_failed     what a command's body says of its own failure
    ├── HookAbort                   hook_abort         how an executor refuses: raised by it, never by us
    ├── SignatureRefused            signature_refused  a remote call whose signature nobody believes
    └── HookFailed                  hook_failed        an executor raised, hung or answered nonsense
        └── HookTransportError      hook_transport     a remote executor did not answer as the contract says

The edges translate: the gateway to A2A errors and statuses, the engine to and from Temporal failures (`pack`,
`unpack`), the CLI to exit statuses. Nothing in here knows HTTP.
"""

from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar


@dataclass(eq=False)
class HarnessError(Exception):
    """Root of every error we raise on purpose."""

    code: ClassVar[str] = "internal"
    """Stable word for programs."""
    retryable: ClassVar[bool] = False
    """Whether sending the same thing again can help."""

    def __str__(self) -> str:
        return "something failed inside the harness; its log has the details"


@dataclass(eq=False)
class ConfigError(HarnessError):
    """The configuration, the home directory or the environment does not allow a start."""

    code: ClassVar[str] = "config"
    reason: str
    file: str = ""
    """Path of the file at fault, if one is."""
    key: str = ""
    """Dotted key at fault, such as `server.bind`, if one is."""

    def __str__(self) -> str:
        place = " ".join(part for part in (self.file, f"[{self.key}]" if self.key else "") if part)
        return f"{place}: {self.reason}" if place else self.reason


@dataclass(eq=False)
class AlreadyRunning(HarnessError):
    """Another process owns what this one wanted to own."""

    code: ClassVar[str] = "already_running"
    what: str
    """What is held, such as the path of a home directory."""
    pid: int = 0
    """The holder, 0 if it did not say."""

    def __str__(self) -> str:
        return f"{self.what} is in use by process {self.pid or 'unknown'}"


@dataclass(eq=False)
class TaskNotFound(HarnessError):
    """There is no such task for this participant; a foreign task looks the same."""

    code: ClassVar[str] = "task_not_found"
    task_id: str

    def __str__(self) -> str:
        return f"task {self.task_id} not found"


@dataclass(eq=False)
class TaskEnded(HarnessError):
    """The task has ended and takes nothing more."""

    code: ClassVar[str] = "task_ended"
    task_id: str
    state: str
    """The terminal state's word, such as `COMPLETED`."""
    is_expired: bool = False
    """Whether it was ended because nothing happened for too long."""

    def __str__(self) -> str:
        why = "nothing happened for too long and it has expired" if self.is_expired else "it has ended"
        return f"task {self.task_id} is {self.state}: {why}; start a new one, with the same contextId to go on"


@dataclass(eq=False)
class TaskNotCancelable(TaskEnded):
    """CancelTask on a task that has ended already."""

    def __str__(self) -> str:
        return f"task {self.task_id} is {self.state}: it has ended and cannot be canceled"


@dataclass(eq=False)
class RoleNotPermitted(HarnessError):
    """The participant is on the task, but not in a role that may do this."""

    code: ClassVar[str] = "role_not_permitted"
    role: str
    """The strongest role that the participant has."""
    action: str

    def __str__(self) -> str:
        return f"a {self.role} may not {self.action}"


@dataclass(eq=False)
class InvalidInput(HarnessError):
    """A message, envelope or parameter is malformed.

    `kind` is what programs read: `invalid_envelope`, `empty_message`, `reused_message_id`, `invalid_cursor`,
    `invalid_params`.
    """

    code: ClassVar[str] = "invalid_input"
    kind: str
    field: str
    """Dotted path of the field at fault."""
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


@dataclass(eq=False)
class UnsupportedContent(HarnessError):
    """A part or media type that this harness does not read."""

    code: ClassVar[str] = "unsupported_content"
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


@dataclass(eq=False)
class QueueFull(HarnessError):
    """As many messages as allowed wait for the running turn already."""

    code: ClassVar[str] = "queue_full"
    retryable: ClassVar[bool] = True
    limit: int

    def __str__(self) -> str:
        return f"{self.limit} messages wait for the running turn already; send this one again when it has ended"


@dataclass(eq=False)
class Unavailable(HarnessError):
    """The engine, the store or Temporal cannot answer now; the input may be in all the same."""

    code: ClassVar[str] = "unavailable"
    retryable: ClassVar[bool] = True
    reason: str
    retry_after_s: int = 2

    def __str__(self) -> str:
        return f"{self.reason}; send the same message id again: it is never taken twice"


@dataclass(eq=False)
class DiskFull(HarnessError):
    """Too little disk space is left to accept a message."""

    code: ClassVar[str] = "disk_full"
    free_bytes: int

    def __str__(self) -> str:
        return f"only {self.free_bytes // 1_000_000} MB of disk are left; nothing acknowledged is lost, free some space"


@dataclass(eq=False)
class ConnectionLost(HarnessError):
    """The harness went away while a client waited for it."""

    code: ClassVar[str] = "connection_lost"
    retryable: ClassVar[bool] = True
    reason: str

    def __str__(self) -> str:
        return f"the connection to the harness was lost: {self.reason}"


@dataclass(eq=False)
class ServerRefused(HarnessError):
    """A server refused a call; the words are the server's."""

    code: ClassVar[str] = "server_refused"
    reason: str
    status: int = 0
    """HTTP status or JSON-RPC code, 0 if unknown."""
    server_code: str = ""
    """`metadata.code` of the server's ErrorInfo, if it sent one."""

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class SignInRefused(ServerRefused):
    """A server does not let us in: it wants credentials, or others than those that it was shown."""

    code: ClassVar[str] = "sign_in_refused"

    def __str__(self) -> str:
        return f"not signed in: {self.reason}"


@dataclass(eq=False)
class ModelError(HarnessError):
    """The model provider failed; `transient` says whether another attempt can help."""

    code: ClassVar[str] = "model_failed"
    reason: str
    transient: bool = False
    retry_after_s: float | None = None
    """When the provider said that another attempt may come."""

    def __str__(self) -> str:
        return f"the model failed: {self.reason}"


@dataclass(eq=False)
class UnknownTool(HarnessError):
    """No tool has this name."""

    code: ClassVar[str] = "unknown_tool"
    tool: str

    def __str__(self) -> str:
        return f"there is no tool {self.tool}"


@dataclass(eq=False)
class InvalidArguments(HarnessError):
    """A tool's arguments are not JSON, too large, or not what its schema asks for; nothing was sent."""

    code: ClassVar[str] = "invalid_arguments"
    tool: str
    path: str
    """Where the fault is, as a JSON path such as `$.lines[0].count`."""
    reason: str

    def __str__(self) -> str:
        return f"wrong arguments for {self.tool} at {self.path}: {self.reason}"


@dataclass(eq=False)
class SchemaDrift(HarnessError):
    """A tool's schema or its hints have changed since the model was shown it; nothing was sent."""

    code: ClassVar[str] = "schema_drift"
    tool: str

    def __str__(self) -> str:
        return f"the tool {self.tool} has changed since it was listed; look at it again before you call it"


@dataclass(eq=False)
class ToolFailed(HarnessError):
    """A call to a tool has no answer. Whether it may be repeated is for whoever knows what the tool does."""

    code: ClassVar[str] = "tool_failed"
    tool: str
    reason: str
    may_have_run: bool = True
    """Whether the request may have reached the tool; false: it certainly has not run."""
    transient: bool = False
    """Whether the same call may have more luck a little later."""

    def __str__(self) -> str:
        certainty = "it may have run all the same" if self.may_have_run else "it was not run"
        return f"the tool {self.tool} failed: {self.reason}; {certainty}"


@dataclass(eq=False)
class RegistryError(HarnessError):
    """Something cannot be registered under this name (R6.5)."""

    code: ClassVar[str] = "invalid_registry"
    kind: str
    """What was to be registered, such as `command`."""
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} {self.reason}"


@dataclass(eq=False)
class RefusedByPolicy(HarnessError):
    """A hook refused the operation."""

    code: ClassVar[str] = "refused_by_policy"
    reason: str

    def __str__(self) -> str:
        return f"refused: {self.reason}"


@dataclass(eq=False)
class AlreadyAnswered(HarnessError):
    """An answer to a question that is not open: it was answered, or its turn is over."""

    code: ClassVar[str] = "already_answered"
    request_id: str

    def __str__(self) -> str:
        return f"the question {self.request_id} is not open: it was answered, or its turn is over"


@dataclass(eq=False)
class UnresolvedSubTasks(HarnessError):
    """A task cannot be completed while sub-tasks of it are open (R5.4)."""

    code: ClassVar[str] = "unresolved_sub_tasks"
    task_id: str
    ids: tuple[str, ...]
    """The sub-tasks that are open."""

    def __str__(self) -> str:
        return f"task {self.task_id} has unresolved sub-tasks: {', '.join(self.ids)}"


@dataclass(eq=False)
class InvalidPlan(HarnessError):
    """A plan that is none, or something that cannot be done with one."""

    code: ClassVar[str] = "invalid_plan"
    reason: str
    cycle: tuple[str, ...] = ()
    """Ids of steps of which each depends on the next, the last being the first again; empty if there is no cycle."""

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class CommandFailed(HarnessError):
    """A command could not do what it was asked to; its words are the reply."""

    code: ClassVar[str] = "command_failed"
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class HookAbort(HarnessError):
    """Raised by a `pre` or `post` executor: the operation is refused, for this reason."""

    code: ClassVar[str] = "hook_abort"
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class SignatureRefused(HarnessError):
    """A call is unsigned, wrongly signed, too old, too new, or a repetition."""

    code: ClassVar[str] = "signature_refused"
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class HookFailed(HarnessError):
    """An executor raised, missed its deadline, or answered something that its point does not allow."""

    code: ClassVar[str] = "hook_failed"
    point: str
    executor: str
    reason: str

    def __str__(self) -> str:
        return f"the hook {self.executor} failed at {self.point}: {self.reason}"


@dataclass(eq=False)
class HookTransportError(HookFailed):
    """A remote executor did not answer, or not as the contract says (R6a.9)."""

    code: ClassVar[str] = "hook_transport"


def _tree(root: type[HarnessError]) -> dict[str, type[HarnessError]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found |= _tree(child)
    return found


def pack(error: HarnessError) -> tuple[str, dict[str, Any]]:
    """Give an error's name and data in a form that crosses a process border as JSON."""
    return type(error).__name__, asdict(error)


def unpack(name: str, data: dict[str, Any]) -> HarnessError:
    """Rebuild an error from `pack`'s answer; a name that this version does not know becomes the root."""
    kind = _tree(HarnessError).get(name, HarnessError)
    known = {field.name for field in fields(kind)}
    # JSON has no tuples.
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key in known}
    try:
        return kind(**values)
    except TypeError:
        return HarnessError()
