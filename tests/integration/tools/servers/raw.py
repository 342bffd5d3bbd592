"""A server that misbehaves, written down to the bytes: `python raw.py FOLDER [KIND ...]`. Speaks just enough of MCP.

Kinds: `slow` (starts after 2 s), `noisy` (prints lines that are no messages), `mute` (never answers), `broken` (ends at
once), `stubborn` (ignores the end of its input and SIGTERM, and starts a child that does too), `deaf` (stops reading
after the first call), `busy` (while it runs a call it answers nothing), `flood` (writes garbage for ever),
`endless` (one line that never ends), `closing` (closes its output at a call and lives on).
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
KINDS = set(sys.argv[2:])
HANG = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"

RESULTS: dict[str, Any] = {
    "unstructured": {"content": [{"type": "text", "text": "fine"}], "structuredContent": {"total": "many"}},
    "promised": {"content": [{"type": "text", "text": "fine"}]},
    "malformed": {"content": [{"type": "nonsense"}], "structuredContent": [1, 2]},
    "nothing": {},
    "refused": None,
}
OUTPUT = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
TOOLS: list[dict[str, Any]] = [
    *({"name": name, "inputSchema": {"type": "object"}, "outputSchema": OUTPUT} for name in RESULTS),
    {"name": "work", "inputSchema": {"type": "object"}},
    {"name": "broken schema", "inputSchema": {"type": "object", "properties": {"a": {"type": "no type"}}}},
    {"name": "\u0007bell", "inputSchema": {"type": "object"}},
]


def say(line: str) -> None:
    """Write a line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def call(name: str) -> dict[str, Any]:
    """Answer a call."""
    if "deaf" in KINDS or "busy" in KINDS:
        time.sleep(600 if "deaf" in KINDS else 3)
    if "closing" in KINDS:
        os.close(1)
        time.sleep(600)
    if name == "refused":
        return {"error": {"code": -32042, "message": "come\x1b back later"}}
    return {"result": RESULTS.get(name, {"content": [{"type": "text", "text": "worked"}]})}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request."""
    method = request["method"]
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        info = {"name": "raw", "version": "1"}
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        return call(request["params"]["name"])
    return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    """Serve."""
    with (FOLDER / "pids").open("a") as file:
        file.write(f"{os.getpid()}\n")
    if "broken" in KINDS:
        sys.exit("no licence found")
    if "stubborn" in KINDS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", HANG])
        with (FOLDER / "pids").open("a") as file:
            file.write(f"{child.pid}\n")
    if "slow" in KINDS:
        time.sleep(2)
    while "flood" in KINDS:
        say("not a message")
    while "endless" in KINDS:
        sys.stdout.write("x" * 1_000_000)
    for line in sys.stdin:
        if "noisy" in KINDS:
            say("Welcome! \x1b[31m{not json}\n{}\n[1, 2]\n\x00")
            sys.stdout.buffer.write(b"\xff\xfe\n")
            sys.stdout.buffer.flush()
        request = json.loads(line)
        if "id" in request and "mute" not in KINDS:
            say(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(request)}))
    if "stubborn" in KINDS:
        time.sleep(600)


main()
