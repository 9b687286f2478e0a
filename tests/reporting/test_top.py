"""A run on one screen of a terminal."""

from rich.console import Console

from barrow.model.glance import Glance, ProcessGlance
from barrow.reporting.top import draw_top

MIB = 2**20


def show(glance, findings=(), width=100):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(draw_top(glance, findings))
    return console.export_text()


def make_glance(**changes):
    facts = {
        "name": "fit.py",
        "status": "running",
        "seconds": 20.0,
        "noun": "task",
        "done": 60,
        "planned": 240,
        "failed": 0,
        "rate": 6.0,
        "processes": (ProcessGlance("worker 1", "worker", 600 * MIB, 800 * MIB, 0, 1.0),),
        "peak_bytes": 900 * MIB,
    }
    return Glance(**(facts | changes))


def test_progress_rate_and_time_left_stand_on_one_line():
    (line,) = [line for line in show(make_glance()).splitlines() if "of 240" in line]
    assert "25%  60 of 240 tasks  6.0/s  about 30.0 s left" in line


def test_a_worker_is_shown_with_its_limit():
    assert "600 MiB of 800 MiB  1.0 cores" in show(make_glance())


def test_of_many_workers_those_closest_to_their_limit_are_shown():
    many = [ProcessGlance(f"worker {n}", "worker", n * MIB, 100 * MIB, 0, None) for n in range(60)]
    text = show(make_glance(processes=tuple(many)))
    assert "worker 59" in text
    assert "worker 7 " not in text
    assert "and 44 more" in text


def test_findings_come_before_what_happened():
    text = show(make_glance(notes=((3.0, "Worker 1 is paused."),)), ["MEM02 too little memory"])
    assert text.index("MEM02") < text.index("paused")


def test_no_line_is_wider_than_the_terminal_and_no_name_steers_it():
    hostile = make_glance(name="\x1b[31mred [bold]" + "x" * 500, notes=((1.0, "y" * 900),))
    lines = show(hostile, ["z" * 400], width=60).splitlines()
    assert max(map(len, lines)) <= 60
    assert "\x1b" not in "".join(lines)
    assert "[bold]" in lines[0]


def test_a_run_that_has_ended_has_no_rate_and_no_time_left():
    text = show(make_glance(status="failed", failed=3))
    assert "failed after 20.0 s" in text
    assert "3 failed" in text
    assert "left" not in text
