"""Reading plugin folders: what is taken, what is left out, and that one bad part leaves the rest."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiny_harness.commands.spec import CommandSpec
from tiny_harness.effects import CommandResult
from tiny_harness.errors import RegistryError
from tiny_harness.hooks import Executor, Hooks
from tiny_harness.hooks.contexts import CommandContext, RequestContext, TaskRef
from tiny_harness.plugins import Plugin, PluginReport, RemoteDeclaration, load_plugin, load_plugins, log_reports
from tiny_harness.plugins.files import MAX_TEXT_BYTES
from tiny_harness.plugins.loading import NAMESPACE
from tiny_harness.plugins.manifest import SCHEMA

TASK = TaskRef(task_id="t1", context_id="c1", state="TASK_STATE_WORKING")
MANIFEST: dict[str, Any] = {"$schema": SCHEMA, "name": "notes"}
FUNCTION = "def run(context):\n    return 'ran ' + context.arguments\n"
BODY = {"name": "note", "point": "command.invoked.in", "command": "note", "python": "hooks.py:run"}

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a plugin's folder: the manifest, and files by their path; those of our namespace begin with `@/`."""

    def make_folder(files: dict[str, Any] | None = None, manifest: Any = MANIFEST, folder: str = "plugin") -> Path:
        root = tmp_path / folder
        for name, content in {"plugin.json": manifest, **(files or {})}.items():
            path = root / name.replace("@", NAMESPACE)
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content))
        return root

    return make_folder


def with_hooks(*executors: Any, **files: Any) -> dict[str, Any]:
    return {"@/hooks.json": {"executors": [*executors]}, "@/hooks.py": FUNCTION, **files}


def loaded(path: Path) -> tuple[Plugin, PluginReport]:
    plugin, report = load_plugin(path)
    assert plugin is not None, report.reason
    assert report.state == "loaded"
    return plugin, report


def rejected(path: Path) -> PluginReport:
    plugin, report = load_plugin(path)
    assert plugin is None
    assert report.state == "rejected"
    assert report.reason
    return report


def part(report: PluginReport, name: str) -> tuple[str, str, str]:
    [found] = [component for component in report.components if component.name == name]
    return found.kind, found.state, found.reason


def command_context(arguments: str = "x") -> CommandContext:
    return CommandContext(
        operation="command.invoked", phase="in", task=TASK, correlation_id="k", command="note", arguments=arguments
    )


def test_the_least_plugin_is_one(make: Make) -> None:
    plugin, report = loaded(make())
    assert (plugin.name, plugin.version, plugin.commands, plugin.executors, plugin.remote) == (
        "notes",
        None,
        (),
        (),
        (),
    )
    assert report.components == ()
    assert len(report.digest) == 64


def test_the_manifests_own_words_are_kept(make: Make) -> None:
    full = {
        **MANIFEST,
        "version": "not a number",
        "description": "Keeps notes",
        "author": {"name": "Ann", "email": "no address", "url": "no url"},
        "homepage": "h",
        "repository": "r",
        "license": "l",
        "keywords": ["a"],
        "extensions": {"com.example": {"anything": 1}, "org.example": "not even an object"},
    }
    plugin, report = loaded(make(manifest=full))
    assert (plugin.version, plugin.description) == ("not a number", "Keeps notes")
    assert report.version == "not a number"
    assert report.components == ()


@pytest.mark.parametrize("name", ["a", "a1", "my-plugin", "acme.tools", "a-b.c", "x" * 64, "1", "a.-b"])
def test_a_valid_name_is_taken(make: Make, name: str) -> None:
    assert loaded(make(manifest={**MANIFEST, "name": name}))[0].name == name


@pytest.mark.parametrize(
    "name", ["", "A", "-a", "a-", ".a", "a.", "a--b", "a..b", "a_b", "a b", "a/b", "x" * 65, "ä", "a\n", 5, None, ["a"]]
)
def test_an_invalid_name_rejects_the_plugin(make: Make, name: Any) -> None:
    rejected(make(manifest={**MANIFEST, "name": name}))


