"""The page of benchmarks says what was measured, and the numbers in the text are on it."""

import json
from pathlib import Path

import pytest

from benchmarks.page import PAGE, RESULTS, render
from benchmarks.quoted import QUOTES
from benchmarks.quotes import PAGES, QUOTE, rewrite
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


def test_a_busy_machine_is_told_only_where_there_is_cpu_to_trust_instead():
    assert "was busy, so" in render([result(runs={"barrow": {"wall": 1.0, "cpu": 1.0}}, load=8.0)])
    assert "was busy, so" not in render([result(runs={"barrow": {"wall": 1.0}}, load=8.0)])


def test_each_kind_of_work_that_was_foreseen_has_its_own_row():
    row = {"from_workers": 1, "to_workers": 2, "tasks": 9, "before_seconds": 4.0}
    row |= {"predicted_seconds": 2.0, "real_seconds": [2.0, 3.0], "error": 0.2}
    rows = [{**row, "work": name, "error_of_halving": 0.5} for name in ("reading", "adding")]
    errors = {"median_error": 0.1, "worst_error": 0.2}
    found = result("what_if", rows=rows, simulated_seconds={"alone": 3.0}, **errors)
    assert found.tables[0].title == "from 1 to 2 workers"
    assert "| reading | 9 | 4 | 2 | 2 (3) | 0.2 | 0.5 |" in render([found])


def test_watching_is_compared_with_the_program_alone():
    cost = {"overhead": 0.5, "microseconds_per_task": 9.0, "cpu_microseconds_per_task": 8.0}
    seconds = {"alone": [2.0, 3.0], "watched": [3.0, 4.0]}
    program = {"tasks": 5000, "wall_seconds": seconds, "cpu_seconds": seconds, **cost}
    found = result("watching", memory={}, **{"20 ms": program})
    assert verdicts(found) == ["**loss**"]
    assert "*5,000 tasks of 20 ms*" in render([found])


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_numbers_in_the_text_are_those_that_were_measured(page):
    results = {result.name: result for result in read_results(RESULTS)}
    text = page.read_text()
    assert QUOTE.search(text), "it quotes nothing"
    # What follows a comment at the beginning of a line is no Markdown any more.
    begun = [quote for quote in QUOTE.finditer(text) if text[quote.start() - 1] == "\n"]
    assert all(quote["said"].startswith("\n") for quote in begun)
    assert text == rewrite(text, results), "run python -m benchmarks.page"


def test_all_that_can_be_quoted_is_quoted_and_nothing_else():
    names = {quote["name"] for page in PAGES for quote in QUOTE.finditer(page.read_text())}
    assert names == set(QUOTES)


def test_a_quote_is_a_table_or_part_of_a_sentence():
    facts = {"summary": {"regret_median": 1.5, "regret_worst": 2.0}, "results": {}}
    regret = result("regret", **facts)
    sentence = "Plans are good: <!-- measured: regret -->?<!-- end -->."
    said = rewrite(sentence, {"regret": regret})
    assert said == sentence.replace("?", "median 1.50, worst 2.00")
    table = "1. List\n\n   <!-- measured: regret -->\n\n   old\n\n   <!-- end -->\n"
    said = rewrite(table, {"regret": regret})
    assert said == table.replace("old", "median 1.50, worst 2.00")


def test_a_quote_of_what_was_not_measured_stays():
    text = "It takes <!-- measured: regret -->long<!-- end -->."
    assert rewrite(text, {}) == text
