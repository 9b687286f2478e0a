from hypothesis import given
from hypothesis import strategies as st

from barrow.fields.collider.analysis import Span
from barrow.fields.collider.catalogue import Listed
from barrow.fields.collider.cutting import Pace, cut_pieces, list_spans
from barrow.fields.collider.filesets import Entry


def listed(clusters):
    edges = [0]
    for length in clusters:
        edges.append(edges[-1] + length)
    return Listed(Entry("d", "f", "t"), edges[-1], tuple(edges))


FILES = st.lists(
    st.lists(st.integers(1, 5000), min_size=0, max_size=6).map(listed), min_size=1, max_size=8
)


def covers(spans, files):
    """Return whether spans hold every event once, in order."""
    place = {}
    for span in spans:
        if span.start != place.get(span.file, 0) or span.stop <= span.start:
            return False
        place[span.file] = span.stop
    order = [span.file for span in spans]
    return order == sorted(order) and all(
        place.get(number, 0) == file.entries for number, file in enumerate(files)
    )


@given(FILES, st.integers(1, 6000))
def test_spans_cover_every_event_once(files, most):
    spans = list_spans(files, most)
    assert covers(spans, files)
    assert all(span.events <= most for span in spans)


@given(FILES, st.floats(1e-7, 1e-3), st.floats(0, 0.1), st.integers(1, 16), st.integers(0, 10**7))
def test_pieces_cover_every_event_once(files, event, call, cores, budget):
    pace = Pace(event, call, event_bytes=100.0)
    pieces = cut_pieces(files, pace, cores=cores, budget_bytes=budget)
    assert covers([span for piece in pieces for span in piece], files)
    assert all(pieces)


def test_known_spans_stay_as_they_are():
    files = [listed([1000] * 6)]
    known = [Span(0, 0, 1000), Span(0, 1000, 3000)]
    pieces = cut_pieces(files, Pace(1e-3), cores=2, known=known)
    spans = [span for piece in pieces for span in piece]
    assert covers(spans, files)
    assert set(known) <= set(spans)


def test_one_huge_file_and_many_small_ones_are_shared_out_evenly():
    files = [listed([100_000] * 40), *(listed([100]) for _ in range(2000))]
    pace = Pace(1e-6, call_seconds=0.004)
    pieces = cut_pieces(files, pace, cores=2)
    seconds = [sum(map(pace.seconds, piece)) for piece in pieces]
    # Handed out one after the other, to whoever is free.
    workers = [0.0, 0.0]
    for one in seconds:
        workers[workers.index(min(workers))] += one
    assert len(pieces) < 100
    assert sum(workers) / (2 * max(workers)) > 0.95
