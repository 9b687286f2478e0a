import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest
from distributed import Client, wait

import barrow
from barrow.errors import BarrowError, ClusterError, InputError
from barrow.sites import job_pool
from barrow.sites.partitions import choose_partition
from barrow.sites.slurm import read_partitions
from three_calls import is_expected, three_calls

GB = 10**9
SOURCE = Path(barrow.__file__).parents[1]
SIZES = {"memory": "900MB", "quiet": True, "timeout": 60}


@pytest.fixture
def gate(tmp_path):
    """A function that says which chunks it has begun, and then waits until a gate is opened."""
    return Gate(tmp_path / "gate")


class Gate:
    def __init__(self, folder):
        folder.mkdir()
        self._folder = folder

    def open(self):
        (self._folder / "open").touch()

    def n_begun(self):
        return len(list(self._folder.glob("begun-*")))

    def make_function(self):
        folder = str(self._folder)

        def pass_through(block):
            import os
            import time
            import uuid

            if "SLURM_JOB_ID" not in os.environ:
                return block + 1  # being measured
            path = f"{folder}/begun-{uuid.uuid4().hex}"
            with open(path, "w"):
                pass
            for _ in range(1200):
                if os.path.exists(f"{folder}/open"):
                    break
                time.sleep(0.05)
            return block + 1

        return pass_through


def run_aside(function):
    """Run something in a thread; return its thread and a list for its answer or its error."""
    answers = []

    def run():
        try:
            answers.append(function())
        except Exception as error:
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, answers


def map_through(gate, cluster):
    return barrow.map(gate.make_function(), np.zeros((8, 4)), cluster=cluster, quiet=True)


def find_codes(folder):
    """Return what the doctor finds, and how grave it is."""
    return {finding.code: finding.severity for finding in barrow.diagnose(folder)}


# What there is


@pytest.mark.parametrize(("peak", "name"), [(1, "8GB"), (7, "8GB"), (9, "16GBXL"), (15, "16GBXL")])
def test_the_smallest_partition_that_suffices_is_chosen(slurm, peak, name):
    assert choose_partition(read_partitions(), peak * GB).name == name


def test_more_than_any_partition_has_is_refused_in_one_line(slurm):
    with pytest.raises(
        InputError, match=r"the largest, '16GBXL', has nodes of 16\.0 GiB"
    ) as caught:
        barrow.cluster("slurm", memory="18GB")
    assert "\n" not in str(caught.value)
    assert slurm.list_jobs() == []


def test_a_partition_that_does_not_exist_is_refused_with_those_there_are(slurm):
    with pytest.raises(InputError, match=r"no partition '4GB'.*'8GB'.*'16GBXL'"):
        barrow.cluster("slurm", partition="4GB")


def test_a_job_that_is_rejected_is_one_error_with_the_words_of_slurm(slurm, tmp_path):
    with (
        pytest.raises(ClusterError, match=r"rejected the job: .*can not be satisfied"),
        barrow.watch(tmp_path / "run"),
    ):
        barrow.cluster("slurm", sbatch=["--mem=999999M"], **SIZES)
    assert slurm.list_jobs() == []
    assert find_codes(tmp_path / "run") == {"SLM02": "failure"}


# Working


def test_a_map_runs_in_jobs_that_are_gone_afterwards(slurm, tmp_path, monkeypatch):
    monkeypatch.setenv("BARROW_CACHE", str(tmp_path / "cache"))
    data = np.random.default_rng(0).random((300, 200))
    with barrow.cluster("slurm", jobs=2, **SIZES) as cluster:
        assert not cluster.site().is_local
        assert cluster.wait(2, timeout=60).site().workers == 2
        assert len(slurm.list_jobs("running")) == 2
        out = barrow.map(np.sqrt, data, cluster=cluster, quiet=True, to=tmp_path / "out.zarr")
        assert np.array_equal(out[:], np.sqrt(data))
        check_that_strangers_stay_outside(cluster, tmp_path / "cache")
    assert slurm.list_jobs() == []
    assert list((tmp_path / "cache/clusters").iterdir()) == []


def check_that_strangers_stay_outside(cluster, cache):
    with pytest.raises((OSError, TypeError, RuntimeError)):
        Client(cluster.client.scheduler.address, timeout=2, set_as_default=False)
    pids = set(cluster.client.run(os.getpid).values())
    opened = {
        f"tls://{connection.laddr.ip}:{connection.laddr.port}"
        for connection in psutil.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.pid in pids
    }
    assert opened == {worker.address for worker in cluster.workers}
    assert all(address.startswith("tls://127.0.0.1:") for address in opened)
    (folder,) = (cache / "clusters").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*.pem")} == {0o600}


