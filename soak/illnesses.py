"""Is each illness named in a program that really has it, and nothing claimed that is not so?

``python -m soak.illnesses`` runs every ill program (:mod:`soak.sick`) and every healthy one
(:mod:`soak.healthy`), one after another, each in a process and on a cluster of its own. It prints
a table, keeps it in ``soak/results``, and ends with 1 if an illness was missed or something was
claimed that is wrong. With ``--cures`` each ill program is run beside its cured version instead,
and time and memory of both are compared.
"""

import argparse
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import barrow
from barrow.diagnosing.text import format_findings
from benchmarks.measure import describe_machine, write_json
from soak.sick import ALONE, PAIR, SICK, Sick, Work

RESULTS = Path(__file__).parent / "results"
MOST_SECONDS = 300.0
"""For one program, its cluster included, also on a machine that others use."""


@dataclass(frozen=True)
class Result:
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
    told = list_told(run.record)
    found = (*barrow.diagnose(folder), *told)
    return Result(found, seconds, int(run.record.facts["peak_bytes"]))


def list_told(record: Any) -> list[barrow.Finding]:
    """Return what the doctor said while a program ran."""
    events = record.columns("event")
    told = zip(events["kind"], events["message"], events["details"], strict=True)
    return [
        barrow.Finding(claim=message, **json.loads(details))
        for kind, message, details in told
        if kind == "finding"
    ]


def observe_own(work: Work, folder: Path) -> Result:
    """Let barrow itself do something, and diagnose that."""
    run: Any = work(folder)
    return Result(tuple(run.findings), run.metrics["wall_seconds"], run.metrics["peak_bytes"])


def is_named(sick: Sick, result: Result) -> bool:
    """Tell whether the illness was found, with its name."""
    return any(f.code == sick.code and sick.names in f.claim for f in result.findings)


def list_wrong(sick: Sick | None, result: Result) -> list[str]:
    """Return claims of weight that are not true; of a healthy program none is."""
    right = {sick.code, *sick.also} if sick is not None else set()
    return [f"{f.code}: {f.claim}" for f in result.findings if f.is_trouble and f.code not in right]


