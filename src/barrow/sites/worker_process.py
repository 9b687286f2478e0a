"""Keep one worker running on this machine, through all the processes that bear its name.

Each is a plain child started with the interpreter, never by ``multiprocessing``, which
would run the user's script a second time. Importing this module imports Dask.
"""

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from distributed.core import Status
from distributed.deploy.spec import ProcessInterface

from barrow.sites.guard import GUARD_SECONDS, GUARD_SHARE, held_bytes
from barrow.sites.workers import WorkerExit
from barrow.units import format_bytes

logger = logging.getLogger(__name__)

MOST_REPLACEMENTS = 1000
MOST_FAILED_STARTS = 5
"""Processes in a row that ended before they had reached the scheduler."""
QUICK_SECONDS = 1.0
"""A worker that ends so soon after it came is replaced with growing patience."""
LONGEST_PAUSE_SECONDS = 1.0
CLOSE_SECONDS = 1.25
"""A worker ends by itself within one second of being asked; then it is killed."""
TAIL_LINES = 20


class WorkerProcess(ProcessInterface):
    """One worker, through all the processes that bear its name.

    Parameters
    ----------
    scheduler
        Address the worker reports to.
    name
        Name the worker keeps when its process is replaced.
    options
        Arguments of ``distributed.Worker`` that can be written as JSON.
    environment
        Environment of the process.
    exits, failures
        Lists to which the supervisor adds what it saw.
    """

    def __init__(
        self,
        scheduler: str,
        name: str,
        *,
        options: Mapping[str, Any],
        environment: Mapping[str, str],
        exits: list[WorkerExit],
        failures: list[str],
    ) -> None:
        super().__init__(scheduler=scheduler, name=name)
        self.name = name
        self._command = _make_command(scheduler, {**options, "name": name})
        self._limit_bytes = int(options["memory_limit"])
        self._environment = environment
        self._exits = exits
        self._failures = failures
        self._closing = asyncio.Event()
        self._arrived_seconds: float | None = None
        self._held = bytearray()
        self._tail: deque[bytes] = deque(maxlen=TAIL_LINES)

    async def start(self) -> None:
        """Start a process and its supervisor; the worker reports to the scheduler later."""
        await self._launch()
        self._supervisor = asyncio.create_task(self._supervise())
        await super().start()

    async def close(self) -> None:
        """End the process, kindly if possible, and wait until it is gone."""
        self._closing.set()
        if self.status == Status.running:
            await self._supervisor
        await super().close()

    def mark_arrival(self) -> None:
        """Note that the scheduler knows the worker; what it writes is for the user now."""
        self._arrived_seconds = time.monotonic()
        _write_stderr(bytes(self._held))
        self._held.clear()

    async def _launch(self) -> None:
        lifeline, self._lifeline = os.pipe()
        self._stderr, stderr = os.pipe()
        os.set_blocking(self._stderr, False)
        self._arrived_seconds = None
        self._why = ""
        self._held.clear()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=lifeline,
                stderr=stderr,
                env=self._environment,
                # Ctrl-C is for the client; it then ends the workers in order.
                start_new_session=True,
            )
        except BaseException:
            os.close(self._lifeline)
            os.close(self._stderr)
            raise
        finally:
            os.close(lifeline)
            os.close(stderr)
        asyncio.get_running_loop().add_reader(self._stderr, self._forward)

    async def _supervise(self) -> None:
        failed_starts = quick_ends = replaced = 0
        while True:
            ended = asyncio.create_task(self._process.wait())
            closing = asyncio.create_task(self._closing.wait())
            guard = asyncio.create_task(self._guard())
            await asyncio.wait({ended, closing}, return_when=asyncio.FIRST_COMPLETED)
            closing.cancel()
            guard.cancel()
            if self._closing.is_set():
                await self._end(ended)
                return
            self._release()
            arrived = self._arrived_seconds
            self._exits.append(
                WorkerExit(self.name, self._process.pid, ended.result(), time.time(), self._why)
            )
            lived = time.monotonic() - arrived if arrived is not None else 0.0
            failed_starts = 0 if arrived is not None else failed_starts + 1
            quick_ends = quick_ends + 1 if lived < QUICK_SECONDS else 0
            if failed_starts >= MOST_FAILED_STARTS or replaced >= MOST_REPLACEMENTS:
                tail = b"\n".join(self._tail).decode(errors="replace").strip()
                self._give_up(describe_failure(self.name, ended.result(), failed_starts, tail))
                await self._closing.wait()
                return
            with suppress(TimeoutError):
                pause = choose_pause(quick_ends)
                await asyncio.wait_for(self._closing.wait(), pause)
                return
            replaced += 1
            try:
                await self._launch()
            except OSError as error:
                self._give_up(f"Worker {self.name} ended and cannot be started again: {error}")
                await self._closing.wait()
                return

    async def _guard(self) -> None:
        """Kill the process if it holds more than it may: it would take the machine with it."""
        while (held := held_bytes(self._process.pid)) <= GUARD_SHARE * self._limit_bytes:
            await asyncio.sleep(GUARD_SECONDS)
        limit = format_bytes(self._limit_bytes)
        self._why = f"held {format_bytes(held)} of its limit of {limit}: it was killed"
        with suppress(ProcessLookupError):
            self._process.kill()

    async def _end(self, ended: "asyncio.Task[int]") -> None:
        os.close(self._lifeline)
        self._lifeline = -1
        await asyncio.wait({ended}, timeout=CLOSE_SECONDS)
        if not ended.done():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await ended
        self._release()

    def _release(self) -> None:
        """Let go of the pipes of a process that has ended."""
        self._forward()
        if self._stderr >= 0:
            self._close_stderr()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _forward(self) -> None:
        """Pass on what the worker wrote to its standard error, and remember the end of it."""
        while self._stderr >= 0:
            try:
                block = os.read(self._stderr, 65536)
            except BlockingIOError:
                return
            if not block:
                self._close_stderr()
                return
            self._tail.extend(block.splitlines())
            if self._arrived_seconds is None:
                self._held += block
            else:
                _write_stderr(block)

    def _close_stderr(self) -> None:
        asyncio.get_running_loop().remove_reader(self._stderr)
        os.close(self._stderr)
        self._stderr = -1

    def _give_up(self, failure: str) -> None:
        self._failures.append(failure)
        logger.error(failure)


