"""Run ill programs again and again: is each illness named, and nothing else claimed?

``python -m soak.illnesses [N] [NAME]`` repeats each N times (10), with its cure beside it, and
prints a table: how often it was named, wrong claims, seconds and memory before and after.
"""

import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import barrow
from soak.sick import SICK, Sick, Work


class Result(NamedTuple):
    """What came of one run."""

    findings: tuple[barrow.Finding, ...]
    seconds: float
    peak_bytes: int


@contextmanager
def open_client(options: Mapping[str, Any], environment: Mapping[str, str] = {}) -> Iterator[Any]:
    """Start a cluster as a user would, on loopback only."""
    from distributed import Client, LocalCluster

    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        with (
            LocalCluster(
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                silence_logs=logging.CRITICAL,
                **options,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def observe(work: Work, client: Any, folder: Path) -> Result:
    """Let a program run while it is watched, and diagnose it."""
    began = time.perf_counter()
    with barrow.watch(folder) as run:
        work(client)
        seconds = time.perf_counter() - began
    return Result(barrow.diagnose(folder), seconds, int(run.record.facts["peak_bytes"]))


def is_named(sick: Sick, result: Result) -> bool:
    """Tell whether the illness was found, with its name."""
    return any(f.code == sick.code and sick.names in f.claim for f in result.findings)


def list_wrong(sick: Sick, result: Result) -> list[str]:
    """Return claims of weight that are not true."""
    right = {sick.code, *sick.also}
    return [f"{f.code}: {f.claim}" for f in result.findings if f.is_trouble and f.code not in right]


def main(repeats: int, only: str) -> None:
    """Print the table."""
    for name, sick in SICK.items():
        if only and only not in name and only != sick.code:
            continue
        ill, cured, wrong = [], [], []
        for _ in range(repeats):
            folder = Path(tempfile.mkdtemp(prefix="barrow-soak-"))
            with open_client(sick.cluster, sick.environment) as client:
                ill.append(observe(sick.work, client, folder / "ill"))
            wrong += list_wrong(sick, ill[-1])
            if sick.cured is not None:
                options = sick.cured_cluster or sick.cluster
                with open_client(options, sick.environment) as client:
                    cured.append(observe(sick.cured, client, folder / "cured"))
        named = sum(is_named(sick, result) for result in ill)
        print(
            f"{sick.code} {name}: named {named} of {repeats}, wrong {len(wrong)}; ill "
            f"{_describe(ill)}; cured {_describe(cured) if cured else '-'}",
            flush=True,
        )
        for text in dict.fromkeys(wrong):
            print(f"    wrong: {text}")
        if named < repeats:
            print(f"    found: {[(f.code, f.claim) for f in ill[-1].findings]}")


def _describe(results: list[Result]) -> str:
    seconds = sorted(result.seconds for result in results)[len(results) // 2]
    peak = sorted(result.peak_bytes for result in results)[len(results) // 2]
    return f"{seconds:.1f} s, {peak / 1e6:.0f} MB"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10, sys.argv[2] if len(sys.argv) > 2 else "")
