"""``barrow cluster``: look, start, use from elsewhere, stop."""

import os
import re
import stat

import psutil
import pytest

USE = """
import sys
import barrow, numpy as np

where = sys.argv[1] if len(sys.argv) > 1 else None
print(barrow.plan(np.sqrt, np.full((4, 5), 9.0), cluster=where).engine)
print(barrow.map(np.sqrt, np.full((4, 5), 9.0), cluster=where, quiet=True).sum())
"""


@pytest.fixture
def own_clusters(tmp_path, monkeypatch):
    monkeypatch.setenv("BARROW_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache/open-clusters"


def test_what_the_machine_offers_and_what_would_be_done_is_shown(run_barrow, own_clusters):
    shown = run_barrow("cluster").stdout
    assert re.search(r"\d+ cores?, [\d.]+ \w+ of [\d.]+ \w+ free", shown)
    assert "temporary files: " in shown
    assert "SLURM: " in shown
    assert re.search(r"barrow\.cluster\('local'\) would start \d+ worker", shown)


def test_a_cluster_is_started_used_by_other_programs_and_stopped(
    start_barrow, start_python, run_barrow, own_clusters, monkeypatch, request
):
    process = start_barrow("cluster", "start", "local", "--workers", "1", "--memory", "500MB")
    request.addfinalizer(process.kill)
    name, _, address = process.stdout.readline().partition(" is up: ")
    address = address.split()[1].rstrip(":")
    said = [process.stdout.readline() for _ in range(7)]
    assert f"barrow cluster stop {name}" in said[-1]
    file = own_clusters / name / "scheduler.json"
    assert f"  export DASK_SCHEDULER_FILE={file}\n" in said
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file.parent, *file.parent.iterdir())]
    assert all(mode & 0o077 == 0 for mode in modes)
    assert f"Open: {name} at {address}" in run_barrow("cluster").stdout

    for arguments, variable in (([str(file)], None), ([address], None), ([], str(file))):
        if variable is not None:
            monkeypatch.setenv("DASK_SCHEDULER_FILE", variable)
        done = start_python("-c", USE, *arguments)
        assert done.communicate(timeout=60) == ("dask\n60.0\n", "")
    monkeypatch.delenv("DASK_SCHEDULER_FILE")

    children = psutil.Process(process.pid).children(recursive=True)
    assert run_barrow("cluster", "stop").stdout == f"{name} is stopped.\n"
    assert process.communicate(timeout=60) == ("Stopped.\n", "")
    assert process.returncode == 0
    assert not any(child.is_running() for child in children)
    assert list(own_clusters.iterdir()) == []


def test_there_must_be_something_to_stop(run_barrow, own_clusters):
    assert "There is no cluster to stop." in run_barrow("cluster", "stop", status=1).stderr


def test_what_a_killed_process_announced_is_removed(own_clusters):
    from barrow.sites.announcing import announcing, list_announced
    from barrow.sites.local import start_local

    with start_local(workers=1, memory="500MB") as cluster, announcing(cluster, "local") as made:
        assert list_announced() == [made]
        text = made.path.read_text().replace(f'"pid": {os.getpid()}', '"pid": 4194305')
        made.path.write_text(text)
        assert list_announced() == []
        assert not made.folder.exists()


def test_what_slurm_alone_understands_is_refused_for_this_machine(run_barrow):
    done = run_barrow("cluster", "start", "local", "--jobs", "2", status=1)
    assert "jobs= can only be asked of SLURM" in done.stderr


def test_a_resource_that_a_task_needs_can_be_named(run_barrow, folder):
    plan = run_barrow("plan", "mine.py:scale", "image.npy", "--resource", "GPU").stdout
    assert "asks for 1 GPU" in plan or "1 at a time" in plan
    wrong = run_barrow("plan", "mine.py:scale", "image.npy", "--resource", "GPU=0", status=2)
    assert "is not a resource" in wrong.stderr
