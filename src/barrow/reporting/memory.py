"""Choose what the figure of memory shows: every process over time, and what befell it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from barrow.reporting.content import Mark, MarkKind, Memory, Series
from barrow.reporting.processes import Processes
from barrow.reporting.tables import Tables, numbers
from barrow.reporting.tasks import Tasks
from barrow.reporting.words import in_order, shorten, to_list
from barrow.units import format_bytes

MOST_SERIES = 6
MOST_POINTS = 400
MOST_MARKS = 300

_WORDS: dict[MarkKind, tuple[str, ...]] = {
    "death": ("lost", "died", "killed", "memory"),
    "pause": ("pause",),
    "spill": ("spill",),
}
# What happens in every run needs no sign.
ORDINARY = ("joined", "left", "graph", "resumed")
_IMPORTANCE: tuple[MarkKind, ...] = ("death", "pause", "spill", "other")


def draw_memory(
    record: Tables, tasks: Tasks, processes: Processes, began: float, last: float
) -> Memory:
    """Return the memory of every process between two moments."""
    samples = record.columns("sample")
    time, held = numbers(samples["time"]), numbers(samples["rss_bytes"])
    names = np.array(samples["process"], object)
    is_sampled = bool(len(time))
    if not is_sampled:
        known = tasks.pick(~np.isnan(tasks.resident_bytes))
        time, held = known.ended, known.resident_bytes
        names = np.array([processes.find(name) for name in known.process], object)
    inside = (time >= began - 1) & (time <= last + 1)
    time, held, names = time[inside] - began, held[inside], names[inside]
    found = []
    # Stable, so that equals stay in the order of the record.
    for name in dict.fromkeys(names.tolist()):
        of_it = names == name
        order = np.argsort(time[of_it], kind="stable")
        found.append((name, time[of_it][order], held[of_it][order]))
    # Those that died are what the reader looks for, then the largest.
    died = {name for name, _, _ in processes.deaths}
    found.sort(key=lambda entry: (entry[0] not in died, -float(entry[2].max())))
    shown = sorted(found[:MOST_SERIES], key=lambda entry: in_order(processes.label(entry[0])))
    series = [
        Series(processes.label(name), *_thin(times, values), limit_bytes=processes.limits.get(name))
        for name, times, values in shown
    ]
    rest = found[MOST_SERIES:]
    if rest:
        series.append(_largest_of(rest))
    moments = sorted(
        [*_list_moments(record, processes, began, last), *_find_spills(record, processes)],
        key=lambda moment: _IMPORTANCE.index(moment.kind),
    )
    kept = [_place(moment, found, processes, began) for moment in moments[:MOST_MARKS]]
    return Memory(
        tuple(series),
        others=len(rest),
        marks=tuple(sorted(kept, key=lambda mark: mark.time)),
        marks_left_out=len(moments) - len(kept),
        is_sampled=is_sampled,
    )


def _thin(time: np.ndarray, held: np.ndarray) -> tuple[list[float], list[float]]:
    """Return at most so many points; in each part of the time the highest stays."""
    if len(time) > MOST_POINTS:
        span = max(time[-1] - time[0], 1e-9)
        part = np.minimum(((time - time[0]) / span * MOST_POINTS).astype(int), MOST_POINTS - 1)
        order = np.lexsort((-held, part))
        chosen = np.sort(order[np.unique(part[order], return_index=True)[1]])
        time, held = time[chosen], held[chosen]
    return to_list(time), to_list(held, digits=9)


def _largest_of(found: Sequence[tuple[str, np.ndarray, np.ndarray]]) -> Series:
    """Return the largest of many processes at each moment."""
    time = np.concatenate([times for _, times, _ in found])
    held = np.concatenate([values for _, _, values in found])
    order = np.argsort(time, kind="stable")
    return Series(f"largest of {len(found)} others", *_thin(time[order], held[order]))


class _Moment(NamedTuple):
    """A mark that has no place yet."""

    time: float
    kind: MarkKind
    process: str
    message: str


def _list_moments(
    record: Tables, processes: Processes, began: float, last: float
) -> Iterator[_Moment]:
    """Yield what happened to the run and to its processes."""
    events = record.columns("event")
    told: set[str] = set()
    for time, kind, message, details in zip(
        *(events[name] for name in ("time", "kind", "message", "details")), strict=True
    ):
        if began - 1 <= time <= last + 1 and kind not in ORDINARY:
            name = processes.named_in(details)
            told |= {name} if classify(kind) == "death" else set()
            yield _Moment(time, classify(kind), name, message)
    for name, left, reason in processes.deaths:
        if name not in told:
            yield _Moment(left, "death", name, f"{processes.label(name)} ended: {reason}")


def _find_spills(record: Tables, processes: Processes) -> Iterator[_Moment]:
    """Yield the moments at which a process began to move results to disk."""
    samples = record.columns("sample")
    before: dict[str, tuple[float, bool]] = {}
    for time, name, spilled in zip(
        *(samples[name] for name in ("time", "process", "spilled_bytes")), strict=True
    ):
        if spilled is None:
            continue
        last, was_growing = before.get(name, (0, False))
        is_growing = spilled > last
        if is_growing and not was_growing:
            message = f"{processes.label(name)} moved results to disk: {format_bytes(spilled)}"
            yield _Moment(time, "spill", name, message)
        before[name] = spilled, is_growing


def classify(kind: str) -> MarkKind:
    """Return which sign an event of a kind gets."""
    for found, words in _WORDS.items():
        if any(word in kind.lower() for word in words):
            return found
    return "other"


def _place(
    moment: _Moment,
    found: Sequence[tuple[str, np.ndarray, np.ndarray]],
    processes: Processes,
    began: float,
) -> Mark:
    """Return a mark at the height of its process at that time, where it is known."""
    time = moment.time - began
    heights = [
        float(np.interp(time, times, values))
        for name, times, values in found
        if name == moment.process
    ]
    return Mark(
        float(f"{time:.6g}"),
        heights[0] if heights else None,
        moment.kind,
        processes.label(moment.process) if moment.process else "",
        shorten(moment.message, 300),
    )
