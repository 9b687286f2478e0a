"""Find objects in a raster of any size, those at borders of tiles once and whole.

Tiles overlap by the size of an object and what a model looks at around it. Each tile names its
objects by their first pixel in the whole raster, so tiles that see the same object agree; where
they do not, for objects larger than the overlap or models that look far, the labels are matched
over the overlap. At the end objects are numbered by their first pixel: the cut leaves no trace.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas

from barrow import api
from barrow.errors import BudgetError, InputError
from barrow.fields.spatial.chunking import read_chunks
from barrow.fields.spatial.dressing import Names, dress
from barrow.fields.spatial.joining import join_borders
from barrow.fields.spatial.keeping import Kept, Scratch, scratch_for
from barrow.fields.spatial.means import Means
from barrow.fields.spatial.measuring import (
    finish_table,
    measure,
    place_sources,
    translate,
)
from barrow.fields.spatial.models import Anchored, name_dtype
from barrow.fields.spatial.noting import Noted, Notes, Noting
from barrow.fields.spatial.raster import Raster, open_raster, pick_channel, spatial_dims
from barrow.fields.spatial.readers import pick
from barrow.fields.spatial.runs import find_runs, paint
from barrow.fields.spatial.scales import finish_group, rebuild
from barrow.fields.spatial.statistics import histogram, otsu
from barrow.fields.spatial.tiles import Tiling, lay, put_together
from barrow.fields.spatial.watershed import Watershed
from barrow.model.source import Source
from barrow.model.step import Step

# Labels of tiles that take more than this are kept in a folder until they are joined.
HELD_BYTES = 2**26
# Blocks for which nobody asked for neighbours see so many pixels all the same, to be joined.
LEAST_OVERLAP = 8
# If tiles do not fit the memory, they are made smaller so many times.
ATTEMPTS = 4


@dataclass(frozen=True)
class Segmentation:
    """Labels, and a row for each object."""

    labels: Any
    """From 1 on without gaps, in order of the first pixel; 0 is background."""
    table: pandas.DataFrame
    """Label, area, centroid, bounding box, and mean intensity in each channel."""

    def to_anndata(self) -> Any:
        """Return the table as AnnData: intensities by object and channel, the rest in ``obs``."""
        try:
            from anndata import AnnData
        except ImportError:
            raise InputError("This needs the package anndata: pip install anndata.") from None
        means = [name for name in self.table if name.startswith("intensity_mean-")]
        observed = self.table.drop(columns=means)
        observed.index = observed["label"].astype(str)
        names = pandas.DataFrame(index=[name.partition("-")[2] for name in means])
        return AnnData(self.table[means].to_numpy(), obs=observed, var=names)


def segment(
    image: Any,
    model: Any = None,
    *,
    channel: Any = None,
    diameter: float = 20.0,
    threshold: float | None = None,
    object_size: int | None = None,
    overlap: int | None = None,
    model_kwargs: Mapping[str, Any] | None = None,
    chunks: Any = None,
    to: Any = None,
    memory: Any = None,
    cluster: Any = None,
    resources: Mapping[str, float] | None = None,
    quiet: bool = False,
) -> Segmentation:
    """Find the objects of an image, and measure them.

    Parameters
    ----------
    image
        An image (c, [z], y, x) or ([z], y, x) of any kind and size: see
        :func:`barrow.spatial.map_raster`.
    model
        From an array to labels of the same pixels: a function, or an object of Cellpose or
        StarDist as it is. By default threshold and watershed
        (:class:`barrow.spatial.Watershed`).
    channel
        What the model sees, by name or number: then it gets arrays without channels. By default
        the first for the watershed, and all for other models.
    diameter, threshold
        For the watershed: size of a usual object in pixels; and what is bright, by default found
        from the histogram of the whole image (Otsu).
    object_size
        Extent of the largest object in pixels; by default twice the diameter.
    overlap
        What tiles see beyond their own part; by default the object size, and what the model looks
        at around an object.
    model_kwargs
        Arguments of the model.
    chunks
        Size of the tiles, overlap not counted; by default as barrow plans.
    to
        Place for the labels, written as OME-Zarr, and the table. The same call again returns
        them, and takes up an interrupted one.
    memory, cluster, quiet
        See :func:`barrow.map`.
    resources
        ``{"GPU": 1}`` for a model that needs one to itself.

    Examples
    --------
    >>> image = np.zeros((1, 60, 60), "u1")
    >>> image[0, 5:15, 5:15] = image[0, 30:42, 22:34] = 200
    >>> found = segment(image, diameter=12, quiet=True)
    >>> found.table["area"].tolist()
    [96.0, 140.0]
    """
    raster = open_raster(image)
    means = Means(to, memory, cluster, dict(resources or {}), quiet)
    sizes = read_chunks(chunks, raster.spatial)
    kept = Kept.at(
        to, raster.source,
        {"model": model, "channel": channel, "diameter": diameter, "threshold": threshold,
         "object_size": object_size, "overlap": overlap, "kwargs": dict(model_kwargs or {}),
         "chunks": sizes},
    )  # fmt: skip
    if kept is not None and (table := kept.read_table()) is not None:
        return Segmentation(_open_labels(raster, kept, means), table)
    number = None
    if "c" in raster.source.lengths and (channel is not None or model is None):
        number = pick_channel(raster.source, 0 if channel is None else channel)
    if model is None:
        if threshold is None:
            seen = raster.source if number is None else pick(raster.source, number)
            threshold = otsu(*histogram(replace(seen, labels=None), means))
        model = Watershed(threshold, diameter)
    size = int(object_size if object_size is not None else 2 * diameter)
    margin = int(overlap if overlap is not None else size + getattr(model, "reach", size // 2))
    margins = {d: min(margin, n) for d, n in raster.source.lengths.items() if d in ("y", "x")}
    job = Job(model, dict(model_kwargs or {}), margins, sizes, number)
    return _segment(raster, job, means, kept)


@dataclass(frozen=True)
class Job:
    """A model, and how tiles are cut for it."""

    model: Any
    kwargs: Mapping[str, Any]
    margins: Mapping[str, int]
    chunks: Mapping[str, int]
    """Size of the tiles without their overlap; empty to have it chosen."""
    channel: int | None = None
    """What the model sees of an image; None for all."""
    has_table: bool = True


def join_labels(
    raster: Raster, step: Step, names: Names, means: Means, chunks: Mapping[str, int]
) -> Any:
    """Return the labels that a function makes of the blocks of an image, joined at the borders."""
    space = {dim: n for dim, n in raster.source.lengths.items() if dim in ("y", "x")}
    margins = {dim: step.halo.get(dim, min(LEAST_OVERLAP, n)) for dim, n in space.items()}
    job = Job(step.func, step.kwargs, margins, chunks, has_table=False)
    asked = {"model": step.func, "kwargs": step.kwargs, "margins": margins, "chunks": chunks}
    kept = Kept.at(means.to, raster.source, asked)
    if kept is not None and kept.read_table() is not None:
        labels = _open_labels(raster, kept, means, names)
    else:
        labels = _segment(raster, job, means, kept, names).labels
    return rebuild(labels, raster) if raster.given == "tree" else labels


def _segment(
    raster: Raster,
    job: Job,
    means: Means,
    kept: Kept | None,
    names: Names | None = None,
) -> Segmentation:
    measured = raster if job.has_table else None
    with scratch_for(kept) as scratch:
        views, tiling, noted = _label_tiles(raster.source, job, means, scratch)
        owned = put_together(views, tiling)
        same = join_borders(views, tiling, noted.marks if noted else None).pairs()
        rows = (noted.parts if noted else measure(owned, measured, means)).table(same)
        order = np.argsort(rows["label"].to_numpy())
        numbers = Renumber(rows["label"].to_numpy()[order], order.astype(np.uint32) + 1, same)
        to = None if kept is None else kept.path / "0"
        values = means.map(numbers, owned, name="number", to=to)
        rows["label"] = np.arange(1, len(rows) + 1)
        table = finish_table(rows, owned, measured)
        if kept is not None:
            labels = _open_labels(raster, kept, means, names)
            kept.write_table(table)
            return Segmentation(labels, table)
    if raster.given == "array":
        return Segmentation(values, table)
    lengths = owned.lengths
    labels = dress(_as_lazy(values), lengths, set(lengths), raster.source, names or Names())
    return Segmentation(labels, table)


def _open_labels(raster: Raster, kept: Kept, means: Means, names: Names | None = None) -> Any:
    """Return stored labels, with the scales that the image has."""
    lengths = {dim: raster.source.lengths[dim] for dim in raster.spatial}
    tree = finish_group(raster, kept.path, raster.factors, means, names, lengths)
    return tree["scale0"]["image"]


def _label_tiles(
    source: Source, job: Job, means: Means, scratch: Scratch
) -> tuple[Source, Tiling, Noted | None]:
    """Return the labels of all tiles side by side, named by first pixels, and how they lie.

    Also what was noted about the objects on the way, if there was a place for it.
    """
    source = replace(source, labels=None)
    space = {d: n for d, n in source.lengths.items() if d in spatial_dims(source.dims)}
    named = Anchored(job.model, space, name_dtype(space), dict(job.kwargs))
    axis = source.dims.index("c") if "c" in source.dims else None
    noting = Noting(named, axis, job.channel, job.has_table)
    places = place_sources(replace(source, lengths=space))
    whole = [dim for dim in source.dims if dim not in ("y", "x")]
    step = means.step(noting, whole=whole, border=None)
    like = None
    usual = dict.fromkeys(job.margins, getattr(job.model, "tile", 0))
    chunks = dict(job.chunks or scratch.read_cut() or usual)
    if not all(chunks.values()):
        halo = {dim: width for dim, width in job.margins.items() if width}
        like = means.plan(replace(step, halo=halo), source, *places)
        chunks = {dim: size for dim, size in like.chunks.items() if dim in ("y", "x")}
    for _ in range(ATTEMPTS):
        seen = {dim: size + 2 * job.margins.get(dim, 0) for dim, size in chunks.items()}
        tiling = Tiling.cut(space, seen, job.margins)
        laid = [lay(each, tiling) for each in (source, *places)]
        size = int(np.prod(list(tiling.laid.values()))) * named.dtype.itemsize
        is_held = size <= HELD_BYTES and means.memory is None and not scratch.is_lasting
        views = {dim: tiling.views[dim] for dim in ("y", "x")}
        cut = "x".join(map(str, views.values()))
        scratch.write_cut(chunks)
        to, notes = None, None
        if not is_held:
            to = scratch.path / f"tiles-{cut}.zarr"
            notes = Notes(scratch.path / f"rows-{cut}", tiling)
        noted = replace(step, func=replace(noting, notes=notes))
        plan = means.plan(noted, *laid, like=like, to=to)
        # Tiles that were asked for are tried in any case.
        if job.chunks or all(plan.chunks[dim] >= view for dim, view in views.items()):
            run = api.run(plan.with_chunks(**views))
            if not run.metrics.get("split"):
                found = api.open(run.result, dims=tuple(space))
                return replace(found, labels=None), tiling, notes.read() if notes else None
        # They do not fit; and parts of a tile do not see enough around them. Smaller tiles do.
        chunks = {dim: -(-size // 2) for dim, size in chunks.items()}
    raise BudgetError(
        f"'{step.name}' needs more memory than a run may use, even for tiles of {seen}. "
        "Allow more with memory=."
    )


@dataclass(frozen=True, eq=False)
class Renumber:
    """Replace the names of objects by their numbers."""

    names: np.ndarray
    """All names, sorted."""
    numbers: np.ndarray
    same: tuple[np.ndarray, np.ndarray]
    """Names that turned out to be others, sorted, and these."""

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """Return the numbers of a block of names."""
        runs = find_runs(block)
        label = runs.label.astype(np.uint64)
        if len(self.same[0]):
            label = translate(label, *self.same)
        numbers = self.numbers[np.searchsorted(self.names, label)] if len(label) else label
        return paint(runs, numbers, np.dtype(np.uint32))


def _as_lazy(values: Any) -> Any:
    import dask.array

    chunks = getattr(values, "chunks", None) or "auto"
    return dask.array.from_array(values, chunks=chunks, name=False)
