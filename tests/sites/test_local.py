import itertools
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import distributed
import psutil
import pytest

from barrow.errors import ClusterError, InputError
from barrow.model.site import Machine
from barrow.sites import worker_process
from barrow.sites.environment import THREAD_VARIABLES
from barrow.sites.local import size_workers, start_local
from barrow.sites.scratch import PREFIX

GIB = 2**30
NODE = Machine("node", cores=4, total_bytes=32 * GIB, available_bytes=20 * GIB)


@pytest.fixture(scope="module")
def cluster():
    with start_local(workers=1, memory="1GiB") as cluster:
        yield cluster


@pytest.fixture
def list_scratch(tmp_path, monkeypatch):
    """Look for scratch folders in a place for temporary files of this test alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda: list(tmp_path.glob(f"{PREFIX}*"))


def start_python(code, environ, folder):
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs tests in the background has interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


# Sizes


def test_by_default_each_core_has_a_worker_and_a_fifth_of_the_memory_stays_free():
    assert size_workers(NODE) == (4, 1, 4 * GIB)


def test_threads_take_the_place_of_workers():
    assert size_workers(NODE, threads=4) == (1, 4, 16 * GIB)


def test_more_than_is_free_but_less_than_there_is_can_be_asked_for():
    assert size_workers(NODE, workers=3, memory_bytes=10 * GIB) == (3, 1, 10 * GIB)


def test_more_memory_than_there_is_cannot_be_asked_for():
    with pytest.raises(InputError, match=r"need 40\.0 GiB, but there are 32\.0 GiB") as caught:
        size_workers(NODE, workers=4, memory_bytes=10 * GIB)
    assert str(size_workers(NODE, workers=4)[2]) in str(caught.value)


@pytest.mark.parametrize("sizes", [{"workers": 0}, {"threads": -1}, {"memory_bytes": 0}])
def test_a_size_below_one_is_refused(sizes):
    with pytest.raises(InputError, match="whole number from 1 up"):
        size_workers(NODE, **sizes)


@pytest.mark.parametrize("memory", ["plenty", -5])
def test_memory_that_is_no_size_is_refused(memory):
    with pytest.raises(InputError, match="memory="):
        start_local(memory=memory)


# Scripts


SCRIPT = """
from barrow.sites.local import start_local

with start_local(workers=2, memory="500MB") as cluster:
    def double(x):
        return 2 * x
    print(sum(cluster.client.gather(cluster.client.map(double, range(10)))))
"""


def test_a_script_needs_no_main_guard_and_prints_nothing_of_its_own(run_python, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run_python("script.py")
    assert (done.stdout, done.stderr, done.returncode) == ("90\n", "", 0)


def test_a_cluster_starts_in_a_command_and_is_closed_quietly_when_forgotten(run_python):
    code = (
        "from barrow.sites.local import start_local;"
        "c = start_local(workers=1); print([w.pid for w in c.workers][0])"
    )
    done = run_python("-c", code)
    assert (done.stderr, done.returncode) == ("", 0)
    assert not psutil.pid_exists(int(done.stdout))


def test_a_cluster_starts_inside_a_running_event_loop_as_in_a_notebook(run_python):
    code = """
import asyncio
from barrow.sites.local import start_local

async def cell():
    with start_local(workers=1) as cluster:
        print(cluster.client.submit(sum, [1, 2]).result())

asyncio.run(cell())
"""
    done = run_python("-c", code)
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_workers_import_a_module_beside_the_script(run_python, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "beside.py").write_text("def answer(): return 42\n")
    (folder / "script.py").write_text(
        "import beside\n"
        "from barrow.sites.local import start_local\n"
        "cluster = start_local(workers=1)\n"
        "print(cluster.client.submit(beside.answer).result())\n"
        "cluster.close()\n"
    )
    done = run_python("project/script.py")
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_what_a_task_prints_appears_and_lost_workers_make_no_noise(run_python):
    code = """
import os, sys
import dask, distributed
from barrow.sites.local import start_local

def speak(path):
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), 9)
    print("said", flush=True)
    print("complained", file=sys.stderr, flush=True)

def die():
    os.kill(os.getpid(), 9)

dask.config.set({"distributed.scheduler.allowed-failures": 1})
with start_local(workers=1) as cluster:
    cluster.client.submit(speak, "marker").result()
    try:
        cluster.client.submit(die).result()
    except distributed.KilledWorker:
        print("killed")
    print([exit.code for exit in cluster.exits[:2]])
"""
    done = run_python("-c", code)
    assert (done.stdout, done.stderr) == ("said\nkilled\n[-9, -9]\n", "complained\n")


def test_an_interrupted_script_ends_its_workers_and_says_no_more_than_that(
    python_environment, tmp_path
):
    code = """
import os, time
from barrow.sites.local import start_local

def work():
    print(os.getpid(), flush=True)
    time.sleep(60)

with start_local(workers=1) as cluster:
    try:
        cluster.client.submit(work).result()
    except KeyboardInterrupt:
        print("interrupted")
"""
    with start_python(code, python_environment, tmp_path) as client:
        worker = psutil.Process(int(client.stdout.readline()))
        # As a terminal does: everybody in the process group of the client.
        os.killpg(client.pid, signal.SIGINT)
        out, err = client.communicate(timeout=30)
    assert (out, err, client.returncode) == ("interrupted\n", "", 0)
    assert not worker.is_running()


def test_a_killed_client_leaves_no_worker_even_if_one_is_stuck(python_environment, tmp_path):
    code = """
