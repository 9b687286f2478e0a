"""A parcel: work packed once, opened once in every worker process.

The bytes travel as the result of a task of their own, so that a worker that
joins late, or comes back after a death, gets them like any other; and a module
that the workers do not have is an error of that task, not the end of a worker.
"""

import pickle
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

import cloudpickle

from barrow.errors import TravelError
from barrow.running.backlog import Batch
from barrow.running.fence import FENCE
from barrow.running.task import TaskReport, Work, perform

_opened: "OrderedDict[str, Work]" = OrderedDict()
_lock = Lock()
_KEPT = 4


@dataclass(frozen=True)
class Parcel:
    """Work as bytes, with a name of its own."""

    token: str
    content: bytes

    def open(self) -> Work:
        """Return the work; unpacked at most once in each process."""
        with _lock:
            work = _opened.get(self.token)
            if work is None:
                work = _opened[self.token] = self._unpack()
                while len(_opened) > _KEPT:
                    _opened.popitem(last=False)
            return work

    def _unpack(self) -> Work:
        try:
            work: Work = pickle.loads(self.content)
        except ImportError as error:
            raise TravelError(
                f"A worker cannot import what your function needs: {error}. Install that module "
                "where the workers run, start them in its folder, or define the function in your "
                "script."
            ) from None
        return work


def pack(work: Work, name: str) -> Parcel:
    """Return the work as a parcel, or say what in it cannot be sent."""
    try:
        content = cloudpickle.dumps(work)
    except Exception as error:
        raise TravelError(
            f"'{name}' cannot be sent to the workers: {error}. Something it uses (an open file, a "
            "lock, a connection) exists in this process only: create it inside the function, or "
            "run with cluster=False."
        ) from error
    return Parcel(uuid.uuid4().hex, content)


def perform_parcel(parcel: Parcel, batch: Batch, readers: Any) -> TaskReport:
    """Do some units of packed work: what a Dask worker runs."""
    from distributed import get_worker

    FENCE.know_limit(get_worker().memory_manager.memory_limit or 0)
    return perform(parcel.open(), batch, readers)


def check_parcel(parcel: Parcel) -> None:
    """Fail if the work cannot be opened here."""
    parcel.open()
