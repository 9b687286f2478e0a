"""Does ``barrow watch`` keep a whole record of programs that know nothing of barrow?

Real packages in environments of their own, in which barrow is not installed: coffea, SpatialData.
A scheduler and workers that were started by Dask's own commands before the program. Jobs of
dask-jobqueue (on this machine). Prints a line for each; ends with 1 if a record is not whole.

python benchmarks/peers/watch_peers.py [--place FOLDER] [NAME ...]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from contextlib import ExitStack, contextmanager
from pathlib import Path

import barrow

HERE = Path(__file__).parent / "watched"
BARROW = [sys.executable, "-P", "-c", "from barrow.cli.main import main; main(prog_name='barrow')"]
PATIENCE_SECONDS = 60


def make_environment(place: Path, *packages: str) -> str:
    """Return the interpreter of an environment with some packages, made once."""
    python = place / "bin" / "python"
    if not (place / "made").exists():
        venv.create(place, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
        (place / "made").touch()
    return str(python)


@contextmanager
def started_cluster(folder: Path):
    """Start a scheduler and two workers by Dask's own commands; yield the file that names them."""
    address = folder / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    commands = [
        ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
        *[["worker", "--nthreads", "1", "--no-dashboard", "--memory-limit", "2GB"]] * 2,
    ]
    with ExitStack() as stack:
        for command in commands:
            process = subprocess.Popen([*dask, *command, "--scheduler-file", str(address)], **quiet)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not address.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
        yield address


def watch(folder: Path, python: str, script: str, *arguments: str) -> dict[str, object]:
    """Watch a program and return what its record holds."""
    command = [*BARROW, "watch", "--folder", str(folder / "watched"), "--python", python]
    done = subprocess.run([*command, str(HERE / script), *arguments], stdout=subprocess.DEVNULL)
    record = barrow.record(folder / "watched")
    processes, metrics = record.table("process"), record.metrics
    workers = processes[processes["kind"] == "worker"]
    sampled = set(record.table("sample")["process"])
    report = json.loads((folder / "watched" / "report.json").read_text())
    return {
        "exit_status": done.returncode,
        "status": record.status,
        "tasks": metrics["tasks"],
        "tasks_done": metrics["tasks_done"],
        "workers": len(workers),
        "workers_with_memory": sum(name in sampled for name in workers["name"]),
        "peak_bytes": metrics["peak_bytes"],
        "times_add_up": abs(
            metrics["held_seconds"] / (metrics["slots"] or 1) / metrics["wall_seconds"] - 1
        ),
        "watching_failed": len(record.query("select * from event where kind = 'watching'")),
        "page_bytes": (folder / "watched" / "report.html").stat().st_size,
        "headline": report["headline"],
        "versions": record.facts["versions"],
    }


def run_peer(name: str, place: Path, folder: Path) -> dict[str, object]:
    if name == "coffea":
        python = make_environment(place / name, "coffea", "distributed")
        return watch(folder, python, "run_coffea.py", str(folder))
    if name == "spatialdata":
        python = make_environment(place / name, "spatialdata")
        return watch(folder, python, "run_spatialdata.py", str(folder))
    if name == "commands":
        with started_cluster(folder) as address:
            return watch(folder, sys.executable, "run_attached.py", str(address))
    return watch(folder, sys.executable, "run_jobqueue.py", str(folder))


def is_whole(found: dict[str, object]) -> bool:
    return (
        found["exit_status"] == 0
        and found["status"] == "done"
        and 0 < found["tasks"] == found["tasks_done"]
        and 0 < found["workers"] == found["workers_with_memory"]
        and found["watching_failed"] == 0
        and found["times_add_up"] < 0.02
    )


def main() -> int:
    names = ("coffea", "spatialdata", "commands", "jobqueue")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()) / "barrow-peers")
    parser.add_argument("names", nargs="*", default=names, metavar="NAME", help=", ".join(names))
    options = parser.parse_args()
    is_good = True
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            found = run_peer(name, options.place, Path(folder))
        is_good &= is_whole(found)
        print(f"{name}: {'whole' if is_whole(found) else 'NOT WHOLE'}: {found['headline']}")
        print(f"  {json.dumps({k: v for k, v in found.items() if k != 'headline'})}", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
