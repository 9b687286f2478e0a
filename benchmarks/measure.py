"""Run a command and measure it from outside: wall time, CPU time, memory of all its processes.

Memory is the sum of the resident sizes of the process and all its descendants,
sampled every 10 ms. Pages that several processes share count once for each of
them, so this is an upper bound.

On a virtual machine that hands free memory back to its host, touching a fresh
gigabyte can cost seconds of CPU, which then drown everything else. So the command
is given memory that this process has touched before and frees just ahead of it.
"""

import json
import mmap
import os
import platform
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

# What one benchmark learns must not change the numbers of the next.
os.environ.setdefault("BARROW_HISTORY", "off")

# A quick set must not replace the numbers that are kept.
RESULTS = Path(os.environ.get("BENCHMARK_RESULTS", Path(__file__).parent / "results"))


@dataclass(frozen=True)
class Measurement:
    """What one execution of a command took."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    exit_code: int
    output: str

    @property
    def last_words(self) -> str:
        """The line that tells why it failed, if any does."""
        return (self.output.strip() or "nothing was said").splitlines()[-1][:300]


def measure(command: list[str], timeout_seconds: float = 600, warm_bytes: int = 0) -> Measurement:
    """Run a command to its end, with so much memory made ready for it."""
    ready = [_touched(_SLICE_BYTES) for _ in range(warm_bytes // _SLICE_BYTES)]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    peak = [0]
    ended = threading.Event()
    sampler = threading.Thread(target=_sample, args=(process.pid, peak, ended, ready))
    sampler.start()
    killer = threading.Timer(timeout_seconds, process.kill)
    killer.start()
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    killer.cancel()
    ended.set()
    sampler.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Measurement(
        wall_seconds=wall,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_bytes=peak[0],
        exit_code=process.returncode,
        output=output[-2000:],
    )


_SLICE_BYTES = 2**27
# Freed memory goes back to the host within a second or two, so not too far ahead.
_AHEAD_BYTES = 7 * 2**27


def _touched(size: int) -> mmap.mmap:
    pages = mmap.mmap(-1, size)
    for offset in range(0, size, mmap.PAGESIZE):
        pages[offset] = 1
    return pages


def _sample(pid: int, peak: list[int], ended: threading.Event, ready: list[mmap.mmap]) -> None:
    root = psutil.Process(pid)
    freed = 0
    while not ended.wait(0.01):
        # Shared pages that nobody has mapped show up in no process.
        while ready and freed < peak[0] + _shared_bytes() + _AHEAD_BYTES:
            ready.pop().close()
            freed += _SLICE_BYTES
        total = 0
        try:
            family = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in family:
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        peak[0] = max(peak[0], total)


def _shared_bytes() -> int:
    with open("/proc/meminfo") as file:
        found = next(line for line in file if line.startswith("Shmem:"))
    return int(found.split()[1]) * 1024


def save(name: str, question: str, rows: dict[str, list[Measurement]], **facts: object) -> Path:
    """Keep the results of a benchmark of whole commands."""
    runs = {row: [_without_output(m) for m in found] for row, found in rows.items()}
    return write_json(name, {"question": question, **describe_machine(), **facts, "runs": runs})


def describe_machine() -> dict[str, object]:
    """Return date, machine and versions: all that a result depends on."""
    packages = ("barrow", "numpy", "dask", "distributed", "zarr", "xarray", "scipy")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "platform": platform.platform(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "load": os.getloadavg(),
        },
        "versions": {"python": sys.version.split()[0], **{p: version(p) for p in packages}},
    }


def write_json(name: str, content: dict[str, object], folder: Path = RESULTS) -> Path:
    """Write a result into a folder of results."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def _without_output(measurement: Measurement) -> dict[str, object]:
    kept = asdict(measurement)
    if not measurement.exit_code:
        del kept["output"]
    return kept


def format_table(rows: dict[str, list[Measurement]]) -> str:
    """Return the least and the middle of the repeats of each row."""
    lines = [f"{'':34} {'wall s':>13} {'CPU s':>13} {'peak GiB':>9}"]
    for row, found in rows.items():
        if any(m.exit_code for m in found):
            lines.append(f"{row:34} failed: {found[0].last_words[:60]}")
            continue
        wall = sorted(m.wall_seconds for m in found)
        cpu = sorted(m.cpu_seconds for m in found)
        peak = max(m.peak_bytes for m in found) / 2**30
        middle = len(found) // 2
        lines.append(
            f"{row:34} {wall[0]:5.1f} /{wall[middle]:6.1f} {cpu[0]:5.1f} /{cpu[middle]:6.1f} "
            f"{peak:9.2f}"
        )
    return "\n".join(lines)
