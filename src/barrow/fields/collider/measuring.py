"""Measure a processor while it works: the first spans are done here, and their answers kept."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from barrow.fields.collider.analysis import Analysis, Span
from barrow.fields.collider.cutting import Pace, list_spans
from barrow.running.memory import resident_bytes

# Events of the spans that are measured: the first finds the columns and compiles, the second
# tells the time, and the third what of it each call costs.
SAMPLES = (25_000, 25_000, 100_000)
# A cluster is cut for it only if it is longer than this, for it would be decompressed again.
LONGEST_CLUSTER = 200_000
# So much longer has a span to be than another to tell the price of a call.
LONGER = 1.5
# What is over so soon is done in this process whatever else is measured; and no span should
# take longer, for workers wait meanwhile.
SOON_SECONDS = 1.0
# Memory for each byte that was read, where it cannot be seen.
USUAL_SHARE = 8.0
HIGHEST_MARK = "VmHWM:"


@dataclass(frozen=True)
class Sample:
    """One span, measured."""

    span: Span
    seconds: float
    peak_bytes: int


def measure(analysis: Analysis) -> tuple[Analysis, Pace]:
    """Return the analysis with its columns and first answers known, and its pace."""
    samples: list[Sample] = []
    total = sum(file.entries for file in analysis.files)
    while len(samples) < len(SAMPLES):
        span = _next_span(analysis, samples)
        if span is None:
            break
        analysis, sample = _do(analysis, span)
        samples.append(sample)
        done = sum(s.span.events for s in samples)
        if (total - done) * _rate(samples[-1]) < SOON_SECONDS:
            break
    return analysis, fit_pace(samples)


def fit_pace(samples: Sequence[Sample]) -> Pace:
    """Return the pace that samples tell.

    Examples
    --------
    >>> spans = Span(0, 0, 1000), Span(0, 1000, 2000), Span(0, 2000, 6000)
    >>> pace = fit_pace([Sample(s, t, 0) for s, t in zip(spans, (1.0, 0.2, 0.5))])
    >>> round(pace.event_seconds, 6), round(pace.call_seconds, 6), round(pace.startup_seconds, 6)
    (0.0001, 0.1, 0.8)
    """
    if not samples:
        return Pace(1e-6)
    warm = samples[1:] or samples
    short = min(warm, key=lambda sample: sample.span.events)
    long = max(warm, key=lambda sample: sample.span.events)
    rate, call = _rate(long), 0.0
    if long.span.events > LONGER * short.span.events:
        slope = (long.seconds - short.seconds) / (long.span.events - short.span.events)
        rate = min(max(slope, 0.1 * rate), rate)
        call = max(0.0, short.seconds - rate * short.span.events)
    expected = call + rate * samples[0].span.events
    return Pace(
        event_seconds=rate,
        call_seconds=call,
        event_bytes=max(sample.peak_bytes / max(1, sample.span.events) for sample in warm),
        startup_seconds=max(0.0, samples[0].seconds - expected),
    )


def choose_length(samples: Sequence[Sample], cluster: int) -> int:
    """Return how many events to measure next, where the next cluster has so many.

    Whole clusters, unless one is very long, or the processor so slow that workers wait.

    Examples
    --------
    >>> choose_length([], 100_000), choose_length([], 10_000)
    (100000, 25000)
    >>> slow = Sample(Span(0, 0, 100_000), seconds=50.0, peak_bytes=0)
    >>> choose_length([slow], 100_000)
    2000
    """
    most = max(SAMPLES[len(samples)], min(cluster, LONGEST_CLUSTER))
    if not samples:
        return most
    if len(samples) == len(SAMPLES) - 1:
        most = max(most, 2 * samples[-1].span.events)
    return max(1, min(most, int(SOON_SECONDS / _rate(samples[-1]))))


def _rate(sample: Sample) -> float:
    return max(1e-12, sample.seconds / max(1, sample.span.events))


def _next_span(analysis: Analysis, samples: Sequence[Sample]) -> Span | None:
    """Return the next span of about the length that is wanted, after those that are done."""
    last = samples[-1].span if samples else Span(0, 0, 0)
    for number in range(last.file, len(analysis.files)):
        listed = analysis.files[number]
        place = last.stop if number == last.file else 0
        edges = (place, *(edge for edge in listed.edges if edge > place))
        if place >= listed.entries:
            continue
        most = choose_length(samples, edges[1] - place)
        start, stop = list_spans([replace(listed, edges=edges)], most)[0][1:]
        return Span(number, start, stop)
    return None


def _do(analysis: Analysis, span: Span) -> tuple[Analysis, Sample]:
    held, mark = resident_bytes(), _highest_mark()
    began, cpu = time.perf_counter(), time.process_time()
    tally = analysis.do([span])
    seconds = _own_seconds(time.perf_counter() - began, time.process_time() - cpu)
    after = _highest_mark()
    read = sum(spent.value_bytes for spent in tally.spent)
    # A mark that stands still tells of the past.
    peak = after - held if after > mark else int(USUAL_SHARE * read)
    known = {**analysis.known, span: tally}
    found = replace(analysis, known=known, columns=analysis.columns | tally.columns)
    return found, Sample(span, seconds, peak)


def _own_seconds(wall: float, cpu: float) -> float:
    """Return how long something would have taken if others had not used the cores meanwhile."""
    crowd = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return min(wall, max(cpu, wall / crowd))


def _highest_mark() -> int:
    """Return the most memory that this process ever held; 0 where that is not known."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith(HIGHEST_MARK):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0
