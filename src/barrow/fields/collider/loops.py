"""Find loops over events in Python: lines of a processor that run once for each event."""

import linecache
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import barrow
from barrow.model.finding import Finding

CODE = "COD04"
# A processor that is faster than this for each event has no such loop.
SLOW_SECONDS = 2e-6
# ... and one that takes little of the time is not worth looking at.
SHARE = 0.3
# Lines are counted for so many events, and twice as many: a loop over events runs twice as often.
EVENTS = 50


class Loop(NamedTuple):
    """A line that runs for each event."""

    path: str
    line: int
    times: int
    events: int

    @property
    def source(self) -> str:
        """The line itself."""
        return linecache.getline(self.path, self.line).strip()


def is_suspect(metrics: Mapping[str, Any]) -> bool:
    """Return whether a processor took so long that a loop may be the reason."""
    spent = metrics["process_seconds"]
    is_slow = spent > SLOW_SECONDS * max(1, metrics["entries"])
    return bool(is_slow and spent > SHARE * metrics["processtime"])


def find_loop(call: Callable[[int], Any]) -> Loop | None:
    """Return the line that runs most often, if it does so for each event.

    Parameters
    ----------
    call
        Calls the processor with so many events.
    """
    few, many = (_count_lines(call, events) for events in (EVENTS, 2 * EVENTS))
    for (path, line), times in many.most_common():
        if times < 2 * EVENTS:
            break
        if 1.5 * few[path, line] <= times:
            return Loop(path, line, times, 2 * EVENTS)
    return None


def describe_loop(loop: Loop, name: str, metrics: Mapping[str, Any]) -> Finding:
    """Return the finding: where the loop is, what it costs, and how to compile it."""
    spent = metrics["process_seconds"]
    share = f"{spent / max(1e-9, metrics['processtime']):.0%}".replace("%", " %")
    place = f"line {loop.line} of {Path(loop.path).name}"
    return Finding(
        CODE,
        "warning",
        f"'{name}' visits events one by one in Python: {place}, `{loop.source}`.",
        (
            f"the line ran {loop.times} times for {loop.events} events",
            f"{1e6 * spent / max(1, metrics['entries']):.0f} µs for each event, {share} of the "
            "time of all tasks",
        ),
        "Work on whole columns (masks, ak.sum, ak.num), or compile the loop, and give it columns "
        "that are read:\n"
        "    @numba.njit\n"
        "    def visit(masses, sums):\n"
        "        for number in range(len(masses)):\n"
        "            for mass in masses[number]:\n"
        "                sums[number] += mass\n"
        "    visit(ak.materialize(events.Muon.mass), sums)",
        saves_seconds=spent / max(1, metrics["workers"]),
    )


def _count_lines(call: Callable[[int], Any], events: int) -> Counter[tuple[str, int]]:
    """Return how often each line of the user's own code runs."""
    counts: Counter[tuple[str, int]] = Counter()

    def look(frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            counts[frame.f_code.co_filename, frame.f_lineno] += 1
        return look

    def enter(frame: Any, event: str, argument: Any) -> Any:
        return look(frame, event, argument) if _is_own(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call(events)
    finally:
        sys.settrace(before)
    return counts


_LIBRARIES = (
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    str(Path(barrow.__file__).parent),
    "<frozen",
    "<__array_function__",
)


def _is_own(filename: str) -> bool:
    return not filename.startswith(_LIBRARIES) and "site-packages" not in filename
