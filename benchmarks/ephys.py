"""Is barrow.ephys faster than Syncopy, and how far from plain NumPy?

The same files in, the same kind of files out: containers with HDF5. Four ways: Syncopy
sequential, Syncopy with two workers, plain NumPy/SciPy on one thread, barrow. What is
measured is opening, computing and saving, without starting Python or workers and without
imports. For the rows of Syncopy, SYNCOPY_PYTHON names the Python of an environment that has
it (see peers/syncopy_numbers.py):

    SYNCOPY_PYTHON=/path/to/python python benchmarks/ephys.py

The JSON has the runs, and for each case what was wished for and whether it came true.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import describe_machine, write_json

QUESTION = "Is barrow.ephys faster than Syncopy, and how far from plain NumPy?"
CASES = {
    "spectra of 5000 trials": {
        "make": {"nTrials": 5000, "nSamples": 1000, "nChannels": 32},
        "call": "freqanalysis",
        "kwargs": {},
        "wishes": {"cpu_to_plain": 1.3, "speed_to_syncopy": 4.0},
    },
    "bandpass": {
        "make": {"nTrials": 500, "nSamples": 10_000, "nChannels": 10},
        "call": "preprocessing",
        "kwargs": {"filter_class": "but", "filter_type": "bp", "freq": [20, 40]},
        "wishes": {"speed_to_syncopy": 1.5},
    },
    "19 tapers, 200 channels": {
        "make": {"nTrials": 100, "nSamples": 1000, "nChannels": 200},
        "call": "freqanalysis",
        "kwargs": {"tapsmofrq": 10},
        "wishes": {"speed_to_syncopy": 1.5},
    },
    "wavelets": {
        "make": {"nTrials": 20, "nSamples": 2000, "nChannels": 16},
        "call": "freqanalysis",
        "kwargs": {"method": "wavelet", "foi": list(range(5, 105, 5))},
    },
    "2 trials, 2 channels": {
        "make": {"nTrials": 2, "nSamples": 1000, "nChannels": 2},
        "call": "freqanalysis",
        "kwargs": {},
        "wishes": {"wall_seconds": 0.05},
    },
}
HERE = Path(__file__).parent


def run_plain(case: dict, source: str, target: str) -> None:
    """Read, compute trial by trial and write, with no library for it."""
    import h5py
    import numpy as np
    from scipy import fft, signal

    name = Path(source).stem
    with h5py.File(f"{source}/{name}.analog", "r") as given, h5py.File(target, "w") as made:
        values, rate = given["data"], 1000.0
        table = given["trialdefinition"][()].astype(int)
        length, count = int(table[0, 1] - table[0, 0]), len(table)
        channels, bins = values.shape[1], length // 2 + 1
        if case["call"] == "preprocessing":
            sos = signal.butter(4, case["kwargs"]["freq"], "bp", fs=rate, output="sos")
            out = made.create_dataset("data", values.shape, "f4")
            for start, stop, _ in table:
                out[start:stop] = signal.sosfiltfilt(sos, values[start:stop], axis=0)
            return
        if "foi" in case["kwargs"]:
            return
        if "tapsmofrq" in case["kwargs"]:
            windows = signal.windows.dpss(length, 10.0, 19) * np.sqrt(length)
        else:
            hann = signal.windows.hann(length)
            windows = (hann * np.sqrt(4 / 3) * np.sqrt(length / hann.sum()))[None]
        windows = (windows * np.sqrt(2) / length).astype("f4")
        out = made.create_dataset("data", (count, 1, bins, channels), "f4")
        for number, (start, stop, _) in enumerate(table):
            trial = values[start:stop]
            trial = trial - trial.mean(axis=0)
            power = 0
            for window in windows:
                spectrum = fft.rfft(trial * window[:, None], axis=0)
                power = power + (spectrum.real**2 + spectrum.imag**2)
            out[number, 0] = power / len(windows)


def run_barrow(case: dict, source: str, target: str) -> None:
    """The same with barrow: opened, computed as it decides, saved."""
    from barrow import ephys

    data = ephys.load(source)
    found = getattr(ephys, case["call"])(data, quiet=True, **case["kwargs"])
    found.save(container=target)


def cpu_seconds() -> float:
    """Return what this process and its children have used."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)


