"""The published hook catalogue and its JSON Schemas are those of the code.

`python tests/contract/test_hook_catalogue.py` writes them anew.
"""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python

from tiny_harness.effects import CommandResult, SetModel
from tiny_harness.ext.task import Participant
from tiny_harness.hooks import OPERATIONS, Executor, Hooks, Operation
from tiny_harness.hooks.chain import CHAIN_BUDGET_S
from tiny_harness.hooks.contexts import CommandContext, HookContext, Phase, SenderRef, TaskRef
from tiny_harness.hooks.executor import DEFAULT_DEADLINE_S, DEFAULT_PRIORITY

DOCS = Path(__file__).parents[2] / "docs" / "hooks"
BASE = "https://madarauchiha-314.github.io/tiny-harness/hooks"
REFS = "#/$defs/{model}"

PAGE = """\
# The hook catalogue

Made from the code by `python tests/contract/test_hook_catalogue.py`; a test fails when it differs.

A hook point is `<operation>.<phase>`. An executor is called at one point, with a context, and answers nothing, or the
fields of the context to replace. How to write one: [write a plugin](../guide/write-a-plugin.md), or
[serve commands from your own service](../guide/serve-commands.md).

## Operations to act on

| operation | when | phases | may refuse | a reply may replace | schema |
|---|---|---|---|---|---|
{acting}

- `pre` comes before the operation, `in` is the operation itself, `post` comes after it with its result.
- *May refuse*: a `pre` or `post` executor may abort (`HookAbort` in Python, error -32010 over JSON-RPC) with a reason;
  the operation does not happen, and whoever asked is told the reason.
- A reply holds the fields to replace and no others; with any other field the whole reply is refused. `result` of a
  `post` reply holds the fields of the result to replace; the others stay.
- Task, participants, sender and their roles are never replaceable.

## Operations to watch

| operation | when | phases | schema |
|---|---|---|---|
{observed}

They are told from the event log after the commit, in order within a task, at least once, and in nobody's way: an
executor that fails or hangs delays only what it is told itself. A reply replaces nothing, and nobody can refuse.

## Order, deadlines and failure

- Executors of one point are called in the order of their priority, the lowest first, {priority} unless they say
  otherwise; those of one priority in the order of registration.
- The first `in` executor that sets `result` is the body. Built-in bodies stand at {priority}: a lower priority replaces
  them.
- An executor has {deadline} s unless it says otherwise (`deadline_s`; the default is `[hooks] deadline`). The time is
  taken from outside: who does not answer is left behind. All executors of one operation have {budget} s together.
- `on_failure` is `closed` unless it says otherwise: an executor that raises, hangs or answers nonsense fails the
  operation. `open` is for executors that only watch: the operation goes on without them.
- Secrets are masked in every context before an executor sees it; configured ones also in what it answers.

## The schemas

One file per operation. The file itself describes the context; `#/$defs/reply.<phase>` describes the reply of a phase,
where `null` replaces nothing. Over JSON-RPC the context is `params.context` and the reply is `result`; over MCP they
are the argument `context` and the field `patch` of the structured content. Ignore fields that you do not know: later
versions add some.
"""


def page() -> str:
    """Make the catalogue."""
    acting = [acting_row(name, one) for name, one in OPERATIONS.items() if not one.is_observed]
    observed = [
        f"| `{name}` | {one.summary} | {code(one.replaces)} | [{name}.json]({name}.json) |"
        for name, one in OPERATIONS.items()
        if one.is_observed
    ]
    return PAGE.format(
        acting="\n".join(acting),
        observed="\n".join(observed),
        priority=DEFAULT_PRIORITY,
        deadline=f"{DEFAULT_DEADLINE_S:g}",
        budget=f"{CHAIN_BUDGET_S:g}",
    )


def acting_row(name: str, operation: Operation) -> str:
    replaces = "; ".join(f"{phase}: {code(sorted(fields))}" for phase, fields in operation.replaces.items() if fields)
    refuse = "yes" if operation.may_abort else "no"
    cells = (f"`{name}`", operation.summary, code(operation.replaces), refuse, replaces or "nothing")
    return f"| {' | '.join(cells)} | [{name}.json]({name}.json) |"


