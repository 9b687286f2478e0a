"""The page of benchmarks says what was measured, and the numbers in the text are on it."""

import json
from pathlib import Path

from benchmarks.page import PAGE, RESULTS, render
from benchmarks.tables import read_result, read_results

ROOT = Path(__file__).parents[2]
MACHINE = {"cores": 2, "memory_bytes": 2**34, "load": [0.5, 0.5, 0.5]}


def result(name="speed", load=0.5, **content):
    header = {"question": "Is it quick?", "date": "2026-03-01T10:00:00+00:00", "versions": {}}
    machine = {**MACHINE, "load": [load] * 3}
    return read_result(name, {**header, "machine": machine, **content})


def verdicts(*results):
    lines = render(list(results)).splitlines()
    return [line.split("|")[-2].strip() for line in lines if line.startswith("| [")]


def test_the_page_is_what_the_results_give():
    assert PAGE.read_text() == render(read_results(RESULTS)), "run python -m benchmarks.page"


def test_every_result_has_a_question_a_machine_versions_and_a_date():
    for path in RESULTS.glob("*.json"):
        assert {"question", "machine", "versions", "date"} <= set(json.loads(path.read_text()))


def test_wins_losses_and_draws_are_told_apart():
    runs = {"barrow": [{"wall": 2.0}], "plain": [{"wall": 1.0}], "peer": [{"wall": 4.0}]}
    runs["other"] = [{"wall": 2.04}]
    assert verdicts(result(runs=runs)) == ["**loss**", "win", "even"]


def test_on_a_busy_machine_the_cpu_decides():
    runs = {"barrow": [{"wall": 9.0, "cpu": 1.0}], "peer": [{"wall": 5.0, "cpu": 2.0}]}
    assert verdicts(result(runs=runs)) == ["**loss**"]
    assert verdicts(result(runs=runs, load=8.0)) == ["win"]


def test_a_peer_that_fails_is_said_to():
    runs = {"barrow": [{"wall": 1.0}], "peer": [{"failed": "KilledWorker"}]}
    page = render([result(runs=runs)])
    assert "win: it failed" in page
    assert "failed: KilledWorker" in page


def test_the_least_of_repeats_counts_and_the_most_is_shown():
    page = render([result(runs={"barrow": [{"wall": 3.0}, {"wall": 2.0}]})])
    assert "| barrow | 2 (3) |" in page


def test_any_shape_of_result_is_shown():
    page = render([result(parts={"deep": {"one": {"wall": 1.0}}, "share": 0.5, "is_same": True})])
    assert "*parts · deep*" in page
    assert "| parts · share | 0.5 |" in page
    assert "| parts · is same | yes |" in page


def find(name):
    (found,) = (result for result in read_results(RESULTS) if result.name == name)
    return found


def list_quotes():
    """Return pages, and what they must say if the results are what they are."""
    (raster,) = (table for table in find("raster").tables if table.title == "all values")
    ways = {row.label: row.values for row in raster.rows}
    names = {
        "Dask, two workers": ways["Dask, 2 workers of 8 GB"],
        "Dask's threads": ways["Dask threads"],
        "barrow, two workers": ways["barrow, 2 workers of 5 GB"],
        "barrow, left to itself": ways["barrow, left to itself"],
        "NumPy, by hand": ways["NumPy, one thread"],
    }
    for name, took in names.items():
        row = f"| {name} | {min(took['wall']):.1f} | {min(took['cpu']):.1f} | {peak(took)} |"
        yield "README.md", row
    for name, way in (("Dask, two workers of 8 GB", "Dask, 2 workers of 8 GB"),
                      ("barrow, two workers of 5 GB", "barrow, 2 workers of 5 GB"),
                      ("Dask's threads", "Dask threads"),
                      ("barrow, left to itself", "barrow, left to itself")):  # fmt: skip
        yield "docs/design/results.md", f"| {name} | {span(ways[way])} | {peak(ways[way])} GiB |"
    for way in ("barrow, 2 workers, two calls", "barrow, 2 workers, pipeline"):
        yield "docs/design/fused-steps.md", f"{span(ways[way])} and {peak(ways[way])} GiB"
    regret = find("regret").facts
    said = f"median {regret['regret_median']:.2f}, worst {regret['regret_worst']:.2f}"
    yield "README.md", said
    yield "docs/design/probing-and-planning.md", said


def span(took):
    return f"{min(took['wall']):.1f} to {max(took['wall']):.1f} s"


def peak(took):
    return f"{max(took['peak']) / 2**30:.1f}"


def test_numbers_in_the_text_are_those_that_were_measured():
    for page, said in list_quotes():
        assert said in " ".join((ROOT / page).read_text().split()), f"{page} should say: {said}"
