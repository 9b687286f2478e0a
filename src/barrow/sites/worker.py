"""Run one Dask worker until its client is done with it.

Started by :mod:`barrow.sites.processes` as ``python -m barrow.sites.worker ADDRESS
OPTIONS``. Standard input is a lifeline: the client holds the other end, so the
worker learns of the client's end however that came about.
"""

import asyncio
import ctypes
import json
import logging
import os
import signal
import sys
import threading
import time
from typing import Any

from barrow.ownership import claim_process

GRACE_SECONDS = 1.0
"""Time for an orderly end; after it the process ends as it is."""


def main(scheduler: str, text: str) -> int:
    """Serve the scheduler at an address; return the exit code of the process."""
    lifeline = _take_lifeline()
    _end_with_parent()
    options = json.loads(text)
    if options["nthreads"] == 1:
        claim_process()
    _restore_environment("PYTHONPATH", options.pop("pythonpath"))
    return asyncio.run(serve(scheduler, options, lifeline))


async def serve(scheduler: str, options: dict[str, Any], lifeline: int) -> int:
    """Run a worker until a signal comes, the lifeline ends, or the scheduler is gone."""
    from distributed.worker import Worker

    from barrow.sites.security import read_security

    _silence_logs()
    security = read_security(options.pop("credentials"))
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not ending.done():
            ending.set_result(code)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, 128 + number)
    watcher = threading.Thread(target=_watch, args=(lifeline, loop, end), daemon=True)
    watcher.start()

    pid = os.getpid()
    worker = await Worker(
        scheduler,
        security=security,
        protocol="tls",
        # Pages about its state, without encryption: for this machine only.
        dashboard_address="127.0.0.1:0",
        startup_information={"pid": lambda _: pid},
        **options,
    )
    finished = asyncio.ensure_future(worker.finished())
    finished.add_done_callback(lambda _: end(0))
    code = await ending
    threading.Thread(target=_exit_after, args=(GRACE_SECONDS, code), daemon=True).start()
    await worker.close(timeout=GRACE_SECONDS, executor_wait=False, reason="barrow-close")
    return code


def _watch(lifeline: int, loop: asyncio.AbstractEventLoop, end: Any) -> None:
    while os.read(lifeline, 1):
        pass
    loop.call_soon_threadsafe(end, 0)
    # The loop may be stuck in a task that does not let go of it.
    _exit_after(GRACE_SECONDS, 0)


def _exit_after(seconds: float, code: int) -> None:
    time.sleep(seconds)
    os._exit(code)


def _take_lifeline() -> int:
    """Move the pipe away from standard input, where a task could read it."""
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return lifeline


def _end_with_parent() -> None:
    """Ask Linux for a kill when the parent ends: it works even while a task holds the GIL."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _restore_environment(name: str, value: str | None) -> None:
    """Give programs started by a task the variable that the client has."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _silence_logs() -> None:
    """Keep Dask's remarks off the user's screen; they can still be fetched by a client."""
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


if __name__ == "__main__":
    exit_code = main(*sys.argv[1:])
    # Threads may still be busy with a task that nobody waits for.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)
