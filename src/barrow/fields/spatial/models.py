"""Models that find objects in a tile, called alike.

A model is any callable from an array to labels, or an object of Cellpose or StarDist as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from barrow.errors import InputError, StepError
from barrow.fields.spatial.runs import find_runs, group, paint


def call_model(model: Any, tile: np.ndarray, kwargs: Mapping[str, Any]) -> np.ndarray:
    """Return the labels that a model finds in a tile."""
    if hasattr(model, "predict_instances"):  # StarDist
        found = model.predict_instances(tile, **kwargs)
    elif callable(model):
        found = model(tile, **kwargs)
    elif hasattr(model, "eval"):  # Cellpose
        found = model.eval(tile, **kwargs)
    else:
        raise InputError(
            f"model={model!r} cannot be called. Give a function from an array to labels, or an "
            "object of Cellpose or StarDist."
        )
    labels = np.asarray(found[0] if isinstance(found, tuple) else found)
    if labels.dtype.kind not in "iub":
        raise StepError(f"The model returned {labels.dtype}, where whole numbers are labels.")
    return labels


@dataclass(frozen=True)
class Anchored:
    """A model whose objects are known by their first pixel in the whole raster.

    Tiles that see the same object call it by the same name.
    """

    model: Any
    lengths: Mapping[str, int]
    """Of the whole raster, dimensions of space only."""
    dtype: np.dtype
    kwargs: Mapping[str, Any]

    @property
    def __name__(self) -> str:
        return getattr(self.model, "__name__", type(self.model).__name__)

    def __call__(self, tile: np.ndarray, *places: np.ndarray) -> np.ndarray:
        """Return the name of an object for each pixel.

        Parameters
        ----------
        places
            For each dimension of space: where the pixels of the tile lie in the raster.
        """
        labels = call_model(self.model, tile, self.kwargs)
        shape = tuple(len(place) for place in places)
        if labels.shape != shape:
            raise StepError(f"The model returned {labels.shape} labels for {shape} pixels.")
        runs = find_runs(labels)
        _, place, first = group(runs.label)
        at = np.unravel_index(runs.start[first], shape)
        names = raster_number([p[i] for p, i in zip(places, at, strict=True)], self.lengths) + 1
        return paint(runs, names[place], self.dtype)


def raster_number(places: Sequence[np.ndarray], lengths: Mapping[str, int]) -> np.ndarray:
    """Return the number of pixels in raster order.

    Examples
    --------
    >>> raster_number([np.array([0, 2]), np.array([3, 1])], {"y": 5, "x": 10})
    array([ 3, 21], dtype=uint64)
    """
    number = np.zeros(len(places[0]), np.uint64)
    for place, length in zip(places, lengths.values(), strict=True):
        number = number * np.uint64(length) + place.astype(np.uint64)
    return number


def name_dtype(lengths: Mapping[str, int]) -> np.dtype:
    """Return a dtype that holds the number of every pixel, and one more."""
    return np.dtype("u4" if np.prod(list(map(float, lengths.values()))) < 2**32 - 1 else "u8")
