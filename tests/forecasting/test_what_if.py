"""What if: from a record or a plan to what other workers would bring."""

import json
import time

import dask
import numpy as np
import pytest
from click.testing import CliRunner

import barrow
from barrow.cli.main import main
from barrow.errors import BudgetError, InputError
from barrow.forecasting.asked import Asked
from barrow.forecasting.bounds import find_bounds
from barrow.forecasting.measured import Measured, fit_gap
from barrow.forecasting.what_if import forecast
from barrow.simulating.load import Load, Stage


def measured(load, workers=1, **more):
    return Measured("fit", load, Stage(workers), 100.0, **more)


def equal(tasks=100, seconds=1.0, **more):
    return Load(np.full(tasks, seconds), steps=np.zeros(tasks, np.int64), **more)


def foresee(load, workers=None, **asked):
    return forecast(measured(load), Asked.of(**asked), workers)


def test_a_curve_has_a_point_for_each_number_of_workers():
    found = foresee(equal(), (4, 1, 2))
    assert [(point.workers, point.seconds) for point in found.points] == [
        (1, 100),
        (2, 50),
        (4, 25),
    ]
    assert found.points[2].core_hours == pytest.approx(100 / 3600)


def test_it_stops_to_scale_where_there_are_no_more_tasks():
    found = foresee(equal(tasks=64))
    assert (found.last_workers, found.stopper, found.choice) == (64, "tasks", 64)


def test_the_scheduler_is_named_if_it_stops_the_scaling():
    found = foresee(equal(scheduler_seconds=0.1))
    assert (found.last_workers, found.stopper) == (10, "scheduler")
    assert "the scheduler, which every task has to pass" in found.why


def test_the_disk_is_named_if_it_stops_the_scaling():
    found = foresee(equal(disk_bytes=np.full(100, 1e9)), disk_gbps=5.0)
    assert (found.last_workers, found.stopper) == (5, "disk")


def test_the_client_is_named_if_most_of_the_time_is_its_own():
    found = foresee(equal(client_seconds=50.0))
    assert (found.last_workers, found.stopper) == (2, "client")
    assert min(point.seconds for point in found.points) > 50


def test_shared_cores_are_named_and_marked():
    found = foresee(equal(), (1, 2, 4), cores=2)
    assert found.stopper == "cores"
    assert [point.is_oversubscribed for point in found.points] == [False, False, True]
    assert found.points[2].seconds == pytest.approx(50.0)
    assert "More workers than cores, which they share: 4." in str(found)


def test_memory_decides_how_many_tasks_a_worker_does_at_once():
    load = equal(peak_bytes=np.full(100, 1e9))
    found = foresee(load, 2, memory="3GB", threads=4)
    assert found.points[0].threads == 2
    assert found.points[0].seconds == pytest.approx(25.0)
    assert found.points[0].worker_bytes == pytest.approx(2e9)


def test_a_task_that_fits_no_worker_is_refused_with_what_it_needs():
    with pytest.raises(BudgetError, match=r"A task needs 7\.45 GiB"):
        foresee(equal(peak_bytes=np.full(100, 8e9)), 2, memory="2GB")


def test_workers_that_wait_in_a_queue_come_later():
    assert foresee(equal(), 100, queue_seconds=30).points[0].seconds == pytest.approx(31.0)


def test_ten_times_the_data_are_ten_times_the_tasks():
    found = foresee(equal(), 10, times=10)
    assert (found.tasks, found.points[0].seconds) == (1000, 100.0)


@pytest.mark.parametrize(
    "wrong", [{"cores": 0}, {"disk_gbps": -1}, {"memory": "much"}, {"times": True}]
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))}="):
        foresee(equal(), 1, **wrong)


def test_numbers_of_workers_are_whole_and_positive():
    with pytest.raises(InputError, match="workers="):
        foresee(equal(), [1, 0])


def test_chunks_of_other_programs_cannot_be_changed():
    with pytest.raises(InputError, match="runs of barrow's own"):
        foresee(equal(), 1, chunk={"y": 5})


def test_what_autoscaling_held_stands_beside_the_ideal():
    held = ((0.0, 2), (50.0, 6))
    found = forecast(measured(equal(), workers=6, held=held), Asked(), (1, 50, 100))
    assert found.held_workers == pytest.approx(4.0)
    assert "100 would be the ideal number here; it held 4.0 on average, 6 at most" in str(found)


