"""What serving executors must not cost those who serve none."""

import subprocess
import sys


def test_the_transports_are_imported_when_an_app_is_built_and_not_before() -> None:
    code = (
        "import sys, tiny_harness.executors\n"
        "app = tiny_harness.executors.ExecutorApp('deploys')\n"
        "heavy = {'mcp', 'mcp_types', 'jsonrpcserver', 'httpx2'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "import os; os.environ['TINY_HARNESS_HOOK_SECRET_DEPLOYS'] = 'x'\n"
        "app.asgi()\n"
        "print('mcp' in sys.modules, 'jsonrpcserver' in sys.modules)\n"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]", "True True"]