def choose_pause(quick_ends: int) -> float:
    """Return the seconds to wait before a worker is started again.

    Examples
    --------
    >>> [choose_pause(n) for n in (0, 1, 2, 3, 20)]
    [0.0, 0.0, 0.1, 0.2, 1.0]
    """
    return min(LONGEST_PAUSE_SECONDS, 0.1 * 2 ** (quick_ends - 2)) if quick_ends > 1 else 0.0


def describe_failure(name: str, code: int, failed_starts: int, tail: str) -> str:
    """Return why a worker is not started any more.

    Examples
    --------
    >>> print(describe_failure("0", 1, 5, "ImportError: no module named dask"))
    Worker 0 ended 5 times before it could begin, the last time with exit code 1. It wrote:
    ImportError: no module named dask
    """
    if failed_starts < MOST_FAILED_STARTS:
        return f"Worker {name} was replaced {MOST_REPLACEMENTS} times and is left alone now."
    return (
        f"Worker {name} ended {failed_starts} times before it could begin, the last time with "
        f"exit code {code}. It wrote:\n{tail or 'nothing'}"
    )


def _make_command(scheduler: str, options: Mapping[str, Any]) -> list[str]:
    # Without -P the current folder would come first, and a file there called random.py
    # would be taken for the standard library's.
    return [sys.executable, "-P", "-m", "barrow.sites.worker", scheduler, json.dumps(options)]


def _write_stderr(block: bytes) -> None:
    # The file itself and not sys.stderr: as if the worker had inherited it.
    with suppress(OSError):
        while block:
            block = block[os.write(2, block) :]
