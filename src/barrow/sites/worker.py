"""Run one Dask worker until its client is done with it.

Started as ``python -m barrow.sites.worker ADDRESS OPTIONS``. For
:mod:`barrow.sites.processes` standard input is a lifeline: the client holds the other
end, so the worker learns of the client's end however that came about. In a job of
:mod:`barrow.sites.job_pool` the connection to the scheduler has to do.
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
from contextlib import suppress
from typing import Any

from barrow.ownership import claim_process
from barrow.sites.jobs import INTERRUPTED_CODE
from barrow.sites.scratch import Scratch

GRACE_SECONDS = 1.0
"""Time for an orderly end; after it the process ends as it is."""
HAND_OVER_SECONDS = 10.0
"""Time to give to others what a worker that leaves has computed."""


def main(scheduler: str, text: str) -> int:
    """Serve the scheduler at an address; return the exit code of the process."""
    options = json.loads(text)
    is_job = options.pop("is_job", False)
    lifeline = None if is_job else _take_lifeline()
    if options["nthreads"] == 1:
        claim_process()
    _restore_environment("PYTHONPATH", options.pop("pythonpath"))
    if lifeline is not None:
        _end_with_parent()
        return asyncio.run(serve(scheduler, options, lifeline))
    scratch = Scratch.create()
    try:
        return asyncio.run(serve(scheduler, {**options, "local_directory": str(scratch.path)}))
    finally:
        scratch.close()


async def serve(scheduler: str, options: dict[str, Any], lifeline: int | None = None) -> int:
    """Run a worker until a signal comes, the lifeline ends, or the scheduler is gone.

    In a job, which has no lifeline, there is one more signal: ``SIGUSR1`` says that the
    job soon has to end, so the worker takes no more tasks and leaves when it is done.
    """
    from distributed.comm.addressing import get_address_host
    from distributed.utils import get_ip
    from distributed.worker import Worker

    from barrow.sites.security import read_security

    _silence_logs()
    security = read_security(options.pop("credentials"))
    patience = options.pop("hand_over_seconds", 0.0)
    if lifeline is None:
        # The address by which the scheduler is reached, and no other.
        options["host"] = get_ip(get_address_host(scheduler))
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not ending.done():
            ending.set_result(code)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, 128 + number)
    asked = asyncio.Event()
    if lifeline is None:
        # Before the scheduler knows the worker: without it the signal would end the process.
        loop.add_signal_handler(signal.SIGUSR1, asked.set)
    else:
        threading.Thread(target=_watch, args=(lifeline, loop, end), daemon=True).start()

    class PrivateWorker(Worker):
        def start_http_server(self, *_: Any, **__: Any) -> None:
            """Serve no pages about its state: everybody on this machine could look at them."""

    pid = os.getpid()
    worker = await PrivateWorker(
        scheduler,
        security=security,
        protocol="tls",
        startup_information={"pid": lambda _: pid},
        **options,
    )
    leaving = asyncio.ensure_future(hand_over(worker, patience, asked, end))
    finished = asyncio.ensure_future(worker.finished())
    finished.add_done_callback(lambda _: end(0))
    code = await ending
    leaving.cancel()
    threading.Thread(target=_exit_after, args=(GRACE_SECONDS, code), daemon=True).start()
    await worker.close(timeout=GRACE_SECONDS, executor_wait=False, reason="barrow-close")
    return code


async def hand_over(worker: Any, seconds: float, asked: asyncio.Event, end: Any) -> None:
    """When asked, take no more tasks, wait until those in hand are done, and end."""
    from distributed.core import Status

    await asked.wait()
    worker.status = Status.closing_gracefully
    last = time.monotonic() + seconds
    while worker.state.executing and time.monotonic() < last:
        await asyncio.sleep(0.1)
    if worker.state.executing:
        end(INTERRUPTED_CODE)
        return
    # Answers that nobody has fetched yet go to other workers, or the tasks would be done again.
    retiring = worker.scheduler.retire_workers(
        workers=[worker.address], close_workers=False, remove=True, stimulus_id="barrow-hand-over"
    )
    with suppress(OSError, TimeoutError):
        await asyncio.wait_for(retiring, HAND_OVER_SECONDS)
    end(0)


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