def test_the_gap_is_what_the_rest_does_not_explain():
    # The second slot has its first task when the scheduler has done two.
    load = fit_gap(equal(tasks=10, scheduler_seconds=0.1), Stage(2), seconds=0.2 + 5 * 1.3)
    assert load.gap_seconds == pytest.approx(0.3, abs=0.01)


def test_bounds_know_what_is_scarce_for_each_number_of_slots():
    bounds = find_bounds(equal(scheduler_seconds=0.1), Stage())
    assert [bounds.scarcest(n) for n in (1, 9, 11)] == ["workers", "workers", "scheduler"]


def test_all_numbers_are_in_the_json_and_the_figure_on_a_page(tmp_path):
    found = foresee(equal(), (1, 2))
    saved = json.loads(found.save(tmp_path / "a.json").read_text())
    assert saved["points"][1]["seconds"] == 50.0
    assert "Foreseen time" in found.save(tmp_path / "a.html").read_text()


def slowly(block):
    time.sleep(0.01)
    return block + 1


def test_a_run_is_foreseen_as_it_was(tmp_path):
    plan = barrow.plan(slowly, np.zeros((24, 8)), cluster=False).with_chunks(dim_0=1)
    run = barrow.run(plan, folder=tmp_path / "run", cluster=False, quiet=True)
    found = barrow.what_if(run, workers=(1, 2, 24))
    one, two, many = (point.seconds for point in found.points)
    assert one == pytest.approx(found.measured_seconds, rel=0.02)
    assert one > two > many
    done = CliRunner().invoke(main, ["what-if", str(run.folder), "--workers", "8", "--json"])
    assert json.loads(done.output)["points"][0]["workers"] == 8


def test_smaller_chunks_of_a_run_are_more_tasks(tmp_path):
    plan = barrow.plan(slowly, np.zeros((24, 8)), cluster=False).with_chunks(dim_0=4)
    run = barrow.run(plan, folder=tmp_path / "run", cluster=False, quiet=True)
    assert barrow.what_if(run, 1, chunk={"dim_0": 2}).tasks == 12
    with pytest.raises(InputError, match="cannot be cut"):
        barrow.what_if(run, 1, chunk={"z": 2})


def test_a_watched_program_is_foreseen_with_what_waits_for_what(tmp_path):
    @dask.delayed
    def wait(*_):
        time.sleep(0.03)

    with barrow.watch(tmp_path / "watched") as watched:
        dask.compute(wait(*[wait() for _ in range(8)]), scheduler="threads", num_workers=2)
    found = barrow.what_if(watched.folder, workers=(1, 2, 100))
    one, two, many = (point.seconds for point in found.points)
    assert two == pytest.approx(found.measured_seconds, rel=0.05)
    # However many there are, the last task comes after the others.
    assert one > two > many > 2 * 0.03


def test_a_plan_that_has_not_run_is_foreseen_from_its_probes():
    with pytest.raises(InputError, match="too little to do"):
        barrow.what_if(barrow.plan(np.sqrt, np.ones((4, 4)), cluster=False))
    plan = barrow.plan(slowly, np.zeros((4096, 512)), cluster=False)
    found = barrow.what_if(plan, workers=(1, 2), times=100)
    assert found.points[1].seconds < found.points[0].seconds
    assert not found.is_run


def test_what_is_no_run_is_refused():
    with pytest.raises(InputError, match="neither a run nor a plan"):
        barrow.what_if(42)


def test_the_report_of_a_run_shows_what_more_workers_would_bring(tmp_path):
    plan = barrow.plan(slowly, np.zeros((24, 8)), cluster=False).with_chunks(dim_0=1)
    run = barrow.run(plan, folder=tmp_path / "run", cluster=False, quiet=True)
    page = barrow.report(run.folder).read_text()
    said = json.loads((run.folder / "report.json").read_text())["outlook"]
    assert said["rows"][0]["heading"] == "ideal number of workers"
    assert said["rows"][1]["text"] == "1.0"
    assert "More workers" in page
    assert 'id="figure-more"' in page
