"""The full-screen surface, used for a whole story on a real terminal emulator against a real harness.

First run, talk, a command, a sub-task and back, a question, an approval, complete: by keys alone, at every size, with
state and keys in sight on every screen. The larger sizes and the whole storm run under TINY_HARNESS_SOAK=1.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.process import relatives_of, until_gone
from tests.e2e.tmux import Tmux, on_terminal, too_wide
from tiny_harness.demo import PLUGIN

pytestmark = pytest.mark.timeout(300)

SIZES = [(80, 24)] + ([(120, 40), (200, 60)] if os.environ.get("TINY_HARNESS_SOAK") else [])
STORM = [(60, 20), (200, 60), (61, 59), (109, 21), (110, 20), (199, 22)]
LONG_STORM = [(columns, rows) for columns in range(60, 201, 20) for rows in (20, 33, 60)]


def home_in(folder: Path) -> tuple[list[str], dict[str, str]]:
    """How the program is run for the first time in a home with the demo's plugin and the scripted model."""
    config = folder / "config.toml"
    config.write_text(
        f'plugins = ["{PLUGIN}"]\n[model]\nprovider = "scripted"\n'
        f'[store]\nsqlite_path = "{folder / "store.db"}"\n[server]\nparticipant = "ann"\n'
    )
    command = [sys.executable, "-m", "tiny_harness", "--config", str(config)]
    # Some shells tell a size to everything that they start; the terminal's own counts.
    size = {"COLUMNS": "80", "LINES": "24"}
    return command, {"HOME": str(folder), "TERM": "tmux-256color", "LANG": "C.UTF-8", **size}


async def seen(tmux: Tmux, *words: str) -> None:
    """Wait for a screen with some words, its state and all its keys; nothing on it is too wide."""
    rows = await tmux.shows(*words, "^Q Quit")
    assert too_wide(rows, tmux.columns) == []
    assert rows[1].strip()[:1] in "○●■", "\n".join(rows)


async def storm(tmux: Tmux, words: str, sizes: list[tuple[int, int]]) -> None:
    """Resize again and again; after each time the screen is whole."""
    for columns, rows in sizes:
        await tmux.resize(columns, rows)
    for columns, rows in sizes:
        await tmux.resize(columns, rows)
        await tmux.until(
            lambda shown, columns=columns, rows=rows: (
                len(shown) == rows and words in shown[1] and "^Q Quit" in shown[-1] and not too_wide(shown, columns)
            ),
            f"a whole screen of {columns}x{rows}",
        )


@pytest.mark.parametrize(("columns", "rows"), SIZES)
async def test_the_whole_story_is_told_by_keys_alone(tmp_path: Path, columns: int, rows: int) -> None:
    command, environ = home_in(tmp_path)
    async with on_terminal(columns, rows, command, environ) as tmux:
        await seen(tmux, "Type a message", "Not started", "Connected")
        await tmux.type("Hello!")
        await seen(tmux, "What has happened?", "Input required · Your turn")
        await tmux.keys("/")
        await seen(tmux, "/model", "/sub-task")
        await tmux.type("status")
        await seen(tmux, "Usage: 1 calls", "Input required · Your turn")
        await tmux.type("/sub-task look at the order")
        await seen(tmux, "is open and")
        await tmux.keys("F8")
        await seen(tmux, "Part of", "Your turn")
        await tmux.type("What do you see?")
        await seen(tmux, "You said: What do you", "Your turn")
        await tmux.keys("F2")
        await seen(tmux, "■ Completed")
        await tmux.keys("F9")
        await seen(tmux, "is COMPLETED", "Your turn")
        await tmux.type("My kettle arrived broken. It is order A-17.")
        await seen(tmux, "Waiting for your answer", "card")
        await storm(tmux, "Waiting for your answer", LONG_STORM if len(SIZES) > 1 else STORM)
        await tmux.resize(columns, rows)
        await tmux.keys("F6", "Enter")
        await seen(tmux, "Waiting for your approval", "approve")
        await tmux.keys("F6", "Enter")
        await seen(tmux, "Done. I paid back", "Your turn")
        await tmux.keys("F2")
        await seen(tmux, "■ Completed")
        await tmux.keys("F4")
        await seen(tmux, "Not started")
        await tmux.keys("C-q")
        await tmux.ended()
    await until_gone(tmp_path, relatives_of)
