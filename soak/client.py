"""The process whose runs are disturbed: a scheduler, two workers, one run after the other.

It takes orders as lines of JSON on its standard input and answers in the same way. What
its engine hands out and gets back is written down as it happens, so that whoever kills it
knows what was in flight.
"""

import faulthandler
import hashlib
import json
import os
import queue
import signal
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import barrow
from barrow.running.dask_engine import DaskEngine
from barrow.running.engines import Setback
from soak import work

WORKERS = 2
MEMORY = "1GB"


def main() -> None:
    """Serve until the standard input ends."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    orders: queue.Queue[dict[str, Any] | None] = queue.Queue()
    with barrow.cluster("local", workers=WORKERS, threads=1, memory=MEMORY) as cluster:
        threading.Thread(target=_listen, args=(cluster, orders), daemon=True).start()
        say({"event": "ready"})
        while (order := orders.get()) is not None:
            try:
                cluster.wait(WORKERS, timeout=60)
                say({"event": "done", **_obey(order)})
            except Exception as error:
                text = "".join(traceback.format_exception(error))
                say({"event": "failed", "error": f"{type(error).__name__}: {error}", "text": text})


def _listen(cluster: Any, orders: "queue.Queue[dict[str, Any] | None]") -> None:
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] in ("retire", "disconnect"):
            # The run goes on meanwhile; whether the worker is still there is another matter.
            with suppress(Exception):
                _send_away(cluster, order["do"], order["pid"])
        else:
            orders.put(order)
    orders.put(None)


def _send_away(cluster: Any, how: str, pid: int) -> None:
    (address,) = [worker.address for worker in cluster.workers if worker.pid == pid]
    if how == "retire":
        cluster.client.retire_workers([address], close_workers=True)
    else:
        cluster.client.run(_hang_up, workers=[address], wait=False)


def _hang_up(dask_worker: Any) -> None:
    dask_worker.batched_stream.comm.abort()


def _obey(order: dict[str, Any]) -> dict[str, Any]:
    if order["do"] == "plan":
        return _plan(order)
    _keep_log(Path(order["flight"]))
    say({"event": "begun"})
    sha = hashlib.sha256()
    result = _call(order, order["options"])
    sha.update(np.ascontiguousarray(result[...]).tobytes())
    return {"digest": sha.hexdigest()}


def _plan(order: dict[str, Any]) -> dict[str, Any]:
    func, source, options = _unpack(order)
    if order["sink"] == "reduce":
        options["combine"] = np.add
    plan = barrow.plan(func, source, **options, quiet=True)
    plan.with_chunks(dim_0=work.FRAMES_PER_CHUNK).save(order["path"])
    return {}


def _call(order: dict[str, Any], more: dict[str, Any]) -> Any:
    func, source, options = _unpack(order)
    if order["sink"] == "reduce":
        return barrow.reduce(func, source, combine=np.add, **options, **more, quiet=True)
    return barrow.map(func, source, **options, **more, quiet=True)


def _unpack(order: dict[str, Any]) -> tuple[Any, str, dict[str, Any]]:
    kwargs = dict(order["kwargs"])
    options: dict[str, Any] = {"whole": (1, 2), "kwargs": kwargs, "name": order["func"]}
    if kwargs.get("halo"):
        options["halo"] = {0: kwargs["halo"]}
    return getattr(work, order["func"]), order["source"], options


def _keep_log(path: Path) -> None:
    """Write down what the engine takes and gives from here on."""
    submit, collect = _SUBMIT, _COLLECT

    def note(what: str, units: Any) -> None:
        if units:
            work.append(path, " ".join([what, *(f"{u.start}-{u.stop}" for u in units)]))

    def logged_submit(self: DaskEngine, batch: Any) -> None:
        note("out", batch.units)
        submit(self, batch)

    def logged_collect(self: DaskEngine) -> list[Any]:
        outcomes = collect(self)
        for outcome in outcomes:
            if isinstance(outcome, Setback):
                note("lost" if outcome.is_loss else "refused", outcome.batch.units)
            else:
                batch, report = outcome
                note("back", batch.units[: len(batch.units) - len(report.left)])
                note("left", report.left)
        return outcomes

    DaskEngine.submit = logged_submit  # type: ignore[method-assign]
    DaskEngine.collect = logged_collect  # type: ignore[method-assign]


_SUBMIT, _COLLECT = DaskEngine.submit, DaskEngine.collect


def say(answer: dict[str, Any]) -> None:
    """Write one line of JSON."""
    os.write(_ANSWERS, (json.dumps(answer) + "\n").encode())


if __name__ == "__main__":
    # What anybody prints must not get between the answers.
    _ANSWERS = os.dup(1)
    os.dup2(2, 1)
    main()