@pytest.mark.parametrize(
    "manifest",
    [
        *({}, [], "words", "{", "null", "5", {"name": "notes"}, {"$schema": SCHEMA}),
        {**MANIFEST, "$schema": SCHEMA.replace("1.0.0", "2.0.0")},
        {**MANIFEST, "$schema": [SCHEMA]},
        *({**MANIFEST, name: 5} for name in ("version", "description", "homepage", "repository", "license", "author")),
        *({**MANIFEST, name: None} for name in ("version", "author", "keywords")),
        *({**MANIFEST, "keywords": keywords} for keywords in ("a", [1], {"a": 1})),
        *({**MANIFEST, "author": author} for author in ({"name": 1}, {"phone": "1"}, {"name": None})),
        f'{{"$schema": "{SCHEMA}", "name": "notes", "name": "other"}}',
        b"\xff\xfe",
        "[" * 100_000,
    ],
    ids=lambda manifest: str(manifest)[:60],
)
def test_a_bad_manifest_rejects_the_plugin_and_runs_nothing(make: Make, manifest: Any) -> None:
    root = make(with_hooks(BODY, **{"@/hooks.py": "raise AssertionError('imported')"}), manifest)
    report = rejected(root)
    assert report.components == ()
    assert report.path == str(root)


def test_an_unknown_field_is_reported_and_ignored(make: Make) -> None:
    _, report = loaded(make(manifest={**MANIFEST, "skills": "./x", "extensions": ["no object"]}))
    assert part(report, "skills")[:2] == ("manifest", "unused")
    assert part(report, "extensions")[:2] == ("manifest", "unused")


def test_a_folder_that_is_none_or_has_no_manifest_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("absent", "file", "empty", "loop"):
        assert rejected(tmp_path / name).plugin == name


def test_a_manifest_that_leads_out_of_the_plugin_rejects_it(make: Make, tmp_path: Path) -> None:
    root = make()
    (root / "plugin.json").rename(tmp_path / "outside.json")
    (root / "plugin.json").symlink_to(tmp_path / "outside.json")
    assert "leads out" in rejected(root).reason


async def test_a_command_with_a_body_in_the_plugin_runs(make: Make) -> None:
    files = with_hooks({**BODY, "priority": 700, "deadline_s": 2}, **{"@/commands.json": {"commands": [COMMAND]}})
    plugin, report = loaded(make(files))
    assert plugin.commands == (CommandSpec(name="note", description="Take a note", argument_hint="<words>"),)
    [body] = plugin.executors
    assert (body.name, body.point, body.command, body.plugin) == ("notes/note", "command.invoked.in", "note", "notes")
    assert (body.priority, body.deadline_s, body.on_failure, body.is_remote) == (700, 2.0, "closed", False)
    assert {component.state for component in report.components} == {"loaded"}
    outcome = await Hooks(plugin.executors).run(command_context())
    assert outcome.context.result == CommandResult(reply="ran x")


COMMAND = {"name": "note", "description": "Take a note", "argument_hint": "<words>"}


def test_a_remote_executor_is_declared_and_not_called(make: Make) -> None:
    entry = {"name": "far", "point": "llm.invoked.pre", "url": "https://example.org/hooks?x=1"}
    plugin, _ = loaded(make(with_hooks(entry)))
    assert plugin.remote == (
        RemoteDeclaration(
            name="notes/far",
            point="llm.invoked.pre",
            url="https://example.org/hooks?x=1",
            key_id="notes",
            plugin="notes",
        ),
    )


def test_a_remote_executor_may_say_everything_itself(make: Make) -> None:
    entry = {
        "name": "far",
        "point": "command.invoked.in",
        "command": "note",
        "url": "http://127.0.0.1:9/",
        "transport": "mcp",
        "key_id": "Key.1",
        "priority": 5,
        "deadline_s": 1.5,
        "on_failure": "open",
    }
    [remote] = loaded(make(with_hooks(entry)))[0].remote
    assert (remote.transport, remote.key_id, remote.priority) == ("mcp", "Key.1", 5)
    assert (remote.deadline_s, remote.on_failure, remote.command) == (1.5, "open", "note")


def test_the_configured_deadline_holds_for_those_that_say_none(make: Make) -> None:
    far = {"name": "far", "point": "llm.invoked.pre", "url": "https://example.org/"}
    plugin, _ = load_plugin(make(with_hooks(BODY, far)), deadline_s=3.0)
    assert plugin is not None
    assert (plugin.executors[0].deadline_s, plugin.remote[0].deadline_s) == (3.0, 3.0)


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.org", "ftp://example.org/", "http://example.org/", "http://10.0.0.1/", "https://", "https:///x"),
        *("http://localhost.example.org/", "https://u:p@example.org/", "https://u@example.org/", "https://e.org/#x"),
        *("https://e.org:99999/", "https://e.org/ x", "https://e.org/\n", "https://[::1/", "file:///etc/passwd", 5),
        *("http://127.0.0.1@example.org/", "//example.org/", "https://e.org/" + "x" * 2_000),
    ],
)
def test_an_address_that_is_not_safe_is_skipped(make: Make, url: Any) -> None:
    plugin, report = loaded(make(with_hooks(BODY, {"name": "far", "point": "llm.invoked.pre", "url": url})))
    assert plugin.remote == ()
    assert part(report, "notes/far")[:2] == ("executor", "skipped")
    assert [one.name for one in plugin.executors] == ["notes/note"], "the rest is there"