def code(words: Any) -> str:
    return ", ".join(f"`{word}`" for word in words)


def schema(name: str) -> dict[str, Any]:
    """Make the schema of an operation: its context, and the reply of each phase under `$defs`."""
    operation = OPERATIONS[name]
    context = operation.context.model_json_schema(mode="serialization", ref_template=REFS)
    definitions: dict[str, Any] = context.pop("$defs", {})
    context["properties"]["operation"] = {"const": name}
    context["properties"]["phase"] = {"enum": list(operation.replaces)}
    replies = {f"reply.{phase}": reply(operation, phase, definitions) for phase in operation.replaces}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{BASE}/{name}.json",
        **context,
        "title": name,
        "description": operation.summary,
        "$defs": {**dict(sorted(definitions.items())), **replies},
    }


def reply(operation: Operation, phase: Phase, definitions: dict[str, Any]) -> dict[str, Any]:
    """Make the schema of what a phase's executor may answer; adds the definitions that it needs."""
    properties: dict[str, Any] = {}
    for name in sorted(operation.replaces[phase]):
        annotation: Any = operation.context.model_fields[name].annotation
        found = TypeAdapter[Any](annotation).json_schema(ref_template=REFS)
        for key, value in found.pop("$defs", {}).items():
            definitions.setdefault(key, value)
        properties[name] = partial(annotation) if (phase, name) == ("post", "result") else found
    fields = {"type": "object", "properties": properties, "additionalProperties": False}
    return {"anyOf": [fields, {"type": "null"}]}


def partial(annotation: Any) -> dict[str, Any]:
    """Make the schema of some fields of a result."""
    [model] = [one for one in get_args(annotation) if isinstance(one, type) and issubclass(one, BaseModel)]
    found = model.model_json_schema(ref_template=REFS)
    return {key: value for key, value in found.items() if key not in ("$defs", "required", "title")}


def files() -> dict[str, str]:
    """Make all published files."""
    schemas = {f"{name}.json": json.dumps(schema(name), indent=2) + "\n" for name in OPERATIONS}
    return {"README.md": page(), **schemas}


@pytest.mark.parametrize("name", files())
def test_the_published_file_is_that_of_the_code(name: str) -> None:
    assert (DOCS / name).read_text() == files()[name]


def test_nothing_else_is_published() -> None:
    assert {path.name for path in DOCS.iterdir()} == set(files())


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_page_names_every_operation_with_its_phases(name: str) -> None:
    [row] = [line for line in page().splitlines() if line.startswith(f"| `{name}` |")]
    assert set(re.findall(r"`(pre|in|post)`", row)) == set(OPERATIONS[name].replaces)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_schema_is_one_and_its_pointers_lead_somewhere(name: str) -> None:
    document = schema(name)
    Draft202012Validator.check_schema(document)
    for target in re.findall(r'"\$ref": "#/\$defs/([^"]+)"', json.dumps(document)):
        assert target in document["$defs"], target


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


def reply_validator(name: str, phase: str) -> Draft202012Validator:
    document = schema(name)
    return Draft202012Validator({"$ref": f"#/$defs/reply.{phase}", "$defs": document["$defs"]})


TASK = TaskRef(task_id="t1", context_id="c1", state="TASK_STATE_WORKING", usage={"model_calls": 1})

REQUIRED: dict[str, Any] = {
    "message_id": "m1",
    "text": "hello",
    "command": "deploy",
    "arguments": "prod",
    "requested_by": "ann",
    "call_id": "c1",
    "tokens": 90,
    "window_tokens": 100,
    "entries": [{"key": "1.0", "role": "user", "tokens": 9}],
    "system": "be brief",
    "tool": "orders/shop.refund",
    "turn": 1,
    "step": 1,
    "messages": [{"role": "user", "text": "hello"}],
    "activity": "model",
    "seq": 1,
    "event": {"task": {"id": "t1"}},
    "plan": {"steps": [{"id": "a", "name": "A"}]},
    "brief": {"goal": "look"},
    "decision": {"tool": "ask_participant", "arguments": {"question": "Which?"}},
}
"""A value for each field that has no default, by its name."""


