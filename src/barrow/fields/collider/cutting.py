"""Cut the events of all files into pieces of about the same time.

Numbers in, spans out. A piece is some clusters of one file, or many small files; a chunk is
one or more pieces. Clusters are cut only where nothing else helps: to read a part of one, all
of it is decompressed.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from barrow.fields.collider.analysis import Span
from barrow.fields.collider.catalogue import Listed

# Of the time of a piece, what may be lost by calling the processor once more.
OVERHEAD_SHARE = 0.05
# Pieces for each core, so that all end at about the same time.
PIECES_PER_CORE = 12
# ... unless they would become so short that calls cost more than the work: then so many.
LEAST_PER_CORE = 3
SHORTEST_SECONDS = 0.02
# Memory of a call. Larger arrays go back to the system after it, and come anew page by page:
# plain code took 0.87 s for 3 million events in one step, and 0.43 s in six.
CALL_BYTES = 100e6


@dataclass(frozen=True)
class Pace:
    """How long a processor takes, measured."""

    event_seconds: float
    call_seconds: float = 0.0
    """For each call, however few events it gets."""
    event_bytes: float = 0.0
    """Most memory for each event."""
    startup_seconds: float = 0.0
    """What the first call took on top."""

    def seconds(self, span: Span) -> float:
        """Return the predicted time for a span in a call of its own."""
        return self.call_seconds + self.event_seconds * span.events

    @property
    def call_events(self) -> int:
        """How many events are worth one call."""
        if self.event_bytes <= 0:
            return 2**62
        worthwhile = self.call_seconds / (OVERHEAD_SHARE * max(1e-12, self.event_seconds))
        return max(1, int(max(worthwhile, CALL_BYTES / self.event_bytes)))


def list_spans(files: Sequence[Listed], most_events: int) -> list[Span]:
    """Return all events in whole clusters, each span as long as may be.

    Examples
    --------
    >>> from barrow.fields.collider.filesets import Entry
    >>> file = Listed(Entry("data", "a.root", "Events"), 250, (0, 100, 200, 250))
    >>> [[span[1:] for span in list_spans([file], most)] for most in (200, 60)]
    [[(0, 200), (200, 250)], [(0, 50), (50, 100), (100, 150), (150, 200), (200, 250)]]
    """
    return [
        Span(number, start, stop)
        for number, listed in enumerate(files)
        for start, stop in _runs(listed.edges, max(1, most_events))
    ]


def _runs(edges: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield runs of clusters; one that is too long by itself is cut evenly."""
    first = edges[0]
    for before, edge in pairwise(edges):
        if edge - first > most and before > first:
            yield first, before
            first = before
        if edge - first > most:
            parts = -(-(edge - first) // most)
            length = edge - first
            for part in range(parts):
                yield first + length * part // parts, first + length * (part + 1) // parts
            first = edge
    if edges[-1] > first:
        yield first, edges[-1]


def cut_pieces(
    files: Sequence[Listed],
    pace: Pace,
    *,
    cores: int,
    known: Collection[Span] = (),
    budget_bytes: int = 0,
) -> list[list[Span]]:
    """Return pieces of about the same predicted time, in the order of the files.

    Parameters
    ----------
    cores
        How many work at once.
    known
        Spans that are already done: they stay as they are and take no time.
    budget_bytes
        What one task may use; 0 for no limit.
    """
    most = _most_events(pace, budget_bytes)
    total = sum(pace.seconds(Span(n, 0, f.entries)) for n, f in enumerate(files))
    goal = max(SHORTEST_SECONDS, total / (PIECES_PER_CORE * cores))
    # Further clusters of the same file join a call that is shorter than this.
    worthwhile = min(pace.call_seconds / OVERHEAD_SHARE, total / (LEAST_PER_CORE * cores))
    pieces: list[list[Span]] = []
    held: list[Span] = []
    seconds = call = 0.0
    for span in _atoms(files, known, most, _finest(pace, total, cores)):
        cost = 0.0 if span in known else pace.event_seconds * span.events
        is_short = _follows(held, span) and call < worthwhile
        if held and seconds + cost / 2 > goal and not is_short:
            pieces.append(held)
            held, seconds = [], 0.0
        if not _follows(held, span):
            call = 0.0
            seconds += 0.0 if span in known else pace.call_seconds
        call += cost
        seconds += cost
        held.append(span)
    return [*pieces, held] if held else pieces


def _finest(pace: Pace, total: float, cores: int) -> int:
    """Return the longest cluster that need not be cut so that all cores have work."""
    share = total / (LEAST_PER_CORE * cores)
    if total < SHORTEST_SECONDS * cores or pace.event_seconds <= 0:
        return 2**62
    return max(1, int(share / pace.event_seconds))


def _most_events(pace: Pace, budget_bytes: int) -> int:
    if not budget_bytes or pace.event_bytes <= 0:
        return 2**62
    return max(1, int(budget_bytes / pace.event_bytes))


def _atoms(
    files: Sequence[Listed], known: Collection[Span], most: int, finest: int
) -> Iterator[Span]:
    """Yield single clusters in order, cut where they must be, and known spans as they are."""
    done: dict[int, list[Span]] = {}
    for span in sorted(known):
        done.setdefault(span.file, []).append(span)
    for number, listed in enumerate(files):
        place = 0
        for span in [*done.get(number, ()), Span(number, listed.entries, listed.entries)]:
            yield from _clusters(number, listed.edges, place, span.start, min(most, finest))
            if span.events:
                yield span
            place = span.stop


def _clusters(
    number: int, edges: Sequence[int], start: int, stop: int, most: int
) -> Iterator[Span]:
    inside = [start, *(edge for edge in edges if start < edge < stop), stop]
    for low, high in pairwise(inside):
        parts = max(1, -(-(high - low) // most))
        for part in range(parts):
            first = low + (high - low) * part // parts
            last = low + (high - low) * (part + 1) // parts
            if last > first:
                yield Span(number, first, last)


def _follows(held: Sequence[Span], span: Span) -> bool:
    return bool(held) and held[-1].file == span.file and held[-1].stop == span.start
