"""How much memory this process holds, and held at most while a task ran."""

import ctypes
import gc
import os
import time
from contextlib import ExitStack, suppress
from typing import Self

from barrow.ownership import is_own_process

# A look costs some 15 µs, so tasks shorter than this share one.
SHORT_SECONDS = 0.005


class PeakGauge:
    """Tells the most memory the process held since it was last asked.

    Linux keeps the highest mark of a process. In a worker of our own the mark is set
    back each time, so it belongs to the task. Elsewhere it is the user's: it is only
    looked at, and if it did not rise, what the process holds now is all that is known.

    Examples
    --------
    >>> with PeakGauge(base_bytes=0) as gauge:
    ...     gauge.read() >= gauge.resident_bytes > 0
    True
    """

    def __init__(self, base_bytes: int) -> None:
        self._base = base_bytes
        self._files = ExitStack()
        self.resident_bytes = 0
        """What the process held when it was last looked at."""

    def __enter__(self) -> Self:
        self._status = self._open("status", os.O_RDONLY)
        self._reset = self._open("clear_refs", os.O_WRONLY) if is_own_process() else None
        self._mark = 0
        self._begin(self._look())
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed for a look to cost little."""
        return time.perf_counter() - self._since > SHORT_SECONDS

    def read(self) -> int:
        """Return the peak since the last time, above the base, and begin anew."""
        mark = self._look()
        # A mark that stands still tells of the past: an import, an earlier run.
        peak = mark if self._reset is not None or mark > self._mark else self.resident_bytes
        self._begin(mark)
        return max(0, peak - self._base)

    def _begin(self, mark: int) -> None:
        self._mark = mark
        if self._reset is not None:
            os.write(self._reset, b"5")
        self._since = time.perf_counter()

    def _look(self) -> int:
        """Return the highest mark; 0 where the system keeps none."""
        if self._status is None:
            self.resident_bytes = resident_bytes()
            return 0
        text = os.pread(self._status, 4096, 0)
        self.resident_bytes = _find_bytes(text, b"VmRSS:")
        return _find_bytes(text, b"VmHWM:")

    def _open(self, name: str, mode: int) -> int | None:
        try:
            file = os.open(f"/proc/self/{name}", mode)
        except OSError:
            return None
        self._files.callback(os.close, file)
        return file


def resident_bytes() -> int:
    """Return the memory that this process holds now."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        import psutil

        return int(psutil.Process().memory_info().rss)


def tidy_up(held_bytes: int, usual_bytes: int) -> int:
    """Give back memory that nothing uses, in a worker of our own; return what is held then.

    An allocator keeps what was freed, for the next task. If that becomes much more than
    usual, it is given back, so that what is left is really in use.
    """
    if held_bytes <= usual_bytes or not is_own_process():
        return held_bytes
    trim()
    return resident_bytes()


def trim() -> None:
    """Give back what malloc keeps for later; where there is no such call, nothing."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def data_bytes() -> int:
    """Return the private memory that this process has asked for; 0 where that is not known."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[5]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _find_bytes(text: bytes, name: bytes) -> int:
    place = text.find(name)
    return 0 if place < 0 else 1024 * int(text[place + len(name) : place + 40].split()[0])


_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
