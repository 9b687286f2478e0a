"""Does a run on SLURM survive what a busy cluster does to jobs, and leave nothing behind?

A real SLURM is started on this machine. Each case is run without anybody's help, and
afterwards the queue, the processes, the ports and the temporary files are looked at.

    python soak/slurm.py [--cycles 20]
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

import barrow
from barrow.errors import ClusterError

SCRIPTS = Path(__file__).parents[1] / "tests" / "slurm"
SOURCE = Path(barrow.__file__).parents[1]
MOST_SECONDS = 240.0


def slow_negative(block):
    time.sleep(0.5)
    return -block


def take_too_much(block):
    """Take memory that no limit of the process sees, as native code can."""
    import mmap

    if "SLURM_JOB_ID" in os.environ and block.size > 60_000:
        held = mmap.mmap(-1, 2 * 10**9)
        for _ in range(2000):
            held.write(b"1" * 10**6)
        time.sleep(5)
    return -block


def ask(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout.split()


def submit(partition, memory):
    """Submit a job that takes memory and sleeps; return its number."""
    options = [f"--partition={partition}", f"--mem={memory}", "--output=/dev/null"]
    done = subprocess.run(
        ["sbatch", "--parsable", *options],
        input="#!/bin/sh\nexec sleep 300\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def list_jobs(state="pending,running,completing"):
    return ask("squeue", "--noheader", f"--states={state}", "--format=%A")


def wait_until(condition, seconds=MOST_SECONDS):
    last = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > last:
            raise TimeoutError(f"waited {seconds:.0f} s in vain")
        time.sleep(0.1)


def data(rows):
    return np.arange(rows * 50_000.0).reshape(rows, 50_000)


def check(out, rows):
    assert np.array_equal(out[:], -data(rows)), "the result is wrong"


@contextmanager
def meanwhile(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    yield
    thread.join(60)


def run_map(cluster, rows=60, function=slow_negative):
    plan = barrow.plan(function, data(rows), cluster=cluster, quiet=True)
    plan = plan.with_chunks(dim_0=1, dim_1=50_000)
    check(barrow.run(plan, cluster=cluster, quiet=True).result, rows)


def open_jobs(**options):
    return barrow.cluster("slurm", **{"memory": "1GB", "quiet": True, "timeout": 60, **options})


def case_room():
    """Jobs wait for room, the first one is enough to begin, the others join."""
    with open_jobs(partition="8GB", memory="3GB", jobs=3) as cluster:
        wait_until(lambda: len(list_jobs("pending")) == 1)
        run_map(cluster, 20)


def case_one_cancelled():
    """A job is cancelled in the midst of a run every few seconds."""
    with open_jobs(jobs=3) as cluster:
        cluster.wait(3)
        is_over = threading.Event()

        def disturb():
            for _ in range(4):
                if is_over.wait(4):
                    return
                subprocess.run(["scancel", *list_jobs("running")[:1]], check=False)

        with meanwhile(disturb):
            run_map(cluster, 90)
            is_over.set()
        assert cluster.losses, "nothing was cancelled"


def case_all_cancelled():
    """All jobs are cancelled at once, twice."""
    with open_jobs(jobs=2) as cluster:
        cluster.wait(2)

        def disturb():
            for _ in range(2):
                time.sleep(6)
                subprocess.run(["scancel", *list_jobs()], check=False)

        with meanwhile(disturb):
            run_map(cluster, 60)


def case_cancelled_for_ever():
    """Every job is cancelled as soon as it runs: one error, and soon."""
    with open_jobs(jobs=1) as cluster:
        is_over = threading.Event()

        def disturb():
            while not is_over.wait(0.5):
                if jobs := list_jobs("running"):
                    subprocess.run(["scancel", *jobs], check=False)

        with meanwhile(disturb):
            try:
                run_map(cluster, 400)
            except ClusterError as error:
                print("   ", str(error).replace("\n", "\n    "))
            else:
                raise AssertionError("there was no error")
            finally:
                is_over.set()


def case_driven_out():
    """Urgent jobs of others drive ours out in the midst of a run, twice."""
    with open_jobs(partition="8GB", memory="3GB", jobs=2) as cluster:
        cluster.wait(2)

        def disturb():
            for _ in range(2):
                time.sleep(5)
                urgent = submit("urgent", "8000M")
                time.sleep(5)
                subprocess.run(["scancel", urgent], check=False)

        with meanwhile(disturb):
            run_map(cluster, 60)
        assert any("make room" in loss for loss in cluster.losses), cluster.losses


def case_node_fails():
    """A node fails in the midst of a run."""
    with open_jobs(partition="pair", memory="5GB", jobs=2) as cluster:
        cluster.wait(2)

        def disturb():
            time.sleep(5)
            ask("scontrol", "update", "NodeName=node3", "State=DOWN", "Reason=tried")

        with meanwhile(disturb):
            run_map(cluster, 60)
        wait_until(lambda: cluster.losses)
        assert "its node failed" in cluster.losses[0], cluster.losses


def case_as_many_as_the_work_can_use():
    """The number of jobs follows the work: many for a long run, one for a short one."""
    with open_jobs(jobs="auto") as cluster:
        most = []

        def look():
            for _ in range(40):
                most.append(len(list_jobs("running")))
                time.sleep(0.5)

        with meanwhile(look):
            run_map(cluster, 120)
        print(f"    jobs at work, every half second: {most}")
        assert max(most) > 2, most


def case_memory():
    """A function takes more than its job may have, unless its chunks are small."""
    with open_jobs(jobs=1) as cluster:
        plan = barrow.plan(take_too_much, data(2), cluster=cluster, quiet=True)
        plan = plan.with_chunks(dim_0=2, dim_1=50_000)
        check(barrow.run(plan, cluster=cluster, quiet=True).result, 2)
        wait_until(lambda: cluster.losses)
        print("   ", cluster.losses[0].replace("\n", "\n    "))


def case_walltime():
    """The run takes longer than a job may."""
    with open_jobs(jobs=2, walltime=60) as cluster:
        run_map(cluster, 300)
        assert not cluster.losses, cluster.losses


CLIENT = """
import sys, time, barrow
cluster = barrow.cluster("slurm", partition="8GB", memory="5GB", jobs=2, quiet=True, timeout=60)
print("open", flush=True)
time.sleep(300)
"""


def start_client(ending):
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as client:
        assert client.stdout.readline() == "open\n"
        wait_until(lambda: len(list_jobs()) == 2)
        client.send_signal(ending)
        client.wait(60)
    began = time.monotonic()
    wait_until(lambda: not list_jobs(), seconds=60)
    print(f"    the queue was empty {time.monotonic() - began:.1f} s after the end of the client")
    # The warden stays a little, for jobs that were on their way.
    wait_until(lambda: not find_processes(), seconds=60)


def case_killed_client():
    """The client is killed with SIGKILL while one job runs and one waits."""
    start_client(signal.SIGKILL)


def case_interrupted_client():
    """The client is interrupted with Ctrl-C."""
    start_client(signal.SIGINT)


def find_processes():
    """Return the workers and wardens that there are."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        is_worker = "barrow.sites.worker" in words and str(SOURCE) in _environ_of(process)
        is_warden = "barrow-warden" in words and os.environ["BARROW_CACHE"] in words
        if is_worker or is_warden:
            found.append(process.info["pid"])
    return found


