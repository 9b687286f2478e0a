"""Run all benchmarks, and write the page of their results.

    python -m benchmarks               # hours: into benchmarks/results and docs/benchmarks.md
    python -m benchmarks --quick       # ten minutes, into build/benchmarks
    python -m benchmarks ephys safety  # only these, then the page

Peers are installed into environments of their own, in build/peers, when they are first needed. A
peer that cannot be installed here is left out, and said to be; so is a benchmark that fails.
"""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.page import PAGE, RESULTS, ROOT, write_page
from benchmarks.peers.environments import make_environment

QUICK = ROOT / "build" / "benchmarks"


@dataclass(frozen=True)
class Benchmark:
    """One script, how it is run quickly, and the peer it wants."""

    script: str
    quick: tuple[str, ...] | None = None
    """Options of the quick set; None if it is not part of that."""
    full: tuple[str, ...] = ()
    """Those of the full one."""
    peer: str = ""
    told_by: str = ""
    """How the script learns of the peer: a variable of the environment, or an option."""
    needs_peer: bool = False
    """Whether nothing can be measured without it."""


BENCHMARKS = (
    Benchmark("starting", quick=("--repeats", "2")),
    Benchmark("safety", quick=("--repeats", "2")),
    Benchmark("what_if", quick=("--scale", "0.1", "--repeats", "1")),
    Benchmark(
        "miniscope",
        ("--quick",),
        ("--cuts",),
        peer="minian",
        told_by="MINISIM_PYTHON",
        needs_peer=True,
    ),
    Benchmark("newcomer"),
    Benchmark("raster", quick=("--repeats", "1")),
    Benchmark(
        "ephys",
        ("--repeats", "1", "--cases", "bandpass"),
        peer="syncopy",
        told_by="SYNCOPY_PYTHON",
    ),
    Benchmark("ephys_large"),
    Benchmark("collider", ("--quick",), peer="coffea", told_by="COFFEA_PYTHON"),
    Benchmark("spatial", ("--quick",), peer="spatialdata", told_by="--spatialdata"),
    Benchmark("watching", ("--only", "recorder"), ("--tasks", "5000")),
    Benchmark("regret", quick=("--only", "FFT")),
    Benchmark("miniscope_large"),
)


def run(benchmark: Benchmark, is_quick: bool, results: Path) -> bool:
    """Run one script, with its peer if that is there; return whether it went well."""
    options = list((benchmark.quick or ()) if is_quick else benchmark.full)
    environment = {**os.environ, "BENCHMARK_RESULTS": str(results)}
    # The quick set takes peers that are there, and installs none.
    folder = make_environment(benchmark.peer, is_wanted=not is_quick) if benchmark.peer else None
    if folder is not None and benchmark.told_by.startswith("--"):
        options += [benchmark.told_by, str(folder)]
    elif folder is not None:
        environment.setdefault(benchmark.told_by, str(folder / "bin" / "python"))
    print(f"== {benchmark.script}", flush=True)
    if benchmark.needs_peer and folder is None and benchmark.told_by not in environment:
        return True
    script = ROOT / "benchmarks" / f"{benchmark.script}.py"
    return not subprocess.run([sys.executable, script, *options], env=environment).returncode


def main() -> None:
    """Run what was asked for, and write the page."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    names = [benchmark.script for benchmark in BENCHMARKS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.names) - set(names):
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(names)}")
    chosen = [
        benchmark
        for benchmark in BENCHMARKS
        if benchmark.script in (options.names or names)
        and not (options.quick and benchmark.quick is None)
    ]
    results, page = (QUICK, QUICK / "page.md") if options.quick else (RESULTS, PAGE)
    results.mkdir(parents=True, exist_ok=True)
    failed = []
    for one in chosen:
        began = time.monotonic()
        if not run(one, options.quick, results):
            failed.append(one.script)
        # After each of them: what was measured stands there, however it ends.
        place = write_page(results, page)
        print(f"== {one.script}: {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
    print("written to", place)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
