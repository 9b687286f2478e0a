"""Rasters that are not computed yet.

What was given as lazy data comes back as lazy data: a DataArray over a Dask array, which
other libraries use as any other. Asked for its values, it is computed by barrow: in chunks
that were planned, all steps at once, straight into the result.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray

from barrow import api
from barrow.composing import fuse
from barrow.fields.spatial.means import Means
from barrow.model.applied import kept_dims
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.probing.probe import TooMuchError
from barrow.sources.lazy import LazyArray

# A Dask block of a lazy answer holds about so much.
BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class Work:
    """Steps on a source, to be done when somebody wants the answer."""

    root: Source
    steps: tuple[Step, ...]
    target: Source
    """The answer, as a source that computes what is read of it."""
    means: Means
    chunks: Mapping[str, int]

    @classmethod
    def begin(cls, root: Source, step: Step, means: Means, chunks: Mapping[str, int]) -> "Work":
        """Return one step on a source."""
        return cls(root, (step,), fuse(step, [root]), means, chunks)

    def then(self, step: Step, means: Means, chunks: Mapping[str, int]) -> "Work":
        """Return the work with one more step."""
        try:
            target = fuse(step, [self.target])
        except TooMuchError:
            return Work.begin(
                replace(self.target, read=api.open(self.values()).read), step, means, chunks
            )
        return Work(self.root, (*self.steps, step), target, means, chunks)

    @property
    def kept(self) -> frozenset[str]:
        """Dimensions that came through all steps unchanged."""
        return kept_dims(self.target)

    def values(self, to: Any = None) -> Any:
        """Compute the answer: an array in memory, or in a store if it is too large."""
        plan = self.means.plan(list(self.steps), replace(self.root, labels=None), to=to)
        known = {dim: size for dim, size in self.chunks.items() if dim in plan.cuttable}
        return api.run(plan.with_chunks(**known) if known else plan).result


class DeferredRaster(xarray.DataArray):
    """A DataArray whose values barrow computes when they are asked for."""

    __slots__ = ("_work",)
    _work: Work | None

    def compute(self, **kwargs: Any) -> xarray.DataArray:  # type: ignore[override]
        """Return the raster with its values in memory, or in a store if they do not fit."""
        work = getattr(self, "_work", None)
        if work is None:  # changed since: Dask knows how
            return super().compute(**kwargs)
        return xarray.DataArray(
            work.values(), coords=self.coords, dims=self.dims, name=self.name, attrs=self.attrs
        )

    def load(self, **kwargs: Any) -> "DeferredRaster":
        """Compute the values and keep them here."""
        if getattr(self, "_work", None) is not None:
            self.variable.data = np.asarray(self.compute().data)
            self._work = None
        return super().load(**kwargs)

    @property
    def values(self) -> np.ndarray:
        """The values as a NumPy array."""
        if getattr(self, "_work", None) is not None:
            return np.asarray(self.compute().data)
        return super().values

    @values.setter
    def values(self, values: Any) -> None:
        self._work = None
        self.variable.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.values, dtype)


def defer(dressed: xarray.DataArray, work: Work | None) -> DeferredRaster:
    """Return a DataArray over lazy values that knows the work they take."""
    found = DeferredRaster(
        dressed.variable, coords=dressed.coords, dims=dressed.dims, name=dressed.name,
        attrs=dressed.attrs,
    )  # fmt: skip
    found._work = work
    return found


def as_dask(source: Source, chunks: Mapping[str, int]) -> Any:
    """Return a source as a Dask array whose blocks are read when they are needed."""
    import dask.array
    from dask.base import tokenize

    sizes = tuple(chunks.get(dim, size) for dim, size in _blocks(source).items())
    name = f"barrow-{tokenize(source.name, source.shape, id(source), object())}"
    meta = np.empty((0,) * len(sizes), source.dtype)
    return dask.array.from_array(LazyArray(source), chunks=sizes, name=name, meta=meta)


def _blocks(source: Source) -> dict[str, int]:
    """Return blocks for Dask: whole grains of a handy size."""
    sizes = dict(source.lengths)
    while np.prod(list(sizes.values())) * source.dtype.itemsize > BLOCK_BYTES:
        dim = max(("y", "x"), key=lambda d: sizes.get(d, 0))
        if sizes.get(dim, 0) < 2:
            break
        grain = source.grain.get(dim, 1)
        half = -(-sizes[dim] // 2)
        sizes[dim] = min(-(-half // grain) * grain, half) if half < grain else half // grain * grain
    return sizes
