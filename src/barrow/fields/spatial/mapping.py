"""Map a function over a raster."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from barrow.errors import StepError
from barrow.fields.spatial.chunking import Depth, read_chunks, read_depth
from barrow.fields.spatial.deferred import Work, as_dask, defer
from barrow.fields.spatial.dressing import Names, dress
from barrow.fields.spatial.means import Means, keep
from barrow.fields.spatial.raster import Raster, is_labels, open_raster, rename
from barrow.fields.spatial.scales import rebuild
from barrow.fields.spatial.segmenting import join_labels
from barrow.fields.spatial.storing import store_raster
from barrow.fields.spatial.wrapping import wrap


def map_raster(
    data: Any,
    func: Callable[..., Any],
    func_kwargs: Mapping[str, Any] | None = None,
    blockwise: bool = True,
    depth: Depth | None = None,
    chunks: Any = None,
    c_coords: Sequence[Any] | None = None,
    dims: Sequence[str] | None = None,
    transformations: Mapping[str, Any] | None = None,
    relabel: bool = True,
    *,
    border: str | float | None = "reflect",
    to: Any = None,
    memory: Any = None,
    cluster: Any = None,
    resources: Mapping[str, float] | None = None,
    quiet: bool = False,
) -> Any:
    """Apply a function to every block of an image or of labels.

    Blocks hold all channels. The input is never changed.

    Parameters
    ----------
    data
        An image (c, [z], y, x) or labels ([z], y, x): a NumPy array, a DataArray, an element of
        SpatialData, also of several scales, or the path of an OME-Zarr or TIFF file.
    func
        Takes one NumPy array and returns one.
    func_kwargs
        Arguments of the function: all of them reach it, also one called ``dtype``.
    blockwise
        False calls the function once, with everything.
    depth
        Neighbours that the function needs around a block: a number for all dimensions of space,
        one for each, or by name, as in ``{"y": 8}``. Channels have none.
    chunks
        Length of the blocks: a number for dimensions of space, one for each dimension, or by
        name. By default barrow chooses, by measurement.
    c_coords
        Names of the channels of the answer.
    dims
        Dimensions of the answer, where the function changes them: ``("y", "x")`` for labels
        that are made from an image.
    transformations
        Of the answer; by default those of the input, scaled if the function changed the number
        of pixels.
    relabel
        For labels: whether objects in different blocks get different numbers, from 1 on without
        gaps, and one number where a border cuts an object; blocks then see at least 8 pixels of
        their neighbours. Labels that the function
        passes on are names already, and are kept.
    border
        What lies beyond the edge: see :func:`barrow.map`; or ``"wrap"`` for the other edge.
    to
        Place for the answer, written as OME-Zarr with all its scales.
    memory, cluster, resources, quiet
        See :func:`barrow.map`.

    Returns
    -------
    array
        What was given: NumPy for NumPy, else a DataArray; several scales for several scales.
        Lazy data give a lazy answer, which is computed when its values are asked for.

    Examples
    --------
    >>> image = np.arange(24.0).reshape(1, 4, 6)
    >>> map_raster(image, np.clip, {"a_min": 2, "a_max": 4})[0, 0]
    array([2., 2., 2., 3., 4., 4.])
    """
    earlier = getattr(data, "_work", None)
    if earlier is not None and earlier.target.dims != tuple(data.dims):
        # Its dimensions were given other names, which the steps before do not know.
        data, earlier = data.compute(), None
    raster = open_raster(data)
    means = Means(to, memory, cluster, dict(resources or {}), quiet)
    names = Names(c_coords, dims, transformations)
    sizes = read_chunks(chunks, raster.source.dims)
    source = raster.source
    whole = [d for d in source.dims if not blockwise or (d == "c" and "c" not in sizes)]
    halo = read_depth(depth, source.dims) if blockwise else {}
    step = means.step(
        func,
        whole=whole,
        halo=halo if border != "wrap" else {},
        border=border if border != "wrap" else None,
        kwargs=dict(func_kwargs or {}),
    )
    if border == "wrap":
        earlier, source = None, wrap(source, replace(step, halo={}), halo)
        step = means.step(keep, name=step.name)
    work = (
        Work.begin(source, step, means, sizes)
        if earlier is None
        else earlier.then(step, means, sizes)
    )
    lengths = names.dims_of(work.target.lengths, step.name)
    if relabel and blockwise and is_labels(tuple(lengths), work.target.dtype):
        if not raster.is_labels:
            return join_labels(raster, step, names, means, sizes)
        work = replace(work, steps=(*work.steps[:-1], replace(step, func=KeepingNames(func))))
    return _give(raster, work, names, lengths)


def _give(raster: Raster, work: Work, names: Names, lengths: Mapping[str, int]) -> Any:
    """Return the answer as the raster was given, now or later."""
    source, means = raster.source, work.means
    kept = frozenset(d for d in work.kept if lengths.get(d) == source.lengths.get(d))
    if means.to is not None:
        return store_raster(raster, work, lengths, names)
    if raster.given in ("lazy", "tree"):
        chunks = {d: s for d, s in work.chunks.items() if d in lengths}
        values = as_dask(rename(work.target, tuple(lengths)), chunks)
        lazy = defer(dress(values, lengths, kept, source, names), work)
        return lazy if raster.given == "lazy" else rebuild(lazy, raster)
    values = work.values()
    if raster.given == "array":
        return values
    if not isinstance(values, np.ndarray):
        import dask.array

        values = dask.array.from_array(values, chunks=values.chunks)
    return dress(values, lengths, kept, source, names)


class KeepingNames:
    """A function on labels that must not invent labels: blocks would not agree on them."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        self.__name__ = getattr(func, "__name__", type(func).__name__)

    def __call__(self, block: np.ndarray, **kwargs: Any) -> np.ndarray:
        answer = np.asarray(self.func(block, **kwargs))
        if answer.dtype.kind in "iu" and answer.size:
            seen = np.union1d(np.unique(block), [0])
            found = np.unique(answer)
            new = found[~np.isin(found, seen)]
            if len(new):
                raise StepError(
                    f"'{self.__name__}' made the label {new[0]}, which is not in its block: other "
                    "blocks would use the same number for other objects. Make labels from an "
                    "image (barrow.spatial.segment), or set relabel=False."
                )
        return answer