def _environ_of(process):
    try:
        environ = process.environ()
    except psutil.Error:
        return ""
    # Local workers of others on this machine have no job.
    return environ.get("PYTHONPATH", "") if "SLURM_JOB_ID" in environ else ""


def list_left():
    """Return all that a cluster may leave behind."""
    own = psutil.Process()
    wait_until(lambda: not find_processes(), seconds=60)
    return {
        "jobs": list_jobs(),
        "ports": sorted(c.laddr.port for c in own.net_connections() if c.status == "LISTEN"),
        "children": [child.pid for child in own.children()],
        "scratch": sorted(map(str, Path(tempfile.gettempdir()).glob("barrow-scratch-*"))),
        "keys": sorted(map(str, Path(os.environ["BARROW_CACHE"]).glob("clusters/*/*.pem"))),
    }


def run_cycles(count):
    """Start, work, stop, again and again."""
    before, descriptors = list_left(), []
    for _ in range(count):
        with open_jobs(jobs=2) as cluster:
            run_map(cluster, 4)
        descriptors.append(psutil.Process().num_fds())
    after = list_left()
    # What a killed job left may be gone by now: the next one on its node tidies up.
    more = {what: left for what in after if (left := set(after[what]) - set(before[what]))}
    assert not more, f"left behind: {more}"
    print(f"    open files after each cycle: {descriptors}")
    assert descriptors[-1] <= descriptors[min(2, count - 1)] + 5, "open files pile up"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--only", default="", help="a part of the name of the cases to run")
    chosen = parser.parse_args()
    cases = [value for name, value in globals().items() if name.startswith("case_")]
    cases = [case for case in cases if chosen.only in case.__name__]
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    install = ["--install"] if os.getuid() == 0 and shutil.which("apt-get") else []
    failed = 0
    try:
        if subprocess.run([SCRIPTS / "slurm-up", *install, folder], stdout=2).returncode:
            print("SLURM could not be started: nothing was tried.")
            return 1
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
        os.environ["BARROW_CACHE"] = str(folder / "cache")
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")
        Path(folder, "tmp").mkdir()
        for case in [*cases, lambda: run_cycles(chosen.cycles)]:
            words = (case.__doc__ or f"{chosen.cycles} cycles of start, work and stop.").strip()
            print(words, flush=True)
            began = time.monotonic()
            try:
                case()
                left = list_left()
                assert not left["jobs"], f"jobs were left: {left}"
                assert not left["keys"], f"keys were left: {left}"
                print(f"    passed, {time.monotonic() - began:.0f} s", flush=True)
            except Exception as error:
                failed += 1
                print(f"    FAILED: {error!r}", flush=True)
                subprocess.run(["scancel", *list_jobs()], check=False)
    finally:
        subprocess.run([SCRIPTS / "slurm-down", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{failed} failed")
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main())
