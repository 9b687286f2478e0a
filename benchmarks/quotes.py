"""Numbers that pages quote: put into their text from the results, so that both always agree.

    python -m benchmarks.page    # writes the page of benchmarks, and these

In a page a quote stands between ``<!-- measured: NAME -->`` and ``<!-- end -->``. One that
begins a line of its own is a table, else it is part of a sentence.
"""

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks.tables import Result, Row

ROOT = Path(__file__).parents[1]
PAGES = tuple(
    ROOT / name
    for name in (
        "README.md",
        "docs/design/collider.md",
        "docs/design/fused-steps.md",
        "docs/design/miniscope.md",
        "docs/design/probing-and-planning.md",
        "docs/design/results.md",
    )
)
QUOTE = re.compile(
    r"(?P<indent>[ ]*)(?P<start><!-- measured: (?P<name>[a-z ]+) -->)(?P<said>.*?)<!-- end -->",
    re.DOTALL,
)
Results = Mapping[str, Result]


def rewrite(text: str, results: Results) -> str:
    """Return the text of a page with the numbers of these results.

    A quote whose benchmark has not been run, or not with its peer, stays as it is.
    """

    def put(found: re.Match[str]) -> str:
        try:
            said = QUOTES[found["name"]](results)
        except LookupError:
            return found[0]
        if found["said"].startswith("\n"):
            said = textwrap.indent(f"\n\n{said}\n\n", found["indent"]) + found["indent"]
        return f"{found['indent']}{found['start']}{said}<!-- end -->"

    return QUOTE.sub(put, text)


def write_quotes(results: Iterable[Result]) -> None:
    """Put the numbers of these results into all pages that quote them."""
    by_name = {result.name: result for result in results}
    for page in PAGES:
        page.write_text(rewrite(page.read_text(), by_name))


def find(results: Results, name: str, title: str, label: str) -> Row:
    """Return one row of one table of one result."""
    for table in results[name].tables:
        for row in table.rows:
            if (table.title, row.label) == (title, label) and not row.failure:
                return row
    raise LookupError(label)


def quote_peers(results: Results) -> str:
    """Return how many times as much the peers take, each at the setting that suits it best."""
    slim, wide = (find_best(results, "collider", kind, "coffea") for kind in ("slim", "wide"))
    raster = "SpatialData, 2 workers of 8 GB"
    movie = "1000 frames of 256 × 256 to 60 cells"
    rows = [
        ("Syncopy, sequential (its best)", "spectra of 5000 trials × 32 channels",
         times(results, "ephys", "spectra of 5000 trials", "Syncopy sequential")),
        ("SpatialData, two workers", "two `map_raster` over 2.2 GiB",
         times(results, "spatial", "rasters", raster)),
        ("coffea, default chunks", "pairs of muons in 3,000,000 events of 16 branches",
         times(results, "collider", "slim", "coffea iterative, default")),
        ("coffea, its best chunks", "", times(results, "collider", "slim", slim)),
        ("coffea, default chunks", "the same in 500,000 events of 1016 branches",
         times(results, "collider", "wide", "coffea iterative, default")),
        ("coffea, its best chunks", "", times(results, "collider", "wide", wide)),
        ("MiniAn", movie, times(results, "miniscope", "usual", "MiniAn")),
    ]  # fmt: skip
    head = "| | work | time | CPU | memory |\n|---|---|--:|--:|--:|\n"
    return head + "\n".join(f"| {who} | {work} | {more} |" for who, work, more in rows)


def times(results: Results, name: str, title: str, label: str) -> str:
    """Return how many times as much a way takes as barrow: time, CPU and memory."""
    (table,) = (one for one in results[name].tables if one.title == title)
    own, other = table.ours, find(results, name, title, label)
    if own is None:
        raise LookupError(title)
    return " | ".join(_divide(other.least(key), own.least(key)) for key in ("wall", "cpu", "peak"))


def find_best(results: Results, name: str, title: str, who: str) -> str:
    """Return the way of somebody that took least CPU."""
    (table,) = (one for one in results[name].tables if one.title == title)
    found = [row for row in table.others if row.label.startswith(who) and not row.failure]
    if not found:
        raise LookupError(who)
    return min(found, key=lambda row: row.least("cpu") or 0.0).label


def _divide(one: float | None, other: float | None) -> str:
    return f"{one / other:.1f}" if one and other else ""


RASTER = {
    "Dask, two workers": "Dask, 2 workers of 8 GB",
    "Dask's threads": "Dask threads",
    "barrow, two workers": "barrow, 2 workers of 5 GB",
    "barrow, left to itself": "barrow, left to itself",
    "NumPy, by hand": "NumPy, one thread",
}


