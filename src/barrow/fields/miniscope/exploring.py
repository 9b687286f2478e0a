"""Try parameters on a small part of a movie, and see what each of them does."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.miniscope import footprints as fp
from barrow.fields.miniscope.api import prepare
from barrow.fields.miniscope.pictures import draw_outlines, draw_seeds, draw_traces, make_figure
from barrow.fields.miniscope.pipeline import Pipeline
from barrow.fields.miniscope.settings import DEFAULTS, complete
from barrow.fields.miniscope.walking import Walk

Values = Mapping[str, Mapping[str, Sequence[Any]]]

VARIED: Values = {
    "seeds_init": {"diff_thres": (2, 3, 6)},
    "pnr_refine": {"thres": (0.8, 1, 1.5)},
    "first_spatial": {"sparse_penal": (0.005, 0.01, 0.05)},
    "second_temporal": {"sparse_penal": (0.1, 1, 2), "p": (1, 2)},
}
"""What :func:`explore` tries, if nothing else is asked for."""

_SHOWN_CELLS = 5


@dataclass(frozen=True)
class Variant:
    """What one value of one parameter leads to; all others are as they were given."""

    step: str
    name: str
    value: Any
    seeds: np.ndarray
    A: fp.Footprints
    C: np.ndarray
    S: np.ndarray
    YrA: np.ndarray
    b0: np.ndarray
    max_proj: np.ndarray

    @property
    def facts(self) -> dict[str, Any]:
        """The value and its numbers."""
        sizes = np.diff(self.A.indptr)
        return {
            "step": self.step,
            "parameter": self.name,
            "value": self.value,
            "seeds": len(self.seeds),
            "cells": len(self.C),
            "pixels_of_a_cell": float(np.median(sizes)) if len(sizes) else 0.0,
            "active_share": float((self.S > 0).mean()) if self.S.size else 0.0,
        }


@dataclass(frozen=True)
class Exploration:
    """All that was tried, and where its pictures are."""

    variants: tuple[Variant, ...]
    pictures: tuple[Path, ...]

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row for each value that was tried."""
        return [variant.facts for variant in self.variants]


def explore(
    videos: Any,
    *,
    to: str | PathLike[str],
    params: Mapping[str, Mapping[str, Any]] | None = None,
    vary: Values | None = None,
    frames: int = 500,
    memory: str | int | None = None,
    cluster: Any = None,
) -> Exploration:
    """Run the pipeline on the first frames with each of some values, and draw what they do.

    One parameter is changed at a time. Late steps come first: what a value does not change is
    computed once.

    Parameters
    ----------
    videos
        As for :func:`run`.
    to
        Folder for a picture of each parameter, and ``table.json``.
    params
        The parameters that are not varied.
    vary
        Values to try, for example ``{"first_spatial": {"sparse_penal": (0.01, 0.1)}}``.
    frames
        How many to use.
    memory, cluster
        As for :func:`run`.

    Examples
    --------
    >>> import tempfile
    >>> from barrow import miniscope
    >>> movie, _ = miniscope.simulate(frames=60, height=48, width=48, cells=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tried = miniscope.explore(movie, to=folder, vary={"seeds_init": {"max_wnd": (10, 15)}})
    >>> [row["value"] for row in tried.table]
    [10, 15]
    """
    given = complete(_short(params or {}, frames))
    trials = list(_list_trials(VARIED if vary is None else vary))
    folder = Path(to).expanduser().absolute()
    walk = Walk(memory=memory, cluster=cluster, quiet=True)
    variants = []
    for step, name, value in trials:
        changed = {**given, step: {**given[step], name: value}}
        work = prepare(videos, folder / "steps", changed, walk)
        variants.append(_try(work, step, name, value))
    pictures = [
        _draw(folder, [found for found in variants if (found.step, found.name) == key])
        for key in dict.fromkeys((step, name) for step, name, _ in trials)
    ]
    found = Exploration(tuple(variants), tuple(pictures))
    (folder / "table.json").write_text(json.dumps(found.table, indent=2, default=str) + "\n")
    return found


def _short(params: Mapping[str, Mapping[str, Any]], frames: int) -> dict[str, Any]:
    """Return parameters that load no more than so many frames."""
    if frames < 1:
        raise InputError(f"frames={frames!r}: use 1 or more.")
    loading = params.get("load_videos", {})
    subset = {"frame": [0, frames], **(loading.get("subset") or {})}
    return {**params, "load_videos": {**loading, "subset": subset}}


def _list_trials(vary: Values) -> Iterator[tuple[str, str, Any]]:
    """Yield step, parameter and value, the last steps first."""
    order = list(DEFAULTS)
    for step in vary:
        if step not in order:
            raise InputError(f"vary names {step!r}, which is no step. Use {', '.join(order)}.")
    for step in sorted(vary, key=order.index, reverse=True):
        for name, values in vary[step].items():
            for value in values:
                yield step, name, value


def _try(work: Pipeline, step: str, name: str, value: Any) -> Variant:
    found = work.run()
    A, C = fp.unpack(found, work.shape)
    return Variant(
        step,
        name,
        value,
        work.seeds(),
        A,
        C,
        found["S"],
        found["YrA"],
        found["b0"],
        work.summary.max_proj,
    )


def _draw(folder: Path, variants: list[Variant]) -> Path:
    """Draw the values of one parameter side by side, and return where."""
    step, name = variants[0].step, variants[0].name
    figure, row = make_figure(len(variants), 4.2)
    for variant, axes in zip(variants, row, strict=True):
        if "temporal" in step:
            # The same cells under each value: those that move most.
            loud = np.argsort(-np.ptp(variants[0].YrA, axis=1))[:_SHOWN_CELLS]
            chosen = [unit for unit in loud if unit < len(variant.C)]
            draw_traces(axes, variant.YrA, variant.b0, variant.C, chosen, variant.S)
            count = f"{(variant.S > 0).sum()} active frames"
        elif "seeds" in step or "refine" in step:
            draw_seeds(axes, variant.max_proj, variant.seeds)
            count = f"{len(variant.seeds)} seeds"
        else:
            draw_outlines(axes, variant.max_proj, fp.dense(variant.A, variant.max_proj.shape))
            count = f"{len(variant.C)} cells"
        axes.set_title(f"{name} = {variant.value}: {count}", fontsize=10)
    figure.suptitle(step, fontsize=11)
    place = folder / f"{step}-{name}.png"
    figure.savefig(place, dpi=120)
    return place