def example(name: str, phase: str) -> HookContext:
    """Make a context as the engine would."""
    model = OPERATIONS[name].context
    own = {key: REQUIRED[key] for key, one in model.model_fields.items() if one.is_required() and key in REQUIRED}
    common = {
        "operation": name,
        "phase": phase,
        "task": TASK,
        "participants": (Participant(id="ann", role="reporter"),),
        "sender": SenderRef(id="ann", role="reporter"),
        "correlation_id": "k1",
    }
    return model.model_validate({**common, **own})


@pytest.mark.parametrize(
    ("name", "phase"), [(name, phase) for name, one in OPERATIONS.items() for phase in one.replaces]
)
async def test_what_an_executor_is_shown_is_what_the_schema_says(name: str, phase: str) -> None:
    shown: list[HookContext] = []

    async def look(context: HookContext) -> None:
        shown.append(context)

    executors = [Executor(one, name, one, look) for one in OPERATIONS[name].replaces]
    await Hooks(executors).run(example(name, phase))
    [context] = [one for one in shown if one.phase == phase]
    document = json.loads(context.model_dump_json())
    validator(name).validate(document)
    assert not validator(name).is_valid({**document, "operation": "wat"})
    assert not validator(name).is_valid({key: value for key, value in document.items() if key != "task"})


CASES: dict[str, tuple[str, Any]] = {
    "nothing": ("pre", None),
    "no field": ("pre", {}),
    "arguments": ("pre", {"arguments": "staging"}),
    "arguments of a wrong type": ("pre", {"arguments": 5}),
    "a field of another phase": ("pre", {"result": {"reply": "x"}}),
    "the task": ("pre", {"arguments": "x", "task": {}}),
    "a word": ("pre", "yes"),
    "no": ("pre", False),
    "a body": ("in", {"result": {"reply": "done"}}),
    "a body with all": ("in", {"result": CommandResult(reply="x", data={"a": 1}, effects=(SetModel(model="m"),))}),
    "a body that sets nothing": ("in", {"result": None}),
    "a body without a reply": ("in", {"result": {"data": {}}}),
    "an empty reply": ("in", {"result": {"reply": ""}}),
    "an effect that does not exist": ("in", {"result": {"reply": "x", "effects": [{"kind": "erase"}]}}),
    "too many effects": ("in", {"result": {"reply": "x", "effects": [{"kind": "set_model", "model": "m"}] * 11}}),
    "an unknown field of a result": ("in", {"result": {"reply": "x", "state": "COMPLETED"}}),
    "another reply": ("post", {"result": {"reply": "short"}}),
    "other data alone": ("post", {"result": {"data": {"a": 1}}}),
    "no result": ("post", {"result": None}),
}


@pytest.mark.parametrize(("phase", "answer"), CASES.values(), ids=CASES)
async def test_the_chain_takes_the_replies_that_the_schema_takes_and_no_others(phase: Phase, answer: Any) -> None:
    async def body(_context: Any) -> dict[str, Any]:
        return {"result": {"reply": "long words"}}

    async def answering(_context: Any) -> Any:
        return answer

    executors = [Executor("it", "command.invoked", phase, answering)]
    executors += [] if phase == "in" else [Executor("body", "command.invoked", "in", body)]
    context = example("command.invoked", "pre")
    assert isinstance(context, CommandContext)
    outcome = await Hooks(executors).run(context)
    plain = to_jsonable_python(answer)
    assert reply_validator("command.invoked", phase).is_valid(plain) == (outcome.failure is None)


if __name__ == "__main__":
    DOCS.mkdir(exist_ok=True)
    for published, content in files().items():
        (DOCS / published).write_text(content)
