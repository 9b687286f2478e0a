"""Rules on records made by hand: what queues say, thresholds, speed, strange records."""

import time

import pytest

from barrow.diagnosing.diagnose import diagnose
from barrow.diagnosing.rules import RULES
from barrow.model.finding import Finding

PAGES = "docs/findings"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("SLM01", "The queue says: 3 jobs pending: Resources."),
        ("SLM02", "SLURM rejected the job: Invalid partition name specified"),
        ("SLM03", "Job 7 was lost: it ran out of its walltime."),
        ("SLM04", "Job 7 was lost: it used more than its memory."),
    ],
)
def test_what_a_queue_says_of_jobs_becomes_a_finding(code, said, made, event):
    found = diagnose(made(event=[event("job", said)]))
    assert [finding.code for finding in found] == [code]
    assert said in found[0].evidence


def test_a_record_without_anything_has_no_findings(made):
    assert diagnose(made()) == []


def test_the_gravest_finding_comes_first_and_then_the_dearest(made, event):
    stalled = {"since": 1.0, "seconds": 40.0, "waiting": 5, "workers": [], "n_workers": 0}
    record = made(
        event=[
            event("job", "3 jobs pending"),
            event("stalled", time=41.0, **stalled),
            event("job", "Job 7: it ran out of its walltime"),
        ]
    )
    assert [finding.severity for finding in diagnose(record)] == ["failure", "warning", "note"]


def test_a_rule_that_stumbles_does_not_hide_what_the_others_see(made, event):
    record = made(event=[event("stalled"), event("job", "3 jobs pending")])
    with pytest.warns(UserWarning, match="WRK04"):
        assert [finding.code for finding in diagnose(record)] == ["SLM01"]


def make_many(task, n):
    return [task(i, 0.001 * i, 0.0005, worker=f"here/{i % 4}") for i in range(n)]


def test_a_record_of_100_000_tasks_is_diagnosed_in_less_than_5_seconds_of_cpu(made, task):
    process = {"kind": "worker", "host": "here", "threads": 1, "limit_bytes": 10**9, "joined": 0.0}
    workers = [{"name": f"here/{i}", "pid": i, "label": str(i), **process} for i in range(4)]
    samples = [
        {"time": i / 10, "process": f"here/{i % 4}", "rss_bytes": 10**8, "managed_bytes": 0}
        for i in range(4000)
    ]
    record = made(dask_task=make_many(task, 100_000), process=workers, sample=samples)
    began = time.process_time()
    found = diagnose(record)
    assert time.process_time() - began < 5
    assert "CHK01" in {finding.code for finding in found}


def test_tasks_that_are_long_enough_are_not_called_small(made, task):
    tasks = [task(i, 0.02 * i, 0.012) for i in range(1000)]
    assert "CHK01" not in {finding.code for finding in diagnose(made(dask_task=tasks))}


def test_a_loop_in_python_is_named_if_most_looks_found_it(made, task):
    def diagnose_looks(found):
        pace = {"looks": 20, "loops": {"count": found}}
        inside = {"inside run": {"here/1": {"pace": pace}}}
        return diagnose(made(facts=inside, dask_task=[task(1, 0.0, 90.0)]))

    assert [finding.code for finding in diagnose_looks(10)] == ["CPU04"]
    assert "count()" in diagnose_looks(10)[0].claim
    assert diagnose_looks(9) == []


@pytest.mark.parametrize(("wanted", "verdict"), [(0.95, "slow, not stuck"), (0.05, "hangs")])
def test_what_a_task_wants_of_a_core_tells_slow_from_stuck(wanted, verdict, made, event):
    running = {"status": "running", "ended": None}
    told = {"key": "fit-1", "step": "fit", "elapsed": 20.0, "since": 2.0, "wanted": wanted}
    (found,) = diagnose(made(facts=running, event=[event("long", time=22.0, **told)]))
    assert found.code == "WRK07"
    assert verdict in found.claim


def test_a_worker_is_not_called_idle_while_it_had_a_task_that_was_lost(made, task):
    process = {"kind": "worker", "host": "here", "threads": 1, "joined": 0.0}
    workers = [{"name": f"here/{i}", "pid": i, "label": str(i), **process} for i in (1, 2)]
    lost = task(1, 0.0, 50.0, compute_seconds=0.0, outcome="lost")
    done = [task(2, 50.0, 50.0), task(3, 0.0, 100.0, worker="here/2")]
    assert diagnose(made(process=workers, dask_task=[lost, *done])) == []


@pytest.mark.parametrize("code", RULES)
def test_every_code_has_a_family_and_a_page(code, request):
    assert Finding(code, "note", "").family
    page = request.config.rootpath / PAGES / f"{code}.md"
    assert page.read_text().startswith(f"# {code}: ")
    assert f"({code}.md)" in (page.parent / "index.md").read_text()


def test_a_worker_that_is_stuck_before_it_was_noted_has_its_name(made, event):
    stuck = {
        "address": "tcp://127.0.0.1:1",
        "name": "7",
        "status": "paused",
        "executing": 0,
        "managed": 0,
        "rss": 9 * 10**8,
        "limit": 10**9,
    }
    stalled = {"since": 1.0, "seconds": 40.0, "waiting": 5, "n_workers": 1, "workers": [stuck]}
    record = made(event=[event("stalled", time=41.0, **stalled)])
    [found] = [finding for finding in diagnose(record) if finding.code == "MEM04"]
    assert found.claim.startswith("Worker 7 is paused for its memory")