import itertools, os, sys, time
from barrow.sites.local import start_local

def wait():
    print(os.getpid(), flush=True)
    time.sleep(60)

def hold_the_gil():
    print(os.getpid(), flush=True)
    sum(itertools.repeat(0, 10**11))

client = start_local(workers=2).client
futures = client.submit(wait, workers="0"), client.submit(hold_the_gil, workers="1")
sys.stdin.read()
"""
    with start_python(code, python_environment, tmp_path) as client:
        workers = [psutil.Process(int(client.stdout.readline())) for _ in range(2)]
        client.kill()
        client.wait()
        gone, alive = psutil.wait_procs(workers, timeout=20)
    assert len(gone) == 2
    assert not alive


# Workers


def test_the_workers_have_the_size_asked_for(cluster):
    (worker,) = cluster.workers
    assert (worker.threads, worker.limit_bytes, worker.host) == (1, GIB, "127.0.0.1")
    assert cluster.client.run(os.getpid) == {worker.address: worker.pid}


def test_libraries_in_a_worker_share_the_cores(cluster):
    cores = cluster.site().machine.cores
    (seen,) = cluster.client.run(lambda: dict(os.environ)).values()
    assert {seen[name] for name in THREAD_VARIABLES} == {str(cores)}
    assert seen.get("MALLOC_TRIM_THRESHOLD_") != "65536"


def test_environment_and_logging_of_the_client_are_as_they_were_after_closing():
    before = dict(os.environ)
    handler = logging.StreamHandler()
    handler.setLevel(logging.INFO)
    logging.getLogger("distributed").addHandler(handler)
    with start_local(workers=1):
        assert dict(os.environ) == before
        assert handler.level == logging.CRITICAL
    logging.getLogger("distributed").removeHandler(handler)
    assert dict(os.environ) == before
    assert handler.level == logging.INFO


def test_programs_started_by_a_task_have_the_search_path_of_the_client(cluster):
    (seen,) = cluster.client.run(os.environ.get, "PYTHONPATH").values()
    assert seen == os.environ.get("PYTHONPATH")


def test_a_worker_that_is_killed_is_replaced_and_its_task_goes_on(tmp_path):
    marker = str(tmp_path / "marker")

    def die_once():
        if not os.path.exists(marker):
            with open(marker, "w") as file:
                file.write(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    with start_local(workers=1) as cluster:
        pid = cluster.client.submit(die_once).result(timeout=60)
        (exit_,) = cluster.exits
        assert (exit_.name, exit_.pid, exit_.code) == ("0", int(Path(marker).read_text()), -9)
        assert [worker.pid for worker in cluster.workers] == [pid]
        assert [worker.name for worker in cluster.workers] == ["0"]


def test_restarting_brings_back_as_many_workers(cluster):
    before = {worker.pid for worker in cluster.workers}
    cluster.client.restart(timeout=60)
    after = {worker.pid for worker in cluster.workers}
    assert len(after) == 1
    assert not before & after


def test_a_worker_asked_to_end_by_a_signal_says_so(tmp_path):
    marker = str(tmp_path / "marker")

    def leave_once():
        if not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)

    with start_local(workers=1) as cluster:
        cluster.client.submit(leave_once).result(timeout=60)
        assert [exit_.code for exit_ in cluster.exits] == [128 + signal.SIGTERM]


def test_closing_leaves_no_process_and_no_file(list_scratch):
    cluster = start_local(workers=2)
    workers = [psutil.Process(worker.pid) for worker in cluster.workers]
    (folder,) = list_scratch()
    assert folder.stat().st_mode & 0o777 == 0o700
    cluster.close()
    assert not any(worker.is_running() for worker in workers)
    assert list_scratch() == []


@pytest.mark.parametrize("holds_the_gil", [False, True])
def test_closing_does_not_wait_for_a_task(holds_the_gil):
    def work():
        import distributed

        distributed.Event("started").set()
        if holds_the_gil:
            sum(itertools.repeat(0, 10**11))
        time.sleep(60)

    cluster = start_local(workers=1)
    worker = psutil.Process(cluster.workers[0].pid)
    future = cluster.client.submit(work)
    assert distributed.Event("started").wait(timeout=30)
    start = time.monotonic()
    cluster.close()
    assert time.monotonic() - start < 10
    assert not worker.is_running()
    assert future.status == "cancelled"


def test_scaling_adds_and_removes_workers():
    with start_local(workers=1, memory="500MB") as cluster:
        first = {worker.pid for worker in cluster.workers}
        cluster.scale(2)
        cluster.wait(2, timeout=60)
        added = {worker.pid for worker in cluster.workers} - first
        assert len(added) == 1
        cluster.scale(1)
        psutil.wait_procs([psutil.Process(pid) for pid in added], timeout=20)
        assert {worker.pid for worker in cluster.workers} == first
        assert cluster.exits == []
        with pytest.raises(InputError, match="at most"):
            cluster.scale(10**6)


def test_a_worker_that_cannot_start_is_given_up_with_its_last_words(
    monkeypatch, capfd, list_scratch
):
    words = "import sys; sys.exit('no such library')"
    monkeypatch.setattr(worker_process, "_make_command", lambda *_: [sys.executable, "-c", words])
    with pytest.raises(ClusterError, match="5 times before it could begin") as caught:
        start_local(workers=1)
    assert "no such library" in str(caught.value)
    assert "exit code 1" in str(caught.value)
    assert "no such library" not in capfd.readouterr().out
    assert list_scratch() == []
