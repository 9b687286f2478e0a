"""The tour that the demo gives: plan, run, check, reduce, look at the record."""

import json
import resource
import sqlite3
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import numpy as np
import xarray

import barrow
from barrow.cli.specimen import HALO, count_brightness, enhance, write_slide
from barrow.units import format_bytes, format_seconds

MEMORY = "1GB"
"""Half of what the plain call needs for an image of the usual size."""


def give_tour(folder: Path, side: int) -> None:
    """Show what barrow does on an image in a folder, step by step."""
    slide, place = folder / "slide.zarr", folder / "enhanced.zarr"
    began = time.perf_counter()
    write_slide(slide, side)
    image = xarray.open_zarr(slide, chunks=None, consolidated=False)["image"]
    _say(f"A microscope image of {format_bytes(image.nbytes)} lies in {slide}")
    _say(f"(made in {format_seconds(time.perf_counter() - began)}).")

    _head(1, "A plan, from measuring the function on a little of the image")
    _code(
        f'plan = barrow.plan(enhance, image, halo={{"y": {HALO}, "x": {HALO}}},\n'
        f'                   to="enhanced.zarr", memory="{MEMORY}")\n'
        "print(plan)"
    )
    plan = barrow.plan(enhance, image, halo={"y": HALO, "x": HALO}, to=place, memory=MEMORY)
    _say(str(plan))

    _head(2, "The run, its result on disk")
    _code("run = barrow.run(plan)\nprint(run)")
    before = _reset_peak()
    run = barrow.run(plan)
    peak = _peak_bytes(run) - before
    _say(str(run))
    _say(f"Predicted {format_seconds(plan.seconds)}, took {_seconds(run)}.")

    _head(3, "The same as the plain call on the whole image")
    _code("plain = enhance(image.values)")
    before = _reset_peak()
    began = time.perf_counter()
    values = image.values
    plain = enhance(values)
    spent, plain_peak = time.perf_counter() - began, _peak_bytes() - before
    _say(f"{'':12}{'time':>10}{'memory taken':>15}")
    _say(
        f"{'plain call':12}{format_seconds(spent):>10}{format_bytes(plain_peak):>15}"
        "   its result is in memory only"
    )
    _say(
        f"{'barrow':12}{_seconds(run):>10}{format_bytes(peak):>15}"
        f"   its result is on disk: writing took {_writing_share(run):.0%} of the time"
    )
    is_same = all(
        run.result[channel].values.tobytes() == plain[channel].tobytes()
        for channel in range(len(plain))
    )
    _say(_verdict(f"all {plain.size:,} values are the same, bit for bit", is_same))
    del plain

    _head(4, "A reduction: how many pixels have which brightness?")
    _code("counts = barrow.reduce(count_brightness, image)")
    counts = barrow.reduce(count_brightness, image)
    for level, count in enumerate(counts):
        if count > counts.sum() / 1000:
            bar = "#" * round(40 * count / counts.max())
            _say(f"{level * 256:5} to {level * 256 + 255:<5}{count:>13,}  {bar}")
    same_counts = np.array_equal(counts, count_brightness(values))
    _say(_verdict("the same counts as from the plain call", same_counts))

    _head(5, "The record of the run")
    _show_record(run.folder)
    if not (is_same and same_counts):
        raise SystemExit(1)


def _show_record(folder: Path) -> None:
    _say(f"In {folder}:")
    metrics = json.loads((folder / "metrics.json").read_text())
    read, written = format_bytes(metrics["read_bytes"]), format_bytes(metrics["written_bytes"])
    _say("  plan.json      the plan")
    _say(f"  metrics.json   {read} read, {written} written, {len(metrics) - 2} numbers more")
    _say("  record.sqlite  what every chunk cost; the slowest three:")
    query = """select chunk, worker, read_seconds, compute_seconds, write_seconds from task
        order by read_seconds + compute_seconds + write_seconds desc limit 3"""
    record = sqlite3.connect(folder / "record.sqlite")
    with record:
        for chunk, worker, *parts in record.execute(query):
            spent = zip(("read", "compute", "write"), map(format_seconds, parts), strict=True)
            numbers = ", ".join(f"{what} {duration}" for what, duration in spent)
            _say(f"    chunk {chunk:<4} {numbers}, by {worker}")
    record.close()


def _seconds(run: Any) -> str:
    return format_seconds(run.metrics["wall_seconds"])


def _writing_share(run: Any) -> float:
    parts = [run.metrics[f"{part}_seconds"] for part in ("read", "compute", "write")]
    return float(parts[-1] / sum(parts))


def _verdict(claim: str, holds: bool) -> str:
    return click.style(f"Checked: {claim}.", fg="green") if holds else f"NOT TRUE: {claim}."


def _head(number: int, text: str) -> None:
    click.echo()
    click.secho(f"{number}. {text}", bold=True)


def _code(text: str) -> None:
    for line in text.splitlines():
        click.secho(f"    >>> {line}" if not line.startswith(" ") else f"    ... {line}", fg="cyan")


def _say(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"   {line}")
    sys.stdout.flush()  # progress goes to standard error and must come after it


def _reset_peak() -> int:
    """Let the peak of this process count from now on, where the system can; return it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak_bytes()


def _peak_bytes(run: Any = None) -> int:
    """Return the most memory held at once, by this process and the workers of a run."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with suppress(OSError, IndexError):
        status = Path("/proc/self/status").read_text()
        own = int(status.split("VmHWM:")[1].split()[0]) * 1024
    if run is not None and run.plan.engine in ("processes", "dask"):
        own += run.metrics["peak_resident_bytes"] * run.plan.workers
    return own
