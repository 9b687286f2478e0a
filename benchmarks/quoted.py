"""What pages quote of the results: a few words or a small table for each name."""

import statistics
from collections.abc import Callable, Mapping

from benchmarks.tables import SIMULATED, Result, Row, Table

Results = Mapping[str, Result]


def find(results: Results, name: str, title: str, label: str) -> Row:
    """Return one row of one table of one result."""
    for row in find_table(results, name, title).rows:
        if row.label == label and not row.failure:
            return row
    raise LookupError(label)


def find_table(results: Results, name: str, title: str) -> Table:
    """Return one table of one result."""
    for table in results[name].tables:
        if table.title == title:
            return table
    raise LookupError(title)


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
    own, other = find_table(results, name, title).ours, find(results, name, title, label)
    if own is None:
        raise LookupError(title)
    return " | ".join(_divide(other.least(key), own.least(key)) for key in ("wall", "cpu", "peak"))


def find_best(results: Results, name: str, title: str, who: str) -> str:
    """Return the way of somebody that took least CPU."""
    others = find_table(results, name, title).others
    found = [row for row in others if row.label.startswith(who) and not row.failure]
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


RULES = ("128 MiB", "tenth of a worker", "256 MB")


def quote_plans(results: Results) -> str:
    """Return how good plans are: their time, what they predict, and what measuring takes."""
    facts = results["regret"].facts
    rows = find_table(results, "regret", "each function").rows
    rules = (statistics.median(_least(row, f"{rule} ÷ best") for row in rows) for rule in RULES)
    chunks = sum(_least(row, "peaks measured") for row in rows)
    above = round(facts["peak_bound_exceeded"] * chunks)
    first, again = (
        [_least(row, f"{name}_seconds") for row in rows]
        for name in ("measuring", "measuring again")
    )
    lines = (
        ("time of the plan ÷ best time of the sweep", quote_regret(results)),
        (
            "the same for chunks of 128 MiB; a tenth of a worker's memory; 256 MB",
            "median " + "; ".join(f"{rule:.1f}" for rule in rules),
        ),
        ("predicted ÷ measured time", f"median error {facts['time_error_median']:.0%}"),
        (
            "predicted ÷ measured peak of a task",
            f"median error {facts['peak_error_median']:.0%}; "
            f"{above or 'none'} of {chunks:.0f} chunks above "
            f"{'its' if above < 2 else 'their'} bound",
        ),
        ("measuring", f"{min(first):.1f} to {max(first):.1f} s"),
        ("the same a second time", f"{1e3 * min(again):.0f} to {1e3 * max(again):.0f} ms"),
    )
    return "\n".join(("| | |", "|---|---|", *(f"| {what} | {said} |" for what, said in lines)))


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


def quote_cuts(results: Results) -> str:
    """Return how far other chunks and workers move what is found, against its largest value."""
    rows = find_table(results, "miniscope", "cuts").rows
    names = ("motion_pixels", "A", "C", "S")
    if any(name not in row.values for row in rows for name in names):
        return "another number of units"
    pixels, *moved = (max(_least(row, name) for row in rows) for name in names)
    motion = f"the same motion to {pixels:.0e} px" if pixels else "the same motion"
    footprints, traces, activity = (f"{value:.0e}" if value else "nothing" for value in moved)
    return (
        f"{motion}; A, C and S differ by at most {footprints}, {traces} and {activity} "
        "of their largest value"
    )


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


def quote_balance(results: Results) -> str:
    """Return how many times as fast two workers are with files of very different size."""
    return f"{results['collider'].facts['balance · speedup']:.2f} times"


def quote_starting(results: Results) -> str:
    """Return the CPU seconds that two workers take to start, for the first time and again."""
    ways = (
        [
            _least(find(results, "starting", f"the {turn} cluster of a process", who), "cpu")
            for turn in ("first", "second")
        ]
        for who in ("barrow", "LocalCluster")
    )
    (first, second), (their_first, their_second) = ways
    return (
        f"{first:.1f} s of CPU for the first start of a process and {second:.1f} s for the next, "
        f"`LocalCluster` {their_first:.1f} and {their_second:.1f} s"
    )