@dataclass(frozen=True)
class Case:
    """A program, and where it runs."""

    name: str
    kind: str
    """``ill``, ``cured`` or ``healthy``."""

    def run(self, folder: Path) -> Result:
        """Run it here, on a cluster of its own."""
        if self.kind == "healthy":
            from soak.healthy import HEALTHY

            with open_client(PAIR) as client:
                return observe(HEALTHY[self.name], client, folder)
        sick = SICK[self.name]
        options = sick.cluster
        if self.kind == "cured":
            options = sick.cured_cluster or sick.cluster
        work = sick.work if self.kind == "ill" else sick.cured
        assert work is not None
        if sick.cluster is ALONE:
            return observe_own(work, folder)
        with open_client(options, sick.environment) as client:
            return observe(work, client, folder)

    def run_apart(self) -> Result | None:
        """Run it in a process of its own; None if it does not end."""
        with tempfile.TemporaryDirectory(prefix="barrow-soak-", ignore_cleanup_errors=True) as name:
            answer = Path(name) / "answer.json"
            command = [sys.executable, "-m", "soak.illnesses", "--one", self.kind, self.name]
            program = subprocess.Popen(
                [*command, str(answer)],
                env={**os.environ, "TMPDIR": name},
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                program.wait(MOST_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()
            if not answer.exists():
                return None
            kept = json.loads(answer.read_text())
        kept["findings"] = tuple(barrow.Finding(**finding) for finding in kept["findings"])
        return Result(**kept)


def judge(case: Case, results: Sequence[Result | None]) -> dict[str, Any]:
    """Return one row of the table."""
    sick = SICK[case.name] if case.kind == "ill" else None
    ended = [result for result in results if result is not None]
    named = [sick is None or is_named(sick, result) for result in ended]
    wrong = [text for result in ended for text in list_wrong(sick, result)]
    missed = [result for result, is_found in zip(ended, named, strict=True) if not is_found]
    examples = [f for result in ended for f in result.findings if sick and f.code == sick.code]
    return {
        "code": sick.code if sick is not None else "",
        "name": case.name,
        "runs": len(results),
        "found": sum(named),
        "wrong": wrong,
        "seconds": [round(result.seconds, 2) for result in ended],
        "example": format_findings(examples[:1], ended[0].seconds) if examples else "",
        "broken": len(results) - len(ended),
        "instead": [f"{f.code}: {f.claim}" for f in missed[0].findings] if missed else [],
        "is_good": len(named) == len(results) and all(named) and not wrong,
    }


def show(row: Mapping[str, Any]) -> None:
    """Print one row."""
    spent = f"{median(row['seconds']):6.1f}" if row["seconds"] else "     -"
    verdict = "" if row["is_good"] else "  WRONG"
    print(f"{row['code']:6} {row['name']:26} {row['found']:3} of {row['runs']:<3} {spent}{verdict}")
    for text in dict.fromkeys(row["wrong"]):
        print(f"       wrong: {text}")
    if row["broken"]:
        print(f"       broken off: {row['broken']}")
    if row["found"] + row["broken"] < row["runs"]:
        print(f"       missed; found: {row['instead']}")
    sys.stdout.flush()


def check(cases: Sequence[Case], repeats: int, at_once: int) -> list[dict[str, Any]]:
    """Run programs again and again, and say how often all that was claimed was so."""
    print(f"{'code':6} {'program':26} {'found':>10} {'s':>6}")
    rows = []
    with ThreadPoolExecutor(at_once) as pool:
        runs = {case: [pool.submit(case.run_apart) for _ in range(repeats)] for case in cases}
        for case, results in runs.items():
            rows.append(judge(case, [result.result() for result in results]))
            show(rows[-1])
            keep("illnesses", rows)
    return rows


def compare(names: Sequence[str], repeats: int) -> list[dict[str, Any]]:
    """Run programs before and after they follow the advice."""
    print(f"{'code':6} {'program':26} {'s ill':>7} {'s cured':>8} {'MB ill':>7} {'MB cured':>9}")
    rows = []
    for name in names:
        pairs = [(Case(name, k).run_apart() for k in ("ill", "cured")) for _ in range(repeats)]
        ended = [(ill, cured) for ill, cured in pairs if ill is not None and cured is not None]
        if not ended:
            print(f"{SICK[name].code:6} {name:26} did not end", flush=True)
            continue
        before, after = ([pair[i] for pair in ended] for i in (0, 1))
        still = sum(is_named(SICK[name], result) for result in after)
        row = {
            "code": SICK[name].code,
            "name": name,
            "seconds": [median(r.seconds for r in side) for side in (before, after)],
            "megabytes": [median(r.peak_bytes for r in side) / 1e6 for side in (before, after)],
            "is_good": not still,
        }
        rows.append(row)
        keep("cures", rows)
        seconds, megabytes = row["seconds"], row["megabytes"]
        print(
            f"{row['code']:6} {name:26} {seconds[0]:7.1f} {seconds[1]:8.1f} {megabytes[0]:7.0f} "
            f"{megabytes[1]:9.0f}{'  STILL ILL' if still else ''}",
            flush=True,
        )
    return rows


def main(arguments: Sequence[str]) -> int:
    """Do what was asked for; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m soak.illnesses")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=1, help="programs side by side")
    parser.add_argument("--only", nargs="+", default=(), help="codes, or names of programs")
    parser.add_argument("--cures", action="store_true", help="compare before and after")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        kind, name, answer = given.one
        result = Case(name, kind).run(Path(answer).parent / "record")
        Path(answer).write_text(json.dumps(asdict(result)))
        return 0
    only = set(given.only)
    ill = [name for name, sick in SICK.items() if not only or only & {name, sick.code}]
    if given.cures:
        rows = compare([name for name in ill if SICK[name].cured is not None], given.repeats)
    else:
        from soak.healthy import HEALTHY

        healthy = [name for name in HEALTHY if not only or name in only]
        cases = [*(Case(name, "ill") for name in ill), *(Case(name, "healthy") for name in healthy)]
        rows = check(cases, given.repeats, given.at_once)
    return 0 if all(row["is_good"] for row in rows) else 1


def keep(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write results beside those of other programs from before."""
    path = RESULTS / f"{name}.json"
    before = json.loads(path.read_text())["programs"] if path.exists() else []
    programs = {row["name"]: row for row in [*before, *rows]}
    facts = {"question": (__doc__ or "").splitlines()[0], **describe_machine()}
    write_json(name, {**facts, "programs": list(programs.values())}, RESULTS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
