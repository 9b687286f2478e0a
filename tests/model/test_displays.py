"""What a notebook shows of plans, runs and findings: all of it, and nothing unescaped."""

import numpy as np

import barrow
from barrow.model.finding import Finding, Findings
from barrow.sites.workers import MOST_SHOWN, WorkerInfo, format_html

LEAK = Finding("MEM01", "warning", "'<b>' leaks.", ("grew by 1 GiB",), "Look for <lists>.")
WORKER = WorkerInfo("<0>", "tcp://127.0.0.1:4000", "127.0.0.1", 7, 2, 2**30, 2**29)


def test_a_run_shows_what_was_predicted_measured_and_found():
    run = barrow.run(barrow.plan(np.sqrt, np.ones((40, 50)), name="<root>"), quiet=True)
    html = run._repr_html_()
    assert "<th>measured</th>" in html
    assert "Nothing is wrong" in html
    assert "run.report_path" in html
    assert "&lt;root&gt;" in html
    assert "<root>" not in html


def test_a_finding_shows_its_claim_evidence_and_advice():
    html = LEAK._repr_html_()
    for text in ("warning MEM01", "&#x27;&lt;b&gt;&#x27; leaks.", "grew by 1 GiB", "&lt;lists&gt;"):
        assert text in html
    assert "<b>'" not in html


def test_a_finding_prints_as_lines():
    assert str(LEAK).splitlines() == [
        "warning MEM01: '<b>' leaks.",
        "    grew by 1 GiB",
        "    What to do: Look for <lists>.",
    ]


def test_findings_are_a_tuple_that_shows_all_of_them():
    assert Findings() == ()
    assert "Nothing is wrong" in Findings()._repr_html_()
    assert Findings([LEAK, LEAK])._repr_html_() == 2 * LEAK._repr_html_()


def test_workers_show_what_they_hold_and_many_are_counted():
    assert "<td>&lt;0&gt;</td><td>127.0.0.1</td><td>2</td><td>512 MiB of 1.00 GiB</td>" in (
        format_html((WORKER,))
    )
    assert "and 3 more" in format_html((WORKER,) * (MOST_SHOWN + 3))