@pytest.mark.parametrize("url", ["http://localhost:1/", "http://127.0.0.2/", "http://[::1]:80/x", "https://e.org"])
def test_loopback_needs_no_tls(make: Make, url: str) -> None:
    assert loaded(make(with_hooks({"name": "far", "point": "llm.invoked.pre", "url": url})))[0].remote


@pytest.mark.parametrize(
    "entry",
    [
        *(5, None, "note", [], {}, {"name": "note"}, {**BODY, "point": "command.invoked"}, {**BODY, "wat": 1}),
        *({**BODY, "point": "wat.pre"}, {**BODY, "point": "state.changed.pre"}, {**BODY, "point": 5}),
        *({**BODY, "name": name} for name in ("", "A", "a b", "../x", "a/b", "-a", "x" * 65)),
        *({**BODY, "priority": value} for value in (-1, 0, "5", 1.5, True, None, 10**9)),
        *({**BODY, "deadline_s": value} for value in (0, -1, 11, "5", True)),
        *({**BODY, "on_failure": value} for value in ("ignore", None)),
        {**BODY, "point": "llm.invoked.pre"},
        {**BODY, "url": "https://example.org/"},
        {**BODY, "transport": "mcp"},
        {**BODY, "key_id": "k"},
        {"name": "note", "point": "command.invoked.in", "command": "note"},
        {"name": "n", "point": "llm.invoked.pre", "url": "https://e.org/", "transport": "smtp"},
        {"name": "n", "point": "llm.invoked.pre", "url": "https://e.org/", "key_id": "a b"},
        *({**BODY, "python": python} for python in ("", "hooks.py", "hooks.py:", ":run", "hooks:run", "a.b.py:run", 5)),
        *(
            {**BODY, "python": python}
            for python in ("../hooks.py:run", "/hooks.py:run", "./hooks.py:run", "x/../h.py:r")
        ),
        *(
            {**BODY, "python": python}
            for python in ("hooks.py:run()", "hooks.py:a.b", "C:\\x.py:run", "hooks.py\n:run")
        ),
    ],
    ids=str,
)
def test_a_malformed_executor_is_skipped_and_the_others_stay(make: Make, entry: Any) -> None:
    good = {**BODY, "name": "good"}
    plugin, report = loaded(make(with_hooks(entry, good)))
    assert [one.name for one in plugin.executors] == ["notes/good"]
    [skipped] = [component for component in report.components if component.state == "skipped"]
    assert skipped.kind == "executor"
    assert skipped.reason


@pytest.mark.parametrize(
    "entry",
    [
        *(5, None, {}, {"description": "x"}, {"name": 5}, {"name": "note", "act": "read the task"}),
        *({"name": "note", "description": value} for value in (5, None, "x" * 201, "two\nlines", "a\x1b[2J")),
        *({"name": "note", "argument_hint": value} for value in (5, "x" * 101, "a\u2028b")),
    ],
    ids=str,
)
def test_a_malformed_command_is_skipped_and_the_others_stay(make: Make, entry: Any) -> None:
    plugin, report = loaded(make({"@/commands.json": {"commands": [entry, {"name": "good"}]}}))
    assert [spec.name for spec in plugin.commands] == ["good"]
    [skipped] = [component for component in report.components if component.state == "skipped"]
    assert skipped.kind == "command"


@pytest.mark.parametrize("name", ["commands.json", "hooks.json"])
@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"commands": {}, "executors": {}}',
        '{"commands": [], "executors": []}',
        b"\xff",
        "[" * 9_999,
        {"commands": [{"name": "x"}] * 201},
        {"executors": [BODY] * 201},
        "x" * (MAX_TEXT_BYTES + 1),
    ],
    ids=lambda content: str(content)[:30],
)
def test_a_malformed_document_is_skipped_and_the_rest_stays(make: Make, name: str, content: Any) -> None:
    plugin, report = loaded(make({f"@/{name}": content, "@/systemprompt.md": "Be brief."}))
    assert plugin.system_prompt == "Be brief."
    assert part(report, name)[:2] == ("file", "skipped")