def test_the_same_calls_as_everywhere_give_the_same_bits(slurm, tmp_path):
    with barrow.cluster("slurm", jobs=2, **SIZES) as cluster:
        assert cluster.client.scheduler.address.startswith("tls://")
        assert barrow.plan(np.sqrt, np.ones((4, 4)), quiet=True).engine == "dask"
        assert is_expected(three_calls(tmp_path))


def test_jobs_come_as_the_work_can_use_them(slurm, gate):
    with barrow.cluster("slurm", jobs="auto", **SIZES) as cluster:
        assert len(slurm.list_jobs()) == 1
        cluster.adapt(1, 3)
        plan = barrow.plan(gate.make_function(), np.zeros((8, 4)), quiet=True, cluster=cluster)
        plan = plan.with_chunks(dim_0=1, dim_1=4)
        thread, answers = run_aside(lambda: barrow.run(plan, quiet=True, cluster=cluster).result)
        assert slurm.wait_until(lambda: len(slurm.list_jobs("running")) == 3)
        gate.open()
        thread.join(60)
        assert np.array_equal(answers[0][:], np.ones((8, 4)))
        assert cluster.losses == []


def test_tasks_that_ask_for_what_no_job_offers_are_refused_and_those_that_do_get_them(slurm):
    data = np.full((6, 4), 9.0)
    with barrow.cluster("slurm", jobs=1, resources={"licence": 1}, **SIZES):
        with pytest.raises(InputError, match="asks for 1 GPU, but no worker"):
            barrow.map(np.sqrt, data, resources={"GPU": 1}, quiet=True)
        out = barrow.map(np.sqrt, data, resources={"licence": 1}, quiet=True)
        assert np.array_equal(out[:], np.full((6, 4), 3.0))


def test_a_task_that_asks_for_threads_gets_a_job_with_as_many_cores(slurm):
    out = barrow.map(
        count_threads, np.zeros((6, 4)), resources={"threads": 2}, cluster="slurm", quiet=True
    )
    assert np.all(out[:] == 2)


def count_threads(x):
    import os

    from threadpoolctl import threadpool_info

    allowed = max(pool["num_threads"] for pool in threadpool_info())
    return x + min(allowed, int(os.environ.get("SLURM_CPUS_PER_TASK", allowed)))


def test_a_resource_that_slurm_has_no_name_for_is_refused(slurm):
    with pytest.raises(InputError, match="'camera': 1} cannot be asked of SLURM by that name"):
        barrow.map(np.sqrt, np.ones(4), resources={"camera": 1}, cluster="slurm", quiet=True)


def test_jobs_run_on_several_nodes_and_one_that_fails_is_done_without(slurm, gate):
    sizes = {**SIZES, "memory": "5GB"}  # a node has room for one such job
    with barrow.cluster("slurm", partition="pair", jobs=2, **sizes) as cluster:
        cluster.wait(2, timeout=60)
        nodes = slurm.find_nodes(*slurm.list_jobs("running"))
        assert set(nodes) == {"node3", "node4"}
        thread, answers = run_aside(lambda: map_through(gate, cluster))
        assert slurm.wait_until(gate.n_begun)
        slurm.let_fail(nodes[0])
        assert slurm.wait_until(lambda: cluster.losses)
        gate.open()
        thread.join(60)
        assert np.array_equal(answers[0][:], np.ones((8, 4)))
        assert "its node failed" in cluster.losses[0]


def test_a_map_asks_for_jobs_of_the_size_that_its_plan_needs(slurm, tmp_path, monkeypatch):
    monkeypatch.setenv("BARROW_CACHE", str(tmp_path))
    out = barrow.map(np.sqrt, np.full((30, 20), 9.0), cluster="slurm", quiet=True)
    assert float(out[0, 0]) == 3.0
    assert slurm.list_jobs() == []


def test_a_plan_for_slurm_asks_for_no_job(slurm):
    plan = barrow.plan(np.sqrt, np.full((30, 20), 9.0), cluster="slurm")
    assert (plan.engine, plan.is_local) == ("dask", False)
    assert slurm.list_jobs() == []


