"""Ports for what is started later: test processes run side by side and must not meet on one."""

import random
import socket

# Below the ports that the system hands out by itself, so that nobody else's connection takes it meanwhile.
_FIRST, _LAST = 10_000, 32_000


def free_port() -> int:
    """Find a port of 127.0.0.1 that nobody listens on."""
    while True:
        port = random.SystemRandom().randrange(_FIRST, _LAST)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
