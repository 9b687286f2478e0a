"""Two runs side by side."""

import pytest

from barrow.reporting.comparing import compare, format_comparison, format_comparison_html
from barrow.reporting.gathering import gather


@pytest.fixture
def contents(watched):
    record = watched()
    first = gather(record.read())
    record.describe(ended=1_800_000_180.0, versions={"dask": "2026.9.0", "numpy": "2.4.6"})
    return first, gather(record.read())


def test_what_changed_is_said_first_in_one_sentence(contents):
    text = format_comparison(compare(*contents), ("a", "b"))
    assert text.splitlines()[0] == (
        "The second run is 3.00 times slower and with the same memory; what differs: dask."
    )


def test_numbers_are_compared_by_their_ratio_and_words_by_whether_they_differ(contents):
    found = {(d.section, d.heading): d for d in compare(*contents)}
    assert found["run", "time of the run"].change == "× 3.00"
    assert found["steps", "fit: median time"].change == "same"
    assert found["versions", "dask"].change == "changed"
    assert found["versions", "numpy"].change == "same"


def test_the_same_run_twice_differs_in_nothing(contents):
    differences = compare(contents[0], contents[0])
    assert not any(difference.is_change for difference in differences)


def test_a_step_that_only_one_run_has_is_shown(watched, tmp_path):
    first = gather(watched(steps=["fit", "extra"]).read())
    (tmp_path / "record.sqlite").unlink()
    second = gather(watched(steps=["fit"]).read())
    found = {d.heading: d for d in compare(first, second)}
    assert found["extra: tasks"].second == "-"


def test_a_page_of_a_comparison_holds_names_as_text(contents):
    page = format_comparison_html(compare(*contents), ("<b>a</b>", "b"), css="")
    assert "<b>a" not in page
    assert "&lt;b&gt;a&lt;/b&gt;" in page
