"""The page's modules: strictly typed, and tested without a page, by Node; and its words are everybody's words."""

import json
import re
from pathlib import Path

import pytest

from tests.npm import npm_folder, run
from tests.tools import require_tool
from tiny_harness.ext.supervision import SupervisionData, marks
from tiny_harness.states import SUB_STATE_LABELS, TaskState, describe
from tiny_harness_gateway import webui

HERE = Path(__file__).parent
STATIC = Path(webui.__file__).parent / "static"
MARKUP = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
MAX_LINES = 3_000
"""Above this the decision against a build step is to be made anew (WEBUI)."""


def test_every_module_is_type_correct() -> None:
    packages = npm_folder(HERE / "package.json") / "node_modules"
    compiler = str(packages / "typescript" / "bin" / "tsc")
    done = run(require_tool("node"), compiler, "-p", str(HERE), "--typeRoots", str(packages / "@types"))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", sorted(HERE.glob("*.test.js")), ids=lambda file: file.name)
def test_the_modules_do_what_their_tests_say(file: Path) -> None:
    done = run(require_tool("node"), "--test", str(file))
    assert done.returncode == 0, done.stdout
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE), "no test ran"


def test_the_page_says_the_same_words_for_states_as_every_surface() -> None:
    told = ask_words(
        f"const subStates = {json.dumps([*SUB_STATE_LABELS, 'awaiting-moon', None])};"
        f"const states = {json.dumps([state.value for state in TaskState])};"
        "console.log(JSON.stringify(states.map((state) => subStates.map((sub) => words.describe(state, sub)))));"
    )
    subs = [*SUB_STATE_LABELS, "awaiting-moon", None]
    assert told == [[describe(state, sub) for sub in subs] for state in TaskState]


def test_the_page_says_the_same_words_for_supervision_as_every_surface() -> None:
    found = [
        SupervisionData(worker="bob"),
        SupervisionData(worker="bob", queue_position=3),
        SupervisionData(worker="bob", reminders=1, stalled=True, stopped=True),
        SupervisionData(worker="bob", reminders=4, warnings=1),
        SupervisionData(worker="bob", warnings=2, expired=True),
    ]
    told = ask_words(
        f"const found = {json.dumps([data.model_dump(exclude_none=True) for data in found])};"
        "console.log(JSON.stringify(found.map((data) => words.marks(data))));"
    )
    assert told == [list(marks(data)) for data in found]


def test_the_page_stays_small_and_runs_nothing_of_others() -> None:
    modules = {file.name: file.read_text() for file in STATIC.glob("*.js")}
    lines = [line for text in modules.values() for line in text.splitlines() if line.strip()]
    assert len(lines) < MAX_LINES
    for name, text in modules.items():
        sources = re.findall(r'^(?:import|export)\b[^;]*?from "([^"]+)"', text, re.MULTILINE)
        assert all(source.startswith("./") and source[2:] in modules for source in sources), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            name
        )


def test_all_files_of_the_page_are_linked_or_imported() -> None:
    index = (STATIC / "index.html").read_text()
    texts = index + "".join(file.read_text() for file in STATIC.glob("*.js"))
    for file in STATIC.iterdir():
        assert file.name == "index.html" or re.search(rf'["/]{re.escape(file.name)}"', texts), file.name


def ask_words(program: str) -> object:
    """Run a program with the page's words in Node; what it printed, as JSON."""
    source = f'import * as words from "{(STATIC / "words.js").as_uri()}"; {program}'
    done = run(require_tool("node"), "--input-type=module", "-e", source)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
