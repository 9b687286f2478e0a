"""Put names on an answer: channels, coordinates and transformations of the raster it came from.

Where a dimension of space has changed its length, the same extent is covered by other pixels:
coordinates and transformations follow.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.spatial.raster import TRANSFORM, spatial_dims
from barrow.model.source import Labels, Source
from barrow.sources.labelled import put_labels


@dataclass(frozen=True)
class Names:
    """What the user says about the answer."""

    c_coords: Sequence[Any] | None = None
    dims: Sequence[str] | None = None
    transformations: Mapping[str, Any] | None = None

    def dims_of(self, lengths: Mapping[str, int], step: str) -> dict[str, int]:
        """Return the dimensions of an answer under the names that were given."""
        if self.dims is None:
            return dict(lengths)
        dims = tuple(self.dims)
        if len(dims) != len(lengths):
            raise InputError(
                f"dims={dims} has {len(dims)} names, but '{step}' returns {len(lengths)} "
                f"dimensions, of lengths {tuple(lengths.values())}."
            )
        return dict(zip(dims, lengths.values(), strict=True))


def dress(
    values: Any, lengths: Mapping[str, int], kept: Collection[str], source: Source, names: Names
) -> Any:
    """Return values as a DataArray that says what the source said, as far as it still holds.

    Parameters
    ----------
    lengths
        Dimensions of the values.
    kept
        Those that came through unchanged.
    source
        What the values were computed from.
    """
    labels = source.labels
    if labels is None:
        import xarray

        labels = Labels(None, xarray.Dataset(), {})
    changed = {
        dim: source.lengths[dim] / lengths[dim]
        for dim in spatial_dims(tuple(lengths))
        if dim in source.lengths and lengths[dim] not in (0, source.lengths[dim])
    }
    dressed = put_labels(values, lengths, set(kept) - set(changed), labels)
    coords = {d: c for d in changed if (c := _stretch(labels.coords, d, lengths[d])) is not None}
    if "c" in lengths:
        channels = _channels(names.c_coords, lengths["c"], "c" in dressed.coords)
        if channels is not None:
            coords["c"] = channels
    elif names.c_coords is not None:
        raise InputError(f"c_coords= names channels, but the answer has {tuple(lengths)} only.")
    dressed = dressed.assign_coords({dim: (dim, found) for dim, found in coords.items()})
    dressed.attrs = _adapt(dict(labels.attrs), changed, tuple(lengths))
    if names.transformations is not None:
        dressed.attrs[TRANSFORM] = dict(names.transformations)
    return dressed


def _channels(given: Sequence[Any] | None, count: int, are_known: bool) -> Any:
    if given is None:
        return None if are_known else np.arange(count)
    if len(channels := list(given)) != count:
        raise InputError(f"c_coords={channels} names {len(channels)} channels; there are {count}.")
    return channels


def _stretch(coords: Any, dim: str, length: int) -> np.ndarray | None:
    """Return the centres of pixels that cover what those of a coordinate covered."""
    if dim not in coords:
        return None
    old = np.asarray(coords[dim].values)
    if len(old) < 2 or old.dtype.kind not in "iuf":
        return None
    step = (float(old[-1]) - float(old[0])) / (len(old) - 1)
    factor = len(old) / length
    centres = old[0] - step / 2 + (np.arange(length) + 0.5) * step * factor
    return np.asarray(centres)


def _adapt(
    attrs: dict[str, Any], changed: Mapping[str, float], dims: Sequence[str]
) -> dict[str, Any]:
    """Return attributes whose pixel sizes and transformations fit pixels of another size."""
    if "scale" in attrs and isinstance(attrs["scale"], Mapping):
        scale = {**dict.fromkeys(changed, 1.0), **attrs["scale"]}
        attrs["scale"] = {d: v * changed.get(d, 1.0) for d, v in scale.items() if d in dims}
    if changed and isinstance(attrs.get(TRANSFORM), Mapping):
        from spatialdata.transformations import Scale, Sequence  # who has these has the library

        pixels = Scale(list(changed.values()), axes=tuple(changed))
        attrs[TRANSFORM] = {name: Sequence([pixels, old]) for name, old in attrs[TRANSFORM].items()}
    elif isinstance(attrs.get(TRANSFORM), Mapping):
        # The answer's own: what is set on it later must not reach the question.
        attrs[TRANSFORM] = dict(attrs[TRANSFORM])
    return attrs
