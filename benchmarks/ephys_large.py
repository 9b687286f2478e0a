"""Does a recording larger than the memory allowed run within it, with the same numbers?

Eight gigabytes of trials in a container, `memory="1GB"`: power spectra into a store, and a
band-pass. The peak is that of all processes together, sampled from outside; what the
interpreter with its libraries takes is measured beside it. Pages of a mapped file belong to
the system, which takes them back when it needs them, so they are counted apart.

    python benchmarks/ephys_large.py [--gigabytes 8] [--memory 1GB]
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from measure import describe_machine, write_json

from barrow.units import parse_bytes

QUESTION = "Does a recording larger than the memory allowed run within it, with the same numbers?"
RATE, SAMPLES, CHANNELS, FOILIM = 1000.0, 10_000, 100, [1, 100]
TRIAL_BYTES = SAMPLES * CHANNELS * 4


def make_recording(path: Path, n_trials: int) -> None:
    """Write a container trial by trial, each with a random stream of its own."""
    import h5py
    import numpy as np

    from barrow import ephys

    small = np.zeros((1, SAMPLES, CHANNELS), "f4")
    file = ephys.AnalogData(small, RATE).save(path)
    stops = (np.arange(n_trials) + 1.0) * SAMPLES
    table = np.column_stack([stops - SAMPLES, stops, np.zeros(n_trials)])
    with h5py.File(file, "w") as made:
        values = made.create_dataset("data", (n_trials * SAMPLES, CHANNELS), "f4")
        for number in range(n_trials):
            rng = np.random.default_rng([7, number])
            trial = rng.standard_normal((SAMPLES, CHANNELS), dtype=np.float32)
            values[number * SAMPLES : (number + 1) * SAMPLES] = trial
        made["trialdefinition"] = table


def run_inside(what: str, source: str, target: str, memory: str) -> None:
    """Run a case in this process; nothing at all for the interpreter alone."""
    from barrow import ephys

    data = ephys.load(source)
    if what == "spectra":
        ephys.freqanalysis(data, foilim=FOILIM, to=target, memory=memory, quiet=True)
    elif what == "filter":
        some = data.selectdata(channel=range(10))
        ephys.preprocessing(
            some, filter_type="bp", freq=[20, 40], to=target, memory=memory, quiet=True
        )
    else:
        few = data.selectdata(trials=[0])
        ephys.freqanalysis(few, foilim=FOILIM, quiet=True)
        ephys.preprocessing(few, filter_type="bp", freq=[20, 40], quiet=True)


def count_wrong(what: str, source: str, target: str, trials: range) -> int:
    """Return how many trials of a result differ from plain NumPy and SciPy."""
    import numpy as np
    from scipy import signal

    from barrow import ephys

    data, found, wrong = ephys.load(source), ephys.load(target), 0
    for number in trials:
        trial = data.trials[number].astype(float)
        if what == "spectra":
            hann = signal.windows.hann(SAMPLES)
            window = hann * np.sqrt(4 / 3 * SAMPLES / hann.sum()) * np.sqrt(2) / SAMPLES
            power = np.abs(np.fft.rfft((trial - trial.mean(axis=0)) * window[:, None], axis=0)) ** 2
            is_same = np.allclose(found.trials[number][0, 0], power[10:1001], rtol=1e-3, atol=1e-9)
        else:
            sos = signal.butter(4, [20, 40], "bp", fs=RATE, output="sos")
            band = signal.sosfiltfilt(sos, trial[:, :10].astype("f4"), axis=0).astype("f4")
            is_same = np.array_equal(found.trials[number], band)
        wrong += not is_same
    return wrong


def watch(command: list[str]) -> dict[str, float]:
    """Run a command, and return its time and the highest memory of all its processes."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peak = {"own_bytes": 0, "resident_bytes": 0}
    ended = threading.Event()
    sampler = threading.Thread(target=_sample, args=(process.pid, peak, ended))
    sampler.start()
    output, _ = process.communicate(timeout=3600)
    ended.set()
    sampler.join()
    if process.returncode:
        raise RuntimeError(output[-3000:])
    return {"wall_seconds": time.perf_counter() - began, **peak}


def _sample(pid: int, peak: dict[str, int], ended: threading.Event) -> None:
    root = psutil.Process(pid)
    while not ended.wait(0.02):
        total = {"own_bytes": 0, "resident_bytes": 0}
        try:
            family = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in family:
            try:
                text = Path(f"/proc/{process.pid}/status").read_text()
            except (OSError, psutil.NoSuchProcess):
                continue
            facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
            sizes = {key: int(facts[key].split()[0]) * 1024 for key in _KINDS if key in facts}
            total["resident_bytes"] += sum(sizes.values())
            total["own_bytes"] += sizes.get("RssAnon", 0) + sizes.get("RssShmem", 0)
        for key, value in total.items():
            peak[key] = max(peak[key], value)


_KINDS = ("RssAnon", "RssShmem", "RssFile")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inside", nargs=4, metavar=("WHAT", "SOURCE", "TARGET", "MEMORY"))
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--folder", help="Where there is room for it all.")
    given = parser.parse_args()
    if given.inside:
        run_inside(*given.inside)
        return
    n_trials = int(given.gigabytes * 1e9 / TRIAL_BYTES)
    folder = Path(tempfile.mkdtemp(prefix="barrow-large-", dir=given.folder))
    try:
        if shutil.disk_usage(folder).free < 2 * n_trials * TRIAL_BYTES:
            print(f"{folder} has no room for a recording of {given.gigabytes:g} GB.")
            return
        source = folder / "rec.spy"
        make_recording(source, n_trials)
        runs = {}
        for what in ("nothing", "spectra", "filter"):
            target = str(folder / f"{what}.zarr")
            inside = ["--inside", what, str(source), target, given.memory]
            runs[what] = watch([sys.executable, __file__, *inside])
            if what != "nothing":
                some = range(0, n_trials, max(1, n_trials // 20))
                runs[what]["wrong"] = count_wrong(what, str(source), target, some)
                allowed = parse_bytes(given.memory) + runs["nothing"]["own_bytes"]
                runs[what] |= {
                    "allowed_bytes": allowed,
                    "is_within": runs[what]["own_bytes"] <= allowed,
                }
                shutil.rmtree(target)
            print(what, json.dumps(runs[what]), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    content = {"question": QUESTION, **describe_machine(), "gigabytes": given.gigabytes}
    print(f"Written to {write_json('ephys-large', {**content, 'runs': runs})}")


if __name__ == "__main__":
    main()