def test_the_second_entry_of_a_name_is_skipped(make: Make) -> None:
    files = with_hooks(BODY, {**BODY, "priority": 1}, **{"@/commands.json": {"commands": [COMMAND, {"name": "note"}]}})
    plugin, report = loaded(make(files))
    assert [one.priority for one in plugin.executors] == [1000]
    assert plugin.commands[0].description == "Take a note"
    twice = [component.kind for component in report.components if "twice" in component.reason]
    assert twice == ["command", "executor"]


CODE_FAULTS = {
    "no file": ("absent.py:run", {}),
    "no function": ("hooks.py:absent", {}),
    "not a function": ("hooks.py:VALUE", {"@/hooks.py": "VALUE = 5"}),
    "no argument": ("hooks.py:run", {"@/hooks.py": "def run(): pass"}),
    "two arguments": ("hooks.py:run", {"@/hooks.py": "def run(a, b): pass"}),
    "import raises": ("hooks.py:run", {"@/hooks.py": "1 / 0"}),
    "import exits": ("hooks.py:run", {"@/hooks.py": "raise SystemExit(0)"}),
    "syntax": ("hooks.py:run", {"@/hooks.py": "def"}),
    "not utf-8": ("hooks.py:run", {"@/hooks.py": b"x = '\xff'"}),
    "nul": ("hooks.py:run", {"@/hooks.py": b"x = 1\x00"}),
    "needs what is not there": ("hooks.py:run", {"@/hooks.py": "import no_such_module_at_all"}),
    "needs a file that is not there": ("hooks.py:run", {"@/hooks.py": "from .absent import x"}),
    "leaves by import": ("hooks.py:run", {"@/hooks.py": "from .. import x", "x.py": ""}),
    "a folder": ("inner.py:run", {"@/inner.py/x": ""}),
}


@pytest.mark.parametrize(("python", "files"), CODE_FAULTS.values(), ids=CODE_FAULTS)
def test_code_that_can_not_be_loaded_is_a_reported_failure(make: Make, python: str, files: dict[str, Any]) -> None:
    broken = {**BODY, "name": "broken", "python": python}
    good = {**BODY, "name": "good", "python": "good.py:run"}
    plugin, report = loaded(make({**with_hooks(broken, good), "@/good.py": FUNCTION, **files}))
    assert [one.name for one in plugin.executors] == ["notes/good"]
    kind, state, reason = part(report, "notes/broken")
    assert (kind, state) == ("executor", "skipped")
    assert reason
    assert report.problems == (f"executor notes/broken: {reason}",)


async def test_a_guard_that_can_not_be_loaded_lets_nothing_through(make: Make) -> None:
    guard = {"name": "guard", "point": "request.received.pre", "python": "absent.py:run"}
    plugin, report = loaded(make(with_hooks(guard)))
    assert part(report, "notes/guard")[1] == "skipped"
    context = RequestContext(
        operation="request.received", phase="pre", task=TASK, correlation_id="k", message_id="m", text="t"
    )
    outcome = await Hooks(plugin.executors).run(context)
    assert outcome.failure is not None
    assert "absent.py" in outcome.failure.reason


@pytest.mark.parametrize(
    "watcher",
    [
        {"name": "watcher", "point": "request.received.pre", "python": "absent.py:run", "on_failure": "open"},
        {"name": "watcher", "point": "state.changed.post", "python": "absent.py:run"},
    ],
)
def test_one_that_only_watches_and_can_not_be_loaded_stops_nothing(make: Make, watcher: dict[str, Any]) -> None:
    assert loaded(make(with_hooks(watcher)))[0].executors == ()


async def test_the_plugins_own_files_may_import_each_other_and_leave_no_trace(make: Make) -> None:
    files = with_hooks(BODY, {**BODY, "name": "other", "python": "inner/more.py:run"})
    files["@/hooks.py"] = "from .inner.words import WORD\nimport json\ndef run(context): return WORD\n"
    files["@/inner/words.py"] = "from . import more\nWORD = more.WORD\n"
    files["@/inner/more.py"] = "WORD = 'from inside'\ndef run(context): return WORD\n"
    before = list(sys.path)
    root = make(files)
    plugin, report = loaded(root)
    assert report.problems == ()
    outcome = await Hooks(plugin.executors).run(command_context())
    assert outcome.context.result == CommandResult(reply="from inside")
    assert sys.path == before
    assert not {"hooks", "inner", "words", "more"} & set(sys.modules)
    assert not list(root.rglob("__pycache__"))


