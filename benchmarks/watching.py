"""What does watching cost, and is the memory it reports true?

Memory: programs run by ``barrow watch``, and beside them another program that sums the resident
sizes of their processes every 10 ms. Cost: the same program alone and watched, in turns: thousands
of tasks of 20 ms, as many of 200 µs, and the same without a cluster. The recorder: a million
rows, as fast as they can be sent.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from measure import RESULTS, describe_machine, write_json

BARROW = [sys.executable, "-P", "-c", "from barrow.cli.main import main; main(prog_name='barrow')"]

CLUSTER = """
import sys, time, dask
from dask.distributed import Client, LocalCluster, wait

def spin(i, seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

if __name__ == "__main__":
    count, seconds = int(sys.argv[1]), float(sys.argv[2])
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        client.gather(client.map(spin, range(20), seconds=0.001))
        began = time.perf_counter()
        wait(client.map(spin, range(100, 100 + count), seconds=seconds))
        print(time.perf_counter() - began)
"""
THREADS = """
import sys, time, dask

def spin(i, seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

count, seconds = int(sys.argv[1]), float(sys.argv[2])
graph = {("spin", i): (spin, i, seconds) for i in range(count)}
from dask.threaded import get
began = time.perf_counter()
get(graph, list(graph), num_workers=2)
print(time.perf_counter() - began)
"""
MEMORY = sorted((Path(__file__).parent / "memory").glob("*.py"))
"""Ten programs, each with its own way to use memory."""


def watched(script, folder, *arguments):
    return [*BARROW, "watch", "--folder", str(folder), str(script), *map(str, arguments)]


def sample_outside(pid: int) -> None:
    """Print the most that the children of a process held together, every 10 ms."""
    root, peak = psutil.Process(pid), 0
    try:
        while root.is_running() and root.status() != psutil.STATUS_ZOMBIE:
            total = 0
            for process in root.children(recursive=True):
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            if total > peak:
                peak = total
            time.sleep(0.01)
    except psutil.Error:
        pass
    print(peak)


def measure_memory(folder: Path) -> dict[str, dict[str, float]]:
    found = {}
    for script in MEMORY:
        place = folder / script.stem
        program = subprocess.Popen(
            watched(script, place), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        outside = subprocess.Popen(
            [sys.executable, __file__, "--outside", str(program.pid)], stdout=subprocess.PIPE
        )
        program.wait()
        peak = int(outside.communicate()[0])
        said = json.loads((place / "metrics.json").read_text())["peak_bytes"]
        found[script.stem] = {"outside_bytes": peak, "reported_bytes": said, "ratio": said / peak}
        print(
            f"{script.stem.replace('_', ' ')}: {peak / 1e6:.0f} MB outside, "
            f"{said / 1e6:.0f} MB reported, {said / peak:.3f}",
            flush=True,
        )
    return found


def measure_cost(folder: Path, text: str, count: int, seconds: float, repeats: int) -> dict:
    script = folder / "script.py"
    script.write_text(text)
    walls: dict[str, list[float]] = {"alone": [], "watched": []}
    cpus: dict[str, list[float]] = {"alone": [], "watched": []}
    for number in range(repeats):
        for kind in walls:
            place = Path(tempfile.mkdtemp(dir=folder))
            command = [sys.executable, str(script), str(count), str(seconds)]
            if kind == "watched":
                command = watched(script, place / str(number), count, seconds)
            before = _cpu()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            cpus[kind].append(_cpu() - before)
            walls[kind].append(float(done.stdout.split()[-1]))
    best = {kind: min(values) for kind, values in walls.items()}
    extra = best["watched"] - best["alone"]
    used = {kind: min(values) for kind, values in cpus.items()}
    return {
        "tasks": count,
        "task_seconds": seconds,
        "wall_seconds": walls,
        "cpu_seconds": cpus,
        "overhead": extra / best["alone"],
        "overhead_of_medians": statistics.median(walls["watched"])
        / statistics.median(walls["alone"])
        - 1,
        "microseconds_per_task": extra / count * 1e6,
        "cpu_microseconds_per_task": (used["watched"] - used["alone"]) / count * 1e6,
    }


def measure_recorder(folder: Path, rows: int) -> dict[str, float]:
    """Return what a million tasks add to the memory of the recorder and of who sends them."""
    import barrow
    from barrow.recording import joining

    with barrow.watch(folder / "million") as run:
        sender = joining.current().sender
        process = psutil.Process()
        recorder = next(p for p in process.children() if "recorder" in " ".join(p.cmdline()))
        before, peaks, over = process.memory_info().rss, [0, 0], threading.Event()

        def sample() -> None:
            while not over.wait(0.02):
                peaks[0] = max(peaks[0], process.memory_info().rss - before)
                peaks[1] = max(peaks[1], recorder.memory_info().rss)

        thread = threading.Thread(target=sample)
        thread.start()
        began = time.perf_counter()
        for number in range(rows):
            sender.put(
                *("dask_task", None, "step", f"('step-0123456789abcdef', {number})", None),
                *("host/1", 1, 0.0, f"('before-0123456789abcdef', {number})", 1, 0.0, 1.0, 1.0),
                *(0.0, 0.0, None, 0, 8, None, 1, "done", None),
            )
            if number % 1000 == 0:
                time.sleep(0.005)  # a scheduler is not so quick
        sender.flush()
        spent = time.perf_counter() - began
        over.set()
        thread.join()
    kept = int(run.record.query("select count(*) as n from dask_task")["n"][0])
    size = (folder / "million" / "record.sqlite").stat().st_size
    return {
        "rows": rows,
        "kept": kept,
        "seconds": spent,
        "sender_bytes": peaks[0],
        "recorder_bytes": peaks[1],
        "file_bytes": size,
    }


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["memory", "cost", "recorder"])
    parser.add_argument("--outside", type=int, help="a process to look at; used by itself")
    options = parser.parse_args()
    if options.outside:
        sample_outside(options.outside)
        return
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if options.only in (None, "recorder"):
            found["recorder"] = measure_recorder(folder, 1_000_000)
            print(found["recorder"])
        if options.only in (None, "memory"):
            found["memory"] = measure_memory(folder)
        if options.only in (None, "cost"):
            for name, text, seconds in (
                ("20 ms on a cluster", CLUSTER, 0.02),
                ("200 µs on a cluster", CLUSTER, 0.0002),
                ("200 µs in threads", THREADS, 0.0002),
            ):
                row = measure_cost(folder, text, options.tasks, seconds, options.repeats)
                found[name] = row
                print(
                    f"{name}: {row['overhead']:+.1%} of wall, "
                    f"{row['microseconds_per_task']:.0f} µs per task, CPU "
                    f"{row['cpu_microseconds_per_task']:.0f} µs per task"
                )
    path = RESULTS / "watching.json"
    before = json.loads(path.read_text()) if options.only and path.exists() else {}
    write_json("watching", {**before, "question": __doc__, **describe_machine(), **found})


if __name__ == "__main__":
    os.environ.setdefault("BARROW_HISTORY", "off")
    main()
