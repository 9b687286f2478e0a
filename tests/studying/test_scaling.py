"""How work scales: what is measured, what is shown, and what is chosen."""

import json

import dask.array
import numpy as np
import pytest
from click.testing import CliRunner

import barrow
from barrow.cli.main import main
from barrow.errors import InputError
from barrow.studying.repeat import Repeat, Repeats
from barrow.studying.scaling import Scaling
from barrow.studying.workloads import check_workers, count_workers, wants_client
from browser import Browser, find_browser

MIB = 2**20


def took(*seconds, held=(100 * MIB, 300 * MIB)):
    times = tuple(np.linspace(0, seconds[0], len(held)))
    return Repeats(tuple(Repeat(s, 200 * MIB, 150 * MIB, max(held), times, held) for s in seconds))


def scaled(**times):
    """Return a scaling on 2 cores: ``w2=5`` is 5 s with 2 workers."""
    return Scaling.of("fit", 2, [(int(name[1:]), took(s)) for name, s in times.items()])


def test_speed_up_and_efficiency_are_those_of_the_median():
    found = Scaling.of("fit", 2, [(2, took(5.0, 4.0, 9.0)), (1, took(8.0, 8.0, 8.0))])
    assert [setting.workers for setting in found.settings] == [1, 2]
    assert found.settings[1].speed_up == pytest.approx(8 / 5)
    assert found.settings[1].efficiency == pytest.approx(0.8)


def test_the_fewest_workers_that_are_about_as_fast_as_any_are_chosen():
    found = scaled(w1=8.0, w2=4.2, w4=4.0)
    assert found.choice == 2
    assert "4 would be only 5% faster" in found.why


def test_workers_that_make_it_slower_are_not_chosen():
    found = scaled(w1=8.0, w2=4.0, w4=6.0)
    assert found.choice == 2
    assert "4 take 50% longer" in found.why


def test_more_workers_than_cores_are_said_to_be_oversubscribed():
    found = scaled(w1=8.0, w2=4.0, w4=6.0)
    assert [setting.is_oversubscribed for setting in found.settings] == [False, False, True]
    assert "4 workers are oversubscribed: there are 2 cores" in str(found)


def test_the_table_has_a_line_for_each_number_and_marks_the_choice():
    lines = str(scaled(w1=8.0, w2=4.2)).splitlines()
    assert "efficiency" in lines[2]
    assert lines[4].startswith("2 *")
    assert "300 MiB" in lines[4]


def test_the_json_has_every_repeat(tmp_path):
    saved = json.loads(scaled(w1=8.0, w2=4.2).save(tmp_path / "a.json").read_text())
    assert saved["choice"] == 2
    assert saved["settings"][1]["taken"]["repeats"][0]["seconds"] == 4.2


def test_a_name_that_does_not_say_what_to_write_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"ends with \.html"):
        scaled(w1=1.0).save(tmp_path / "scaling.pdf")


def test_the_figures_are_there_as_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    picture = scaled(w1=8.0, w2=4.2).save(tmp_path / "a.png").read_bytes()
    assert picture.startswith(b"\x89PNG")


@pytest.mark.skipif(find_browser() is None, reason="there is no Chromium")
def test_the_page_draws_both_figures_and_asks_for_nothing(tmp_path):
    path = scaled(w1=8.0, w2=4.2, w4=4.1).save(tmp_path / "a.html")
    with Browser(find_browser()) as browser:
        page = browser.open(path)
        assert page.complaints() == []
        assert page.requests() == []
        assert "Choose 2 workers" in page.text()
        inked = page.inked()
        assert set(inked) == {"figure-time", "figure-memory"}
        assert all(points > 1000 for points, _ in inked.values())


def test_a_function_is_measured_with_each_number_of_workers(tmp_path):
    seen = []

    def work(client):
        seen.append(len(client.scheduler_info(n_workers=-1)["workers"]))
        dask.array.ones((600, 600), chunks=300).sum().compute()

    found = barrow.scaling(
        work, workers=(2, 1), repeats=1, memory="400MB", folder=tmp_path / "kept", quiet=True
    )
    assert seen == [1, 2]
    assert [setting.workers for setting in found.settings] == [1, 2]
    both = found.settings[1].taken.repeats[0]
    assert both.total_bytes >= both.worker_bytes + both.client_bytes > both.client_bytes > 0
    assert len(both.times) == len(both.held_bytes) > 1
    tasks = barrow.record(tmp_path / "kept" / "2-workers-1").table("dask_task")
    assert 1 <= tasks["worker"].nunique() <= 2


def test_a_plan_is_measured_and_leaves_no_result(tmp_path):
    place = tmp_path / "out.zarr"
    plan = barrow.plan(np.sqrt, np.ones((64, 64)), to=place)
    found = barrow.scaling(plan, [1], 2, memory="400MB", folder=tmp_path / "kept", quiet=True)
    assert not place.exists()
    assert len(found.settings[0].taken.repeats) == 2
    assert found.name == "sqrt"
    assert not list((tmp_path / "kept").rglob("result.zarr"))


def test_a_function_that_needs_more_than_a_client_is_refused():
    with pytest.raises(InputError, match="data, sigma"):
        wants_client(lambda data, sigma: data + sigma)


def test_numbers_of_workers_are_checked_before_anything_is_started():
    with pytest.raises(InputError, match="workers=0 is not a count"):
        barrow.scaling(lambda: None, workers=[1, 0])
    with pytest.raises(InputError, match=r"workers= is empty"):
        barrow.scaling(lambda: None, workers=[])


def processes(*rows):
    names = ("kind", "threads", "joined", "left")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


class Record:
    def __init__(self, *rows):
        self._rows = processes(*rows)

    def columns(self, name):
        assert name == "process"
        return self._rows


def test_a_script_that_makes_its_own_cluster_is_told_where_the_number_is():
    record = Record(("client", None, 0.0, None), ("worker", 1, 0.1, None))
    check_workers(record, 1, "fit.py")
    with pytest.raises(InputError, match="ran on 1 worker, though there should be 2") as error:
        check_workers(record, 2, "fit.py")
    assert "BARROW_WORKERS" in str(error.value)


def test_threads_count_where_there_is_no_cluster():
    assert count_workers(processes(("client", 3, 0.0, None))) == 3


def test_a_script_finds_the_cluster_that_is_offered(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, dask.array\nfrom distributed import Client\n"
        "if __name__ == '__main__':\n"
        "    client = Client()\n"
        "    dask.array.ones((int(sys.argv[1]), 300), chunks=300).sum().compute()\n"
    )
    page = tmp_path / "scaling.html"
    options = ["scaling", "--workers", "1", "--repeats", "1", "--memory", "400MB"]
    done = CliRunner().invoke(main, [*options, "--save", str(page), str(script), "600"])
    assert done.exit_code == 0, done.output
    assert "Scaling of 'script.py'" in done.output
    assert page.exists()
