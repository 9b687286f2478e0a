"""The task: a processor on some spans of events, with all that can go wrong."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from barrow.errors import BarrowError
from barrow.fields.collider.accumulating import accumulate
from barrow.fields.collider.catalogue import PAUSES, Listed
from barrow.fields.collider.columns import Schema
from barrow.fields.collider.events import Touching, make_events
from barrow.fields.collider.files import Effort, EventFile, FaultError
from barrow.fields.collider.opening import borrowed
from barrow.fields.collider.skips import Skip
from barrow.fields.collider.tally import Merge, Portion, Spent, Tally

OnError = Literal["stop", "skip", "skip-file"]

# To find the events on which a processor fails, it is called at most so often for a span.
MOST_CALLS = 200


class Span(NamedTuple):
    """Events of one file, by the number of the file."""

    file: int
    start: int
    stop: int

    @property
    def events(self) -> int:
        """How many they are."""
        return self.stop - self.start


@dataclass(frozen=True)
class Analysis:
    """A processor and its files; called with the numbers of pieces, it returns their tally."""

    process: Callable[[Any], Any]
    files: Sequence[Listed]
    pieces: Sequence[Sequence[Span]] = ()
    schema: Schema | type = "nanoaod"
    on_error: OnError = "stop"
    columns: frozenset[str] = frozenset()
    """Known to be needed: read together."""
    call_events: int = 2**62
    """Events of one call at most, where spans are joined."""
    known: Mapping[Span, Tally] = field(default_factory=dict)
    """What was already done."""
    keep: Any = None
    """Keeps tallies for later, see :mod:`barrow.fields.collider.kept`."""

    @property
    def merge(self) -> Merge:
        """How tallies are joined."""
        is_whole = self.on_error == "skip-file"
        return Merge(tuple(f.entries for f in self.files) if is_whole else ())

    def __call__(self, numbers: np.ndarray) -> Tally:
        """Return the tally of some pieces that follow one another."""
        if self.keep is not None:
            found: Tally | None = self.keep.find(int(numbers[0]), int(numbers[-1]) + 1)
            if found is not None:
                return found
        tally = self.do([span for number in numbers for span in self.pieces[number]])
        if self.keep is not None:
            self.keep.store(int(numbers[0]), int(numbers[-1]) + 1, tally)
        return tally

    def do(self, spans: Sequence[Span]) -> Tally:
        """Return the tally of some spans, read in as few parts as possible."""
        tally, merge = Tally(), self.merge
        for span in join_spans(spans, self.known, self.call_events):
            done = self.known.get(span)
            tally = merge(tally, done if done is not None else self._do_one(span))
        return tally

    def _do_one(self, span: Span) -> Tally:
        value: Any = None
        skips: list[Skip] = []
        spent: list[Spent] = []
        columns: set[str] = set()
        for part in self._walk(span):
            began = time.perf_counter()
            value = accumulate(value, part.value)
            merged = time.perf_counter() - began
            skips += part.skips
            spent += [cost._replace(merge_seconds=merged) for cost in part.spent]
            columns |= part.columns
        tally = Tally(value, tuple(skips), tuple(spent), frozenset(columns))
        if self.on_error != "skip-file":
            return tally
        portion = Portion(span.events, value, tuple(skips))
        # Merged with nothing, so that a file that is finished is settled at once.
        open_one = replace(tally, value=None, skips=(), portions={span.file: portion})
        return self.merge(Tally(), open_one)

    def _walk(self, span: Span) -> Iterator[Tally]:
        """Yield the tallies of parts of a span: one, unless something does not work."""
        waiting, calls = [span], 0
        while waiting:
            part = waiting.pop()
            calls += 1
            try:
                yield self._try(part)
                continue
            except MemoryError:
                halves = self._halve(part, may_cut=True)
                if not halves:
                    raise
            except BarrowError:
                raise
            except Exception as error:
                if self.on_error == "stop":
                    raise
                is_fault = isinstance(error, FaultError)
                is_exact = self.on_error == "skip" and calls < MOST_CALLS
                halves = self._halve(part, may_cut=not is_fault) if is_exact else []
                if not halves:
                    yield Tally(skips=(self._skip(part, error),))
            waiting += reversed(halves)

    def _halve(self, span: Span, *, may_cut: bool) -> list[Span]:
        """Return two halves, cut between clusters where possible; none if there is no way."""
        edges = np.asarray(self.files[span.file].edges)
        inside = edges[(edges > span.start) & (edges < span.stop)]
        middle = (span.start + span.stop) // 2
        if len(inside):
            middle = int(inside[np.argmin(abs(inside - middle))])
        elif not may_cut or span.events < 2:
            return []
        return [span._replace(stop=middle), span._replace(start=middle)]

    def _skip(self, span: Span, error: Exception) -> Skip:
        entry = self.files[span.file].entry
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        attempts = len(PAUSES) + 1 if isinstance(error, FaultError) else 1
        return Skip(entry.dataset, entry.path, span.start, span.stop, reason, attempts)

    def _try(self, span: Span) -> Tally:
        """Return the tally of a span; what cannot be read is tried again."""
        for pause in PAUSES:
            try:
                return self._call(span)
            except FaultError:
                time.sleep(pause)
        return self._call(span)

    def _call(self, span: Span) -> Tally:
        listed = self.files[span.file]
        entry = listed.entry
        began, cpu, start = time.time(), time.thread_time(), time.perf_counter()
        with borrowed(entry.place, entry.tree) as file:
            if file.entries != listed.entries:
                raise FaultError(
                    f"{entry.path} has {file.entries} events now; it had {listed.entries}"
                )
            events, loader = self._open(file, span, listed)
            try:
                value = self.process(events)
            except Exception as error:
                fault = find_fault(error)
                if fault is not None and fault is not error:
                    raise fault from error
                error.add_note(
                    f"barrow: the processor was called with events {span.start} to {span.stop} "
                    f"of {entry.path}"
                )
                raise
            effort, file.effort = file.effort, Effort()
        total = time.perf_counter() - start
        reading = effort.open_seconds + effort.read_seconds + effort.decompress_seconds
        spent = Spent(
            dataset=entry.dataset,
            path=entry.path,
            start=span.start,
            stop=span.stop,
            worker=f"{os.getpid()}/{threading.current_thread().name}",
            began=began,
            open_seconds=effort.open_seconds,
            read_seconds=effort.read_seconds,
            decompress_seconds=effort.decompress_seconds,
            process_seconds=max(0.0, total - reading),
            merge_seconds=0.0,
            cpu_seconds=time.thread_time() - cpu,
            read_bytes=effort.read_bytes,
            value_bytes=effort.value_bytes,
        )
        return Tally(value, (), (spent,), frozenset(loader.touched))

    def _open(self, file: EventFile, span: Span, listed: Listed) -> tuple[Any, Touching]:
        entry = listed.entry
        metadata = {
            "dataset": entry.dataset,
            "filename": entry.path,
            "treename": entry.tree,
            "entrystart": span.start,
            "entrystop": span.stop,
            "fileuuid": listed.uuid,
            **entry.metadata,
        }
        if isinstance(self.schema, type):
            from barrow.fields.collider.coffea import make_nanoevents

            return make_nanoevents(file, span.start, span.stop, self.schema, metadata)
        return make_events(
            file,
            span.start,
            span.stop,
            schema=self.schema,
            together=sorted(self.columns),
            metadata=metadata,
        )


def join_spans(
    spans: Sequence[Span], known: Mapping[Span, Any], most_events: int = 2**62
) -> list[Span]:
    """Return spans with those joined that follow one another; known ones stay as they are.

    Parameters
    ----------
    most_events
        None that was joined has more.

    Examples
    --------
    >>> join_spans([Span(0, 0, 5), Span(0, 5, 9), Span(1, 0, 4)], {})
    [Span(file=0, start=0, stop=9), Span(file=1, start=0, stop=4)]
    """
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.file == span.file
            and last.stop == span.start
            and last not in known
            and span not in known
            and span.stop - last.start <= most_events
        ):
            joined[-1] = last._replace(stop=span.stop)
        else:
            joined.append(span)
    return joined


def find_fault(error: BaseException) -> FaultError | None:
    """Return what could not be read, if that is what made a processor fail."""
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None or isinstance(seen, FaultError):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None