def test_a_module_that_the_jobs_do_not_have_is_reported(slurm, tmp_path, monkeypatch):
    with barrow.cluster("slurm", jobs=1, **SIZES) as cluster:
        (tmp_path / "only_here.py").write_text("def double(block):\n    return 2 * block\n")
        monkeypatch.syspath_prepend(tmp_path)
        import only_here

        with pytest.raises((BarrowError, ImportError), match="only_here"):
            barrow.map(only_here.double, np.ones((9, 9)), cluster=cluster, quiet=True)


# Waiting


def test_jobs_that_wait_for_room_are_waited_for(slurm, tmp_path, capfd):
    filler = slurm.fill("8GB", 8192, tmp_path)
    with barrow.watch(tmp_path / "run"):
        thread, answers = run_aside(
            lambda: barrow.cluster("slurm", partition="8GB", jobs=1, **{**SIZES, "quiet": False})
        )
        assert slurm.wait_until(lambda: "1 job pending: Resources" in capfd.readouterr().err)
        assert slurm.wait_until(lambda: "SLM01" in find_codes(tmp_path / "run"))
        slurm.cancel(filler)
        thread.join(60)
        (cluster,) = answers
        cluster.close()


def test_waiting_in_vain_ends_with_what_the_queue_said(slurm, tmp_path):
    slurm.fill("8GB", 8192, tmp_path)
    with pytest.raises(ClusterError, match="1 job pending: Resources") as caught:
        barrow.cluster("slurm", partition="8GB", jobs=1, **{**SIZES, "timeout": 2})
    assert "timeout=" in str(caught.value)
    assert len(slurm.list_jobs()) == 1


# Losses


def test_jobs_that_are_cancelled_are_replaced_and_the_run_goes_on(slurm, gate):
    with barrow.cluster("slurm", jobs=2, **SIZES) as cluster:
        cluster.wait(2, timeout=60)
        thread, answers = run_aside(lambda: map_through(gate, cluster))
        assert slurm.wait_until(gate.n_begun)
        slurm.cancel(*slurm.list_jobs("running"))
        assert slurm.wait_until(lambda: len(cluster.losses) == 2)
        gate.open()
        thread.join(60)
        assert np.array_equal(answers[0][:], np.ones((8, 4)))
        assert all("it was cancelled (SLURM says CANCELLED" in loss for loss in cluster.losses)
        assert cluster.wait(2, timeout=60).failures == []


def test_a_job_that_is_driven_out_is_explained_and_replaced(slurm, gate, tmp_path):
    sizes = {**SIZES, "memory": "5GB"}
    with barrow.cluster("slurm", partition="8GB", jobs=1, **sizes) as cluster:
        thread, answers = run_aside(lambda: map_through(gate, cluster))
        assert slurm.wait_until(gate.n_begun)
        urgent = slurm.fill("urgent", 8192, tmp_path)
        assert slurm.wait_until(lambda: cluster.losses)
        assert "it had to make room for another job" in cluster.losses[0]
        slurm.cancel(urgent)
        gate.open()
        thread.join(60)
        assert np.array_equal(answers[0][:], np.ones((8, 4)))


def test_when_too_many_jobs_are_lost_the_run_ends_with_one_error(slurm, gate, monkeypatch):
    monkeypatch.setattr(job_pool, "count_most_lost", lambda _: 0)
    with barrow.cluster("slurm", jobs=1, **SIZES) as cluster:
        thread, answers = run_aside(lambda: map_through(gate, cluster))
        assert slurm.wait_until(gate.n_begun)
        slurm.cancel(*slurm.list_jobs())
        thread.join(60)
        assert isinstance(answers[0], ClusterError)
        assert "No more jobs are asked for" in str(answers[0])
        assert "it was cancelled" in str(answers[0])


def test_a_job_that_takes_too_much_memory_is_explained(slurm, tmp_path):
    with (
        barrow.watch(tmp_path / "run"),
        barrow.cluster("slurm", jobs=1, **SIZES) as cluster,
        cluster.hosting("filled"),
    ):
        task = cluster.client.submit(bytearray_filled, 1500 * 10**6, key=("filled", 0))
        wait(task, timeout=60)
        assert slurm.wait_until(lambda: cluster.losses)
    assert "it used more than its memory of 858 MiB" in cluster.losses[0]
    assert "memory=" in cluster.losses[0]
    found = find_codes(tmp_path / "run")
    assert found["SLM04"] == "warning"
    assert "WRK06" not in found, "it is known why the worker died"