def quote_recorder(results: Results) -> str:
    """Return what a million tasks take of the recorder, its sender and the disk."""
    row = find(results, "watching", "", "recorder")
    recorder, sender, file = (
        f"{_least(row, f'{name}_bytes') / 1e6:.0f} MB" for name in ("recorder", "sender", "file")
    )
    return (
        f"the recorder holds {recorder}, the sender {sender} more than before, and the file "
        f"has {file}"
    )


def quote_watching(results: Results) -> str:
    """Return what watching adds to programs of Dask."""
    lines = ["| tasks | of the time | µs for a task | CPU µs for a task |", "|---|--:|--:|--:|"]
    for row in find_table(results, "watching", "what watching adds").rows:
        share, wall, cpu = (min(values) for values in row.values.values())
        lines.append(f"| {row.label} | {share:+.1%} | {wall:.0f} | {cpu:.0f} |")
    return "\n".join(lines)


def quote_slide(results: Results) -> str:
    """Return what the cells of a large slide take."""
    facts = results["spatial"].facts
    planned = find(results, "spatial", "segmentation · cuts", "planned")
    score = find(results, "spatial", "segmentation", "score")
    equal = "the same labels" if facts["segmentation · all_cuts_equal"] else "other labels"
    return (
        f"{_least(score, 'true'):,.0f} nuclei, on two cores, with 4 GB: "
        f"{_least(planned, 'seconds'):.0f} s, {_least(planned, 'cpu'):.0f} s of CPU, "
        f"{_peak(planned):.1f} GiB; F1 {_least(score, 'f1'):.3f}; {equal} for five cuts"
    )


def quote_watershed(results: Results) -> str:
    """Return what the function by itself takes, and how far the slide is from it."""
    facts = results["spatial"].facts
    whole, crops = (find(results, "spatial", "segmentation", name) for name in ("whole", "plain"))
    return (
        f"called once with the whole slide, takes {_least(whole, 'cpu'):.0f} s of CPU and "
        f"{_peak(whole):.1f} GiB; called with crops of 4000 × 4000, which stay nearer to the "
        f"processor, {_least(crops, 'cpu'):.0f} s. So the slide takes "
        f"{facts['segmentation · wall_over_share']:.1f} times its share of two cores for the one, "
        f"{facts['segmentation · wall_over_share_of_crops']:.1f} times for the other"
    )


def quote_foreseen(results: Results) -> str:
    """Return how far forecasts are off, beside halving the time for twice the workers."""
    lines = ["| | real | error | of halving |", "|---|--:|--:|--:|"]
    for table in results["what_if"].tables:
        for row in table.rows if "error" in table.columns else ():
            cells = f"{statistics.median(row.values['real_seconds']):.1f} s"
            cells += f" | {_least(row, 'error'):.0%} | {_least(row, 'error of halving'):.0%}"
            lines.append(f"| {row.label}, {table.title} | {cells} |")
    facts = results["what_if"].facts
    errors = f"{facts['median_error']:.0%}, at worst {facts['worst_error']:.0%}"
    return "\n".join((*lines, f"| the median of all | | {errors} | |"))


def quote_simulated(results: Results) -> str:
    """Return how long it takes to simulate very much."""
    alone, sharing = (_least(row, "wall") for row in find_table(results, "what_if", SIMULATED).rows)
    return f"{alone:.1f} s where nothing is shared, {sharing:.1f} s where cores and disk are"


def _least(row: Row, column: str) -> float:
    return min(row.values[column])


def _span(row: Row) -> str:
    return f"{min(row.values['wall']):.1f} to {max(row.values['wall']):.1f} s"


def _peak(row: Row) -> float:
    return max(row.values["peak"]) / 2**30


QUOTES: Mapping[str, Callable[[Results], str]] = {
    "balance": quote_balance,
    "calls": quote_calls,
    "cuts": quote_cuts,
    "events": quote_events,
    "foreseen": quote_foreseen,
    "large movie": quote_large,
    "movies": quote_movies,
    "peers": quote_peers,
    "pipeline": quote_pipeline,
    "plans": quote_plans,
    "raster": quote_raster,
    "recorder": quote_recorder,
    "regret": quote_regret,
    "simulated": quote_simulated,
    "slide": quote_slide,
    "spans": quote_spans,
    "starting": quote_starting,
    "watching": quote_watching,
    "watershed": quote_watershed,
}