def quote_raster(results: Results) -> str:
    """Return least seconds and CPU seconds, and the peak, of two steps on a large array."""
    lines = ["| | time | CPU | peak |", "|---|--:|--:|--:|"]
    for name, label in RASTER.items():
        row = find(results, "raster", "all values", label)
        numbers = f"{_least(row, 'wall'):.1f} | {_least(row, 'cpu'):.1f} | {_peak(row):.1f}"
        lines.append(f"| {name} | {numbers} |")
    return "\n".join(lines)


def quote_spans(results: Results) -> str:
    """Return the same as ranges, without what is done by hand."""
    lines = ["| | time | peak |", "|---|---|---|"]
    for name, label in list(RASTER.items())[:4]:
        row = find(results, "raster", "all values", label)
        lines.append(f"| {name} | {_span(row)} | {_peak(row):.1f} GiB |")
    return "\n".join(lines)


def quote_calls(results: Results) -> str:
    """Return what two calls take."""
    return _quote_way(results, "barrow, 2 workers, two calls")


def quote_pipeline(results: Results) -> str:
    """Return what the same takes as one pipeline."""
    return _quote_way(results, "barrow, 2 workers, pipeline")


def _quote_way(results: Results, label: str) -> str:
    row = find(results, "raster", "all values", label)
    return f"{_span(row)} and {_peak(row):.1f} GiB"


def quote_regret(results: Results) -> str:
    """Return how far plans are from the best of a sweep."""
    facts = results["regret"].facts
    return f"median {facts['regret_median']:.2f}, worst {facts['regret_worst']:.2f}"


def quote_events(results: Results) -> str:
    """Return CPU seconds of plain code, of barrow and of coffea."""
    lines = [
        "| | plain, at its best | barrow | coffea, best chunks | coffea, default |",
        "|---|--:|--:|--:|--:|",
    ]
    cases = {"3 million events, 16 branches": "slim", "500,000 events, 1016 branches": "wide"}
    for said, kind in cases.items():
        labels = (
            find_best(results, "collider", kind, "plain"),
            "barrow",
            find_best(results, "collider", kind, "coffea"),
            "coffea iterative, default",
        )
        rows = [find(results, "collider", kind, label) for label in labels]
        lines.append(
            f"| {said} | " + " | ".join(f"{_least(row, 'cpu'):.2f}" for row in rows) + " |"
        )
    return "\n".join(lines)


MOVIES = {"usual": "", "dense": ", 120 cells", "noisy": ", a third of the light"}
QUALITY = {
    "recall": ".2f",
    "precision": ".2f",
    "iou": ".2f",
    "trace": ".3f",
    "activity": ".3f",
    "activity if moved": ".3f",
    "motion_rmse": ".2f",
}


def quote_movies(results: Results) -> str:
    """Return how good and how quick MiniAn and barrow are."""
    names = ("recall", "precision", "IoU", "trace", "activity", "moved", "motion px")
    heads = ("", *names, "CPU s", "wall s", "peak GB")
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    for movie, more in MOVIES.items():
        for who in ("MiniAn", "barrow"):
            row = find(results, "miniscope", movie, who)
            cells = [format(_least(row, key), form) for key, form in QUALITY.items()]
            cells += [f"{_least(row, 'cpu'):.0f}", f"{_least(row, 'wall'):.0f}"]
            cells.append(f"{_least(row, 'peak') / 1e9:.2f}")
            lines.append(f"| {who}{more} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def quote_large(results: Results) -> str:
    """Return what a movie larger than its memory takes, and a smaller one beside it."""
    small, large = (find(results, "miniscope-large", "", name) for name in ("small", "large"))
    pace, small_pace = (_least(row, "seconds per gigabyte") for row in (large, small))
    size = _least(small, "gigabytes")
    return (
        f"{_least(large, 'wall') / 60:.0f} minutes, {pace:.0f} s for a gigabyte "
        f"(a movie of {size:.1f} GB: {small_pace:.0f} s); recall {_least(large, 'recall'):.2f}, "
        f"precision {_least(large, 'precision'):.3f}, IoU {_least(large, 'iou'):.2f}. "
        f"All its processes together had {_least(large, 'peak') / 1e9:.1f} GB at the peak"
    )


def _least(row: Row, column: str) -> float:
    return min(row.values[column])


def _span(row: Row) -> str:
    return f"{min(row.values['wall']):.1f} to {max(row.values['wall']):.1f} s"


def _peak(row: Row) -> float:
    return max(row.values["peak"]) / 2**30


QUOTES: Mapping[str, Callable[[Results], str]] = {
    "calls": quote_calls,
    "events": quote_events,
    "large movie": quote_large,
    "movies": quote_movies,
    "peers": quote_peers,
    "pipeline": quote_pipeline,
    "raster": quote_raster,
    "regret": quote_regret,
    "spans": quote_spans,
}