def bytearray_filled(size):
    import time

    held = b"1" * size
    time.sleep(30)
    return len(held)


def test_a_job_whose_time_is_nearly_over_finishes_its_task_and_is_replaced(slurm, gate):
    # The shortest time SLURM knows is a minute, so the end is made to come early.
    patch = pytest.MonkeyPatch()
    patch.setattr(job_pool, "choose_margin", lambda _: 57.0)
    with barrow.cluster("slurm", jobs=1, walltime=60, **SIZES) as cluster:
        task = cluster.client.submit(gate.make_function(), 1, pure=False)
        (first,) = slurm.list_jobs("running")
        assert slurm.wait_until(lambda: len(slurm.list_jobs("running")) == 2)
        patch.undo()
        gate.open()
        assert task.result(timeout=60) == 2
        assert gate.n_begun() == 1
        assert slurm.wait_until(lambda: first not in slurm.list_jobs("running"))
        assert cluster.losses == []


def test_a_job_whose_time_ends_before_its_task_is_in_the_record_of_the_run(slurm, gate, tmp_path):
    margins = iter([2.0])  # for the worker, which has no time to finish its task
    patch = pytest.MonkeyPatch()
    patch.setattr(job_pool, "choose_margin", lambda _: next(margins, 57.0))
    words = {"setup": ["echo I begin"], **SIZES}
    with barrow.cluster("slurm", jobs=1, walltime=60, **words) as cluster:
        plan = barrow.plan(gate.make_function(), np.zeros((8, 4)), quiet=True, cluster=cluster)
        folder = tmp_path / "run"
        thread, answers = run_aside(lambda: barrow.run(plan, cluster=cluster, folder=folder))
        assert slurm.wait_until(lambda: cluster.losses)
        patch.undo()
        gate.open()
        thread.join(60)
        assert np.array_equal(answers[0].result[:], np.ones((8, 4)))
    (found,) = [finding for finding in answers[0].findings if finding.code == "SLM03"]
    assert found.claim.startswith("Job ")
    assert {p.read_text() for p in folder.glob("**/jobs/job-*.log")} == {"I begin\n"}


# Endings

KILLED = """
import sys
import barrow

barrow.cluster("slurm", partition="8GB", jobs=2, memory="5GB", quiet=True, timeout=60)
print("open", flush=True)
sys.stdin.read()
"""


def test_a_client_that_is_killed_leaves_no_job_in_the_queue(slurm, tmp_path):
    environ = {**os.environ, "PYTHONPATH": str(SOURCE), "BARROW_CACHE": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdout.readline() == "open\n"
        # One runs and one waits for room.
        assert slurm.wait_until(lambda: len(slurm.list_jobs("pending")) == 1)
        client.send_signal(signal.SIGKILL)
        client.wait()
    assert slurm.wait_until(lambda: not slurm.list_jobs(), seconds=60)
    assert list(tmp_path.glob("clusters/*/*.pem")) == []


START = """
from barrow.cli.main import main
main(["cluster", "start", "slurm", "--jobs", "1", "--memory", "900MB"], prog_name="barrow")
"""


def test_jobs_that_stay_are_used_by_another_program_until_they_are_stopped(
    slurm, tmp_path, monkeypatch
):
    monkeypatch.setenv("BARROW_CACHE", str(tmp_path))
    environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(
        [sys.executable, "-c", START],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as holder:
        assert " is up: <Cluster tls://127.0.0.1:" in holder.stdout.readline()
        (file,) = tmp_path.glob("open-clusters/*/scheduler.json")
        with barrow.cluster(str(file)) as cluster:
            assert cluster.client.submit(os.getenv, "SLURM_JOB_ID").result(timeout=60)
        holder.send_signal(signal.SIGTERM)
        assert holder.wait(timeout=60) == 0
    assert slurm.list_jobs() == []
    assert list(tmp_path.glob("open-clusters/*")) == []


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_jobs": 3}, TypeError, "no argument 'n_jobs'"),
        ({"jobs": 0}, InputError, "jobs=0 is not a count"),
        ({"workers": 2}, InputError, "write jobs=2"),
        ({"walltime": "soon"}, InputError, "walltime='soon' is no duration"),
        ({"setup": "module load x"}, InputError, "list of single lines"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        barrow.cluster("slurm", **options)


def test_what_only_slurm_understands_is_refused_elsewhere():
    with pytest.raises(InputError, match="partition= can only be asked of SLURM"):
        barrow.cluster("local", partition="8GB")