async def test_two_plugins_with_files_of_one_name_do_not_meet(make: Make) -> None:
    replies: list[str] = []
    for name in ("one", "two"):
        files = {**with_hooks(BODY), "@/hooks.py": "from .word import WORD\ndef run(context): return WORD\n"}
        root = make({**files, "@/word.py": f"WORD = {name!r}"}, {**MANIFEST, "name": name}, folder=name)
        outcome = await Hooks(loaded(root)[0].executors).run(command_context())
        assert outcome.context.result is not None
        replies.append(outcome.context.result.reply)
    assert replies == ["one", "two"]


def test_a_file_is_imported_once_for_all_of_its_functions(make: Make, tmp_path: Path) -> None:
    code = f"with open({str(tmp_path / 'imports')!r}, 'a') as file: file.write('x')\nrun = other = print\n"
    files = {**with_hooks(BODY, {**BODY, "name": "b", "python": "hooks.py:other"}), "@/hooks.py": code}
    plugin, report = loaded(make(files))
    assert report.problems == ()
    assert len(plugin.executors) == 2
    assert (tmp_path / "imports").read_text() == "x"


@pytest.mark.parametrize("name", ["hooks.json", "commands.json", "systemprompt.md", "prompts", "hooks.py"])
def test_a_link_that_leaves_the_plugin_is_not_followed(make: Make, tmp_path: Path, name: str) -> None:
    inside = {
        **with_hooks(BODY, **{"@/commands.json": {"commands": [COMMAND]}}),
        "@/systemprompt.md": "inside",
        "@/prompts/a.md": "inside",
    }
    root = make(inside)
    (root / NAMESPACE / name).rename(tmp_path / "outside")
    (root / NAMESPACE / name).symlink_to(tmp_path / "outside")
    plugin, report = loaded(root)
    assert any("leads out of the plugin" in problem for problem in report.problems), report.problems
    parts = [bool(plugin.executors), bool(plugin.commands), bool(plugin.system_prompt), bool(plugin.prompts)]
    assert parts.count(False) == 1, "only that part is missing"