def run_one(way: str, case: dict, source: str, target: str) -> None:
    """Run one way in this process, and print what it took."""
    import h5py  # noqa: F401 - imports are not measured
    import scipy.fft
    import scipy.signal  # noqa: F401

    if way == "barrow":
        import numba  # noqa: F401

        from barrow import ephys  # noqa: F401
    began, cpu = time.perf_counter(), cpu_seconds()
    {"plain": run_plain, "barrow": run_barrow}[way](case, source, target)
    took = {"wall": time.perf_counter() - began, "cpu": cpu_seconds() - cpu}
    print("TOOK " + json.dumps(took))


def command_for(way: str, case: dict, source: str, target: str) -> list[str]:
    """Return the command of a way."""
    if way.startswith("Syncopy"):
        workers = "2" if "workers" in way else "0"
        script = str(HERE / "peers" / "syncopy_run.py")
        python = os.environ["SYNCOPY_PYTHON"]
        return [python, script, json.dumps(case), source, target, workers]
    return [sys.executable, __file__, "--one", way, json.dumps(case), source, target]


def run_case(name: str, ways: list[str], repeats: int, folder: Path) -> dict[str, list[dict]]:
    """Run all ways of a case in turns, and return what each took."""
    from barrow import ephys

    case = {key: CASES[name][key] for key in ("call", "kwargs")}
    made = ephys.synthdata.white_noise(**CASES[name]["make"], seed=1, quiet=True)
    source = str(made.save(folder / "rec", overwrite=True).parent)
    rows: dict[str, list[dict]] = {}
    for _ in range(repeats):
        for way in ways:
            if way == "plain" and "foi" in case["kwargs"]:
                continue
            target = folder / "out.spy"
            rows.setdefault(way, []).append(
                run_command(command_for(way, case, source, str(target)))
            )
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)
    return rows


def judge(name: str, rows: dict[str, list[dict]]) -> dict[str, dict]:
    """Return for each wish what was wished for, what was found, and whether that will do."""

    def best(what: str, *ways: str) -> float:
        return min((took[what] for way in ways for took in rows.get(way, ())), default=float("nan"))

    peers = [way for way in rows if way.startswith("Syncopy")]
    found = {
        "cpu_to_plain": best("cpu", "barrow") / best("cpu", "plain"),
        "speed_to_syncopy": best("wall", *peers) / best("wall", "barrow"),
        "wall_seconds": best("wall", "barrow"),
    }
    return {
        wish: {
            "wished": limit,
            "found": round(found[wish], 3),
            "is_true": found[wish] >= limit if "speed" in wish else found[wish] <= limit,
        }
        for wish, limit in CASES[name].get("wishes", {}).items()
        if found[wish] == found[wish]
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=4, metavar=("WAY", "CASE", "SOURCE", "TARGET"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--ways", nargs="*", help="Only these, for example plain barrow.")
    given = parser.parse_args()
    if given.one:
        way, case, source, target = given.one
        run_one(way, json.loads(case), source, target)
        return
    ways = ["plain", "barrow"]
    if os.environ.get("SYNCOPY_PYTHON"):
        ways = ["Syncopy sequential", "Syncopy 2 workers", *ways]
    runs, wishes = {}, {}
    folder = Path(tempfile.mkdtemp(prefix="barrow-ephys-"))
    try:
        for name in given.cases:
            runs[name] = run_case(name, given.ways or ways, given.repeats, folder)
            wishes[name] = judge(name, runs[name])
            print_case(name, runs[name], wishes[name])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    content = {"question": QUESTION, **describe_machine(), "wishes": wishes, "runs": runs}
    print(f"\nWritten to {write_json('ephys', content)}")


def print_case(name: str, rows: dict[str, list[dict]], wishes: dict[str, dict]) -> None:
    """Print least and most of each way, and what came of the wishes."""
    print(f"\n{name}\n{'':22}{'wall s':>16}{'CPU s':>16}")
    for way, found in rows.items():
        wall, cpu = (sorted(took[what] for took in found) for what in ("wall", "cpu"))
        print(f"{way:22}{wall[0]:8.3f} /{wall[-1]:6.2f}{cpu[0]:9.2f} /{cpu[-1]:6.2f}")
    for wish, said in wishes.items():
        answer = "yes" if said["is_true"] else "NO"
        print(f"  {wish} {said['found']:g}, wished {said['wished']:g}: {answer}", flush=True)


def run_command(command: list[str]) -> dict[str, float]:
    """Run a way in a process of its own, and return what it says it took."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    lines = [line for line in done.stdout.splitlines() if line.startswith("TOOK ")]
    if not lines:
        raise RuntimeError(f"{command[:3]} failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    took: dict[str, float] = json.loads(lines[-1].removeprefix("TOOK "))
    return took


if __name__ == "__main__":
    main()
