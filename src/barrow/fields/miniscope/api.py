"""Calls of ``barrow.miniscope``: from a movie to cells and traces."""

import sys
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from barrow.errors import InputError
from barrow.fields.miniscope import results
from barrow.fields.miniscope.checkpoints import Checkpoints
from barrow.fields.miniscope.footprints import unpack
from barrow.fields.miniscope.opening import load_videos
from barrow.fields.miniscope.pipeline import STEPS, Pipeline
from barrow.fields.miniscope.results import Result
from barrow.fields.miniscope.segments import SEGMENT
from barrow.fields.miniscope.settings import complete
from barrow.fields.miniscope.walking import Walk
from barrow.sources.opening import open_source
from barrow.units import parse_bytes


def run(
    videos: Any,
    *,
    to: str | PathLike[str],
    params: Mapping[str, Mapping[str, Any]] | None = None,
    memory: str | int | None = None,
    cluster: Any = None,
    chunks: Mapping[str, int] | None = None,
    quiet: bool = False,
) -> Result:
    """Find the cells of a movie, and what each of them does.

    Every step is kept in the folder when it is done. The same call again returns at once; one
    that was interrupted goes on; one with other parameters does again what depends on them.

    Parameters
    ----------
    videos
        A folder of videos, or anything else that :func:`load_videos` takes.
    to
        Folder for the results, one Zarr store for each variable.
    params
        Parameters by step, for example ``{"denoise": {"ksize": 5}}``; what is not given is as
        in :data:`DEFAULTS`.
    memory, cluster, quiet
        As for :func:`barrow.map`.
    chunks
        Frames that are worked on at once, for example ``{"frame": 256}``; by default barrow
        measures what is best. The results do not depend on it.

    Returns
    -------
    Result
        ``A``, ``C``, ``S``, ``b``, ``f``, ``YrA``, ``motion`` and ``max_proj`` as DataArrays.

    Examples
    --------
    >>> import tempfile
    >>> from barrow import miniscope
    >>> movie, truth = miniscope.simulate(frames=60, height=48, width=48, cells=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     miniscope.run(movie, to=folder, quiet=True).units
    0
    """
    if chunks is not None and (set(chunks) - {"frame", "height", "width"}):
        raise InputError(f"chunks={dict(chunks)!r}: name 'frame', 'height' and 'width' only.")
    folder = Path(to).expanduser().absolute()
    walk = Walk(memory=memory, cluster=cluster, quiet=True, chunks=chunks)
    work = prepare(videos, folder / "steps", params, walk, say=None if quiet else _say)
    found = work.run()
    A, _ = unpack(found, work.shape)
    arrays = {**found, "motion": work.motion(), "max_proj": work.summary.max_proj}
    arrays["b"] = found["b"].reshape(work.shape)
    if work.kept.redone or not (folder / "params.json").exists():
        results.write(folder, A, arrays, work.params)
    return Result(folder, tuple(work.kept.redone))


def prepare(
    videos: Any,
    steps: Path,
    params: Mapping[str, Mapping[str, Any]] | None,
    walk: Walk,
    *,
    say: Callable[[str], None] | None = None,
) -> Pipeline:
    """Return the pipeline for a movie, ready to run; what it keeps goes into ``steps``."""
    chosen = complete(params)
    movie = load_videos(videos, **chosen["load_videos"])
    # Data that cannot be told from others are worked on again each time.
    identity = movie.read.identity() or uuid4().hex
    return Pipeline(
        source=movie,
        params=chosen,
        walk=walk,
        kept=Checkpoints(steps),
        say=say or _say_nothing,
        identity=f"{identity}|{movie.shape}|{movie.dtype}",
    )


def get_optimal_chk(arr: Any, csize: float | str = 256) -> dict[str, int]:
    """Return one chunking for all steps, by size alone.

    Frames: so many whole images are about ``csize``. Height and width: a tile through all
    frames is about as large. :func:`run` needs none of it: it measures.

    Parameters
    ----------
    arr
        A movie: whatever :func:`load_videos` takes.
    csize
        MiB, or text such as ``"256MB"``.

    Examples
    --------
    >>> get_optimal_chk(np.zeros((1000, 64, 64), "u1"), csize=1)
    {'frame': 256, 'height': 32, 'width': 32}
    """
    movie = load_videos(arr) if not hasattr(arr, "shape") else load_videos(open_source(arr))
    size = parse_bytes(csize) if isinstance(csize, str) else int(csize * 2**20)
    if size < 1:
        raise InputError(f"csize={csize!r}: give a size above 0.")
    frames, height, width = movie.shape
    item = movie.dtype.itemsize
    count = size // max(1, height * width * item)
    count = count // SEGMENT * SEGMENT if count >= SEGMENT else max(1, count)
    side = int(np.sqrt(size / max(1, frames * item)))
    return {
        "frame": min(frames, count),
        "height": min(height, max(1, side)),
        "width": min(width, max(1, side)),
    }


def _say(name: str) -> None:
    print(f"miniscope: {STEPS.index(name) + 1}/{len(STEPS)} {name}", file=sys.stderr, flush=True)


def _say_nothing(_: str) -> None:
    pass
