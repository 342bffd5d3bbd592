"""A server's process, under a supervisor of its own: neither it nor what it starts can outlive us, however we end.

We hold one end of a pipe; the supervisor holds the other, and kills the process group when ours is closed, be it by
`kill -9`. It does so too when the process itself has ended and left others behind.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from tiny_harness.background import in_background

GRACE_S: Final = 1.0
"""After its input is closed, and again after SIGTERM: the engine's own grace is 3 s."""
REAP_S: Final = 1.0
"""For the kernel to end what was killed."""

_SUPERVISOR: Final = """
import os, select, signal, sys
life = int(sys.argv[1])
os.set_inheritable(life, False)
bell, ring = os.pipe()
os.set_blocking(ring, False)
signal.set_wakeup_fd(ring)
def forward(number, frame):
    try:
        os.killpg(child, number)
    except OSError:
        pass
signal.signal(signal.SIGCHLD, lambda number, frame: None)
signal.signal(signal.SIGTERM, forward)
signal.signal(signal.SIGINT, signal.SIG_IGN)
us = os.getpid()
child = os.fork()
if child == 0:
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        if sys.platform == 'linux':
            import ctypes
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
            if os.getppid() != us:
                os._exit(1)
        os.execv(sys.argv[2], sys.argv[2:])
    except BaseException as error:
        os.write(2, f'cannot be started: {error}'.encode())
    os._exit(127)
try:
    os.setpgid(child, child)
except OSError:
    pass
os.dup2(os.open(os.devnull, os.O_RDWR), 0)
os.dup2(0, 1)
os.dup2(0, 2)
is_over = False
while not is_over:
    ready, _, _ = select.select([life, bell], [], [])
    if bell in ready:
        os.read(bell, 100)
    is_over = life in ready or os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
try:
    os.killpg(child, signal.SIGKILL)
except OSError:
    pass
_, status = os.waitpid(child, 0)
code = os.waitstatus_to_exitcode(status)
os._exit(code if code >= 0 else 128 - code)
"""


class Child:
    """A running process with pipes to it."""

    def __init__(self, process: asyncio.subprocess.Process, life: int) -> None:
        self._process = process
        self._life = life
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin: Final = process.stdin
        self.stdout: Final = process.stdout
        self.stderr: Final = process.stderr

    @property
    def pid(self) -> int:
        """The supervisor's."""
        return self._process.pid

    async def wait(self) -> str:
        """Wait for its end, and say how it ended."""
        status = await self._process.wait()
        return f"killed by signal {status - 128}" if status > 128 else f"ended with status {status}"

    def kill(self) -> None:
        """Have the whole group killed. Harmless when it has ended."""
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    async def stop(self) -> None:
        """End it: its input first, as MCP has it, then SIGTERM, then SIGKILL."""
        try:
            async with in_background(_drain(self.stdout)), in_background(_drain(self.stderr)):
                await self._end()
        finally:
            self.kill()
            # Else a stranger that holds its pipes would keep them open here too. There is no public way.
            self._process._transport.close()  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]

    async def _end(self) -> None:
        self.stdin.close()
        if await self._is_gone(GRACE_S):
            return
        with suppress(ProcessLookupError):
            self._process.terminate()
        if await self._is_gone(GRACE_S):
            return
        self.kill()
        await self._is_gone(REAP_S)

    async def _is_gone(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
                return True
        return False


@asynccontextmanager
async def running(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> AsyncGenerator[Child]:
    """Run a process while the block runs.

    Args:
        command: A full path, and arguments.
        env: All of its environment.
        cwd: Its working directory.

    Raises:
        OSError: It cannot be started.
    """
    theirs, ours = os.pipe()
    child: Child | None = None
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-c", _SUPERVISOR, str(theirs), *command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(theirs,),
                env=env,
                cwd=cwd,
                start_new_session=True,  # a Ctrl-C at the terminal is for us; we end the child ourselves
            )
        finally:
            os.close(theirs)
        child = Child(process, ours)
        yield child
    finally:
        if child is None:
            os.close(ours)
        else:
            await child.stop()


async def _drain(stream: asyncio.StreamReader) -> None:
    """Read what nobody wants: a process that is stuck in writing cannot end, nor be seen to have ended."""
    with suppress(OSError):
        while await stream.read(64 * 1024):
            pass