def test_a_sibling_that_leaves_the_plugin_is_not_imported(make: Make, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("def run(context): return 'outside'")
    root = make({**with_hooks(BODY), "@/hooks.py": "from .sibling import run"})
    (root / NAMESPACE / "sibling.py").symlink_to(tmp_path / "outside.py")
    plugin, report = loaded(root)
    assert plugin.executors == ()
    assert "leads out" in report.problems[0]


def test_a_namespace_folder_that_leaves_the_plugin_is_skipped(make: Make, tmp_path: Path) -> None:
    root = make(with_hooks(BODY))
    (root / NAMESPACE).rename(tmp_path / "outside")
    (root / NAMESPACE).symlink_to(tmp_path / "outside")
    plugin, report = loaded(root)
    assert plugin.executors == ()
    assert part(report, NAMESPACE)[:2] == ("file", "skipped")


def test_a_link_within_the_plugin_is_followed(make: Make) -> None:
    root = make({"shared/prompt.md": "inside"})
    (root / NAMESPACE).mkdir()
    (root / NAMESPACE / "systemprompt.md").symlink_to(root / "shared" / "prompt.md")
    assert loaded(root)[0].system_prompt == "inside"


def test_a_plugin_may_itself_be_a_link(make: Make, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(make({"@/systemprompt.md": "x"}))
    assert loaded(tmp_path / "link")[0].system_prompt == "x"


def test_a_pipe_is_not_waited_for(make: Make) -> None:
    root = make(with_hooks(BODY))
    os.mkfifo(root / NAMESPACE / "systemprompt.md")
    os.mkfifo(root / "pipe")
    _, report = loaded(root)
    assert part(report, "systemprompt.md")[:2] == ("system prompt", "skipped")


def test_prompts_are_read_and_the_bad_ones_skipped(make: Make) -> None:
    files = {
        "@/prompts/review.md": "Look closely.",
        "@/prompts/empty.md": "",
        "@/prompts/bad.md": b"\xff",
        "@/prompts/large.md": "x" * (MAX_TEXT_BYTES + 1),
        "@/prompts/notes.txt": "not read",
        "@/prompts/.hidden.md": "not read",
        "@/systemprompt.md": "ä" * 10,
    }
    plugin, report = loaded(make(files))
    assert plugin.prompts == {"review": "Look closely.", "empty": ""}
    assert plugin.system_prompt == "ä" * 10
    assert part(report, "bad.md") == ("prompt", "skipped", f"file {f'{NAMESPACE}/prompts/bad.md'!r} is not UTF-8")
    assert part(report, "large.md")[1] == "skipped"
    assert part(report, "review")[1] == "loaded"


def test_a_misspelt_file_is_named(make: Make) -> None:
    _, report = loaded(make({"@/hook.json": "{}", "@/helpers.py": "", "@/data/x.csv": ""}))
    assert [(one.kind, one.name, one.state) for one in report.components] == [("file", "hook.json", "unused")]


def test_the_digest_changes_with_every_file_and_with_nothing_else(make: Make) -> None:
    root = make({**with_hooks(BODY), "assets/a.bin": b"\x00\x01"})
    digests = [loaded(root)[0].digest, loaded(root)[0].digest]
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("x")
    (root / NAMESPACE / "__pycache__").mkdir()
    (root / NAMESPACE / "__pycache__" / "hooks.pyc").write_text("x")
    digests.append(loaded(root)[0].digest)
    assert len(set(digests)) == 1
    (root / "assets" / "a.bin").write_bytes(b"\x00\x02")
    changed = loaded(root)[0].digest
    (root / "assets" / "a.bin").rename(root / "assets" / "b.bin")
    renamed = loaded(root)[0].digest
    assert len({digests[0], changed, renamed}) == 3


def test_a_plugin_that_is_too_large_is_rejected(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make({"a": "x" * 100, "b": "x" * 100})
    monkeypatch.setattr("tiny_harness.plugins.files.MAX_TOTAL_BYTES", 250)
    assert "more than" in rejected(root).reason
    monkeypatch.undo()
    monkeypatch.setattr("tiny_harness.plugins.files.MAX_FILES", 2)
    assert "more than" in rejected(root).reason
    monkeypatch.undo()
    loaded(root)


def test_plugins_are_read_in_their_order_and_the_rejected_are_reported(make: Make, tmp_path: Path) -> None:
    one = make(manifest={**MANIFEST, "name": "one"}, folder="one")
    two = make(manifest={**MANIFEST, "name": "two"}, folder="two")
    plugins, reports = load_plugins([two, tmp_path / "absent", one])
    assert [plugin.name for plugin in plugins] == ["two", "one"]
    assert [report.plugin for report in reports] == ["absent"]


def test_a_report_is_a_document_and_is_logged(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    root = make(with_hooks({**BODY, "python": "absent.py:run"}), {**MANIFEST, "version": "1.2"})
    _, report = loaded(root)
    assert PluginReport.model_validate_json(report.model_dump_json()) == report
    assert json.loads(report.model_dump_json())["path"] == str(root)
    with caplog.at_level("INFO"):
        log_reports([report])
    levels = [(record.levelname, "notes" in record.getMessage()) for record in caplog.records]
    assert levels == [("INFO", True), ("WARNING", True)]
    assert "absent.py" in caplog.text


async def nothing(_context: Any) -> None:
    return None


def test_a_plugin_made_in_code_owns_its_executors() -> None:
    plugin = Plugin("policies", executors=(Executor("policies/a", "llm.invoked", "pre", nothing),))
    assert [one.plugin for one in plugin.executors] == ["policies"]
    assert (plugin.root, plugin.report.path, plugin.report.state) == (None, None, "loaded")
    assert part(plugin.report, "policies/a") == ("executor", "loaded", "")


def test_plugins_made_in_code_differ_by_what_they_declare() -> None:
    digests = {
        Plugin("a").digest,
        Plugin("b").digest,
        Plugin("a", "1").digest,
        Plugin("a", executors=(Executor("x", "llm.invoked", "pre", nothing),)).digest,
        Plugin("a", executors=(Executor("x", "llm.invoked", "pre", nothing, priority=1),)).digest,
        Plugin("a", commands=(CommandSpec(name="x"),)).digest,
    }
    assert len(digests) == 6
    assert Plugin("a").digest in digests


def test_a_plugin_made_in_code_with_an_invalid_name_or_point_raises() -> None:
    with pytest.raises(RegistryError):
        Plugin("No Name")
    with pytest.raises(RegistryError):
        Plugin("a", executors=(Executor("x", "comand.invoked", "pre", nothing),))
