"""What must stay light to import (DESIGN: layout and dependencies)."""

import subprocess
import sys
from typing import Final

import pytest

HEAVY: Final = (
    "pydantic a2a temporalio sqlalchemy httpx starlette textual openai uvloop asyncio importlib.metadata tomllib"
)

TABLE: Final = {
    "import tiny_harness": HEAVY,
    "import tiny_harness.cli.main as m; m.main(['--version'])": HEAVY,
    "import tiny_harness.cli.main as m; m.main(['--help'])": HEAVY,
    "import tiny_harness.cli.main as m; m.main(['send', '--help'])": HEAVY,
    "import tiny_harness.cli.main as m; m.main(['config', 'path'])": HEAVY,
    "import tiny_harness.contracts, tiny_harness.intake": "a2a temporalio sqlalchemy httpx starlette openai",
    "import tiny_harness_engine.core.lifecycle, tiny_harness_engine.core.transcript": (
        "a2a temporalio sqlalchemy httpx starlette openai"
    ),
    "import tiny_harness_engine.workflows.task": "a2a openai httpx httpx2 starlette redis sqlalchemy",
    "import tiny_harness_engine.worker": "openai anthropic starlette a2a",
    "import tiny_harness_gateway.app": "openai anthropic textual",
}


@pytest.mark.parametrize("statement", TABLE)
def test_a_module_stays_light(statement: str) -> None:
    code = f"import sys\n{statement}\nprint(sorted(set({TABLE[statement].split()!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
