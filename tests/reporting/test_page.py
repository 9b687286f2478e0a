"""The page of a report, in a real browser and as text."""

import re

import numpy as np
import pytest

import barrow
from barrow.model.finding import Finding
from barrow.reporting.gathering import gather
from barrow.reporting.html import format_html
from barrow.reporting.writing import write_page

HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "\"quotes' & {{ braces }} {% raw %} ${dollars} @{column}{safe}",
    "a" * 10_000,
    "校正と雑音除去 🔬",
    "סינון רעש ‮reversed",
    "line\nbreak\ttab \x1b[31m",
]


@pytest.fixture
def show_content(browser, tmp_path):
    """Write a page and open it; all pages are closed in the end."""
    opened = []

    def open_page(content, **options):
        path = write_page(content, tmp_path)
        opened.append(browser.open(path, **options))
        return opened[-1]

    yield open_page
    for page in opened:
        page.close()


@pytest.fixture
def show(show_content):
    """Open the page of a record."""
    return lambda record, **options: show_content(gather(record), **options)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (400, False)])
def test_a_page_is_drawn_without_a_word_of_complaint(show, watched, width, dark):
    page = show(watched().read(), width=width, dark=dark)
    assert page.complaints() == []
    assert page.requests() == []
    assert page.overflow() == 0
    inked = page.inked()
    assert inked.keys() == {"figure-timeline", "figure-memory"}
    for points, colours in inked.values():
        assert points > 5000
        assert colours >= 5


def test_the_page_of_an_own_run_shows_predictions(browser, tmp_path):
    plan = barrow.plan(np.sqrt, np.ones((64, 2**16)), cluster=False).with_chunks(dim_0=8)
    run = barrow.run(plan, folder=tmp_path / "run")
    page = browser.open(run.report_path)
    assert page.complaints() == []
    assert all(points > 1000 for points, _ in page.inked().values())
    assert "Predicted and measured" in page.text()
    page.close()


def test_figures_follow_the_reader_from_light_to_dark(show, watched):
    page = show(watched().read())
    assert page.evaluate("document.documentElement.dataset.drawn") == "light"
    page.show(dark=True)
    page.wait_for("document.documentElement.dataset.drawn === 'dark'")
    page.wait_until(lambda: page.inked()["figure-memory"][0] > 5000)
    assert page.complaints() == []


def test_hostile_names_are_text_everywhere(show, watched):
    page = show(watched(steps=HOSTILE, names=HOSTILE, threads=1, workers=7).read())
    assert page.complaints() == []
    assert page.requests() == []
    assert page.evaluate("document.title") == "analysis.py: report of a run"
    assert page.evaluate("document.querySelectorAll('main script, main img').length") == 0
    assert page.overflow() == 0
    text = page.text()
    for name in (HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[4], HOSTILE[5]):
        assert name in text


def test_a_tooltip_shows_a_hostile_name_as_text(show, watched):
    page = show(watched(steps=HOSTILE[:1], threads=1, tasks=40).read())
    x, y = page.evaluate(
        "(() => { const box = document.getElementById('figure-timeline').getBoundingClientRect();"
        " return [box.left + box.width / 2, box.top + box.height / 2]; })()"
    )
    page.move_mouse(x - 1, y)
    page.move_mouse(x, y)
    page.wait_until(lambda: "took: " in page.text())
    text = page.text()
    assert f"step: {HOSTILE[0]}" in text
    assert page.complaints() == []
    assert page.evaluate("document.title") == "analysis.py: report of a run"


def test_a_hostile_name_of_the_run_itself_is_text(show, watched):
    page = show(watched().describe(name=HOSTILE[1], host=HOSTILE[0], command=HOSTILE).read())
    assert page.complaints() == []
    assert page.evaluate("document.title").startswith("</script><script>")
    assert HOSTILE[1] in page.evaluate("document.querySelector('h1').textContent")


def test_a_run_without_anything_has_a_page(show, empty_record):
    page = show(empty_record.read())
    assert page.complaints() == []
    assert "there is nothing to draw" in page.text()


def test_a_page_names_no_place_outside_itself(watched):
    page = format_html(gather(watched().read()))
    without_bokeh = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(?:src|href)\s*=", without_bokeh)
    assert "http" not in without_bokeh.replace("http-equiv", "")


def test_the_page_of_many_tasks_stays_small(watched):
    page = format_html(gather(watched(tasks=8_000, workers=16, steps=HOSTILE).read()))
    assert len(page.encode()) < 5_000_000


def test_no_script_runs_but_those_the_page_names(watched):
    policy = re.search(r'Security-Policy" content="([^"]*)"', format_html(gather(watched().read())))
    assert "default-src 'none'" in policy[1]
    assert re.search(r"script-src( 'sha256-[A-Za-z0-9+/=]+'){3}$", policy[1])


def test_findings_stand_in_their_order_with_evidence_advice_and_cost(show_content, watched):
    findings = [
        Finding(
            "MEM02", "failure", "A worker ran out of memory.", ("held 3 GiB",), "Use 4GB.", 42.0
        ),
        Finding("CHK01", "note", HOSTILE[0], (HOSTILE[1],), HOSTILE[2], saves_bytes=2**30),
    ]
    page = show_content(gather(watched().read(), findings=findings))
    text = page.text()
    assert text.index("A worker ran out of memory.") < text.index(HOSTILE[0])
    for part in (
        "MEM02",
        "failure, memory",
        "costs about 42.0 s",
        "held 3 GiB",
        "Use 4GB.",
        "1.00 GiB",
    ):
        assert part in text
    assert page.evaluate("document.title") != "owned"
    assert page.complaints() == []
