"""Measure objects and images that are larger than memory: what blocks say is added up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas

from barrow import api
from barrow.errors import InputError
from barrow.fields.spatial.means import Means
from barrow.fields.spatial.models import raster_number
from barrow.fields.spatial.raster import Raster, channels_of, open_raster
from barrow.fields.spatial.readers import channels_first
from barrow.fields.spatial.runs import find_runs, group
from barrow.model.source import Source


@dataclass(frozen=True)
class Parts:
    """What blocks say about the objects in them: rows that are added up at the end."""

    rows: tuple[Mapping[str, np.ndarray], ...]

    def __add__(self, other: "Parts") -> "Parts":
        return Parts(self.rows + other.rows)

    def table(self, known_as: tuple[np.ndarray, np.ndarray] | None = None) -> pandas.DataFrame:
        """Return one row for each object, in order of its first pixel.

        Parameters
        ----------
        known_as
            Names that turned out to be the same object, sorted, and what it is called.
        """
        columns = {name: np.concatenate([row[name] for row in self.rows]) for name in self.rows[0]}
        if known_as is not None and len(known_as[0]):
            columns["label"] = translate(columns["label"], *known_as)
        rows = pandas.DataFrame(columns).groupby("label", sort=False)
        how = {name: _how(name) for name in columns if name != "label"}
        return rows.agg(how).sort_values("first").reset_index()


def regionprops(
    labels: Any,
    image: Any = None,
    *,
    memory: Any = None,
    cluster: Any = None,
    quiet: bool = False,
) -> pandas.DataFrame:
    """Measure all objects of a raster of labels.

    Parameters
    ----------
    labels
        Labels ([z], y, x) of any kind and size.
    image
        Of the same pixels; its mean in each object is measured for every channel.

    Returns
    -------
    pandas.DataFrame
        For each label: area in pixels, centroid, bounding box (first pixel, and the one behind
        the last) and intensities, as ``skimage.measure.regionprops_table`` calls them.

    Examples
    --------
    >>> labels = np.zeros((6, 8), int)
    >>> labels[1:3, 2:6] = 5
    >>> regionprops(labels, quiet=True).iloc[0].to_dict()["area"]
    8.0
    """
    raster = open_raster(labels)
    if not raster.is_labels:
        raise InputError(f"'{raster.source.name}' is no raster of labels: it has channels, or "
                         f"values of {raster.source.dtype}.")  # fmt: skip
    source = None if image is None else open_raster(image)
    means = Means(memory=memory, cluster=cluster, quiet=quiet)
    parts = measure(raster.source, source, means)
    return finish_table(parts.table(), raster.source, source).sort_values(
        "label", ignore_index=True
    )


def measure(labels: Source, image: Raster | None, means: Means) -> Parts:
    """Return what all blocks say about the objects of a raster of labels."""
    places = place_sources(labels)
    sources = [] if image is None else [channels_first(_plain(image.source))]
    found: Parts = means.reduce(
        MeasureBlock(dict(labels.lengths), bool(sources)),
        _plain(labels),
        *places,
        *sources,
        whole=["c"] if image is not None and "c" in image.source.lengths else [],
        name="measure",
    )
    return found


def place_sources(source: Source) -> list[Source]:
    """Return for each dimension of a source where its pixels lie."""
    return [
        api.open(np.arange(n, dtype=np.int64), name=f"place {dim}", dims=(dim,))
        for dim, n in source.lengths.items()
    ]


@dataclass(frozen=True)
class MeasureBlock:
    """Measures the parts of objects that lie in a block."""

    lengths: Mapping[str, int]
    has_image: bool

    def __call__(self, labels: np.ndarray, *others: np.ndarray) -> Parts:
        """Return one row for each label of the block."""
        places = others[: labels.ndim]
        runs = find_runs(labels)
        names, place, first = group(runs.label)
        at = np.unravel_index(runs.start, labels.shape)
        where = [p[i] for p, i in zip(places, at, strict=True)]
        rows = {
            "label": names.astype(np.uint64),
            "first": raster_number([w[first] for w in where], self.lengths),
            "area": np.bincount(place, runs.length, len(names)),
        }
        bounds = _Grouped(place, len(names))
        for dim, low in zip(self.lengths, where, strict=True):
            is_last = dim == list(self.lengths)[-1]
            high = low + (runs.length if is_last else 1)
            # The middle of a run, as often as it has pixels.
            rows[f"sum-{dim}"] = np.bincount(
                place, runs.length * (low + high - 1) / 2.0, len(names)
            )
            rows[f"min-{dim}"] = bounds.reduce(np.minimum, low)
            rows[f"max-{dim}"] = bounds.reduce(np.maximum, high)
        if self.has_image:
            image = others[-1]
            channels = image.reshape(-1, labels.size)
            for number, channel in enumerate(channels):
                sums = _sum_runs(channel, runs.start, runs.stop)
                rows[f"sum-c{number}"] = np.bincount(place, sums, len(names))
        return Parts((rows,))


def finish_table(table: pandas.DataFrame, labels: Source, image: Raster | None) -> pandas.DataFrame:
    """Return sums and bounds as what people call them."""
    done = {"label": table["label"].to_numpy(), "area": table["area"].to_numpy()}
    for number, dim in enumerate(labels.dims):
        done[f"centroid-{number}"] = (table[f"sum-{dim}"] / table["area"]).to_numpy()
    for number, dim in enumerate(labels.dims):
        done[f"bbox-{number}"] = table[f"min-{dim}"].to_numpy()
    for number, dim in enumerate(labels.dims):
        done[f"bbox-{number + len(labels.dims)}"] = table[f"max-{dim}"].to_numpy()
    if image is not None:
        source = image.source
        names: Sequence[Any] = channels_of(source) if "c" in source.lengths else [source.name]
        for number, name in enumerate(names):
            done[f"intensity_mean-{name}"] = (table[f"sum-c{number}"] / table["area"]).to_numpy()
    return pandas.DataFrame(done)


def translate(values: np.ndarray, names: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return values with some of them (sorted) replaced by others.

    Examples
    --------
    >>> translate(np.array([4, 9, 5]), np.array([5, 9]), np.array([1, 2])).tolist()
    [4, 2, 1]
    """
    place = np.minimum(np.searchsorted(names, values), len(names) - 1)
    return np.where(names[place] == values, others[place], values)


class _Grouped:
    """Runs sorted by their object, for reductions."""

    def __init__(self, place: np.ndarray, count: int) -> None:
        self.order = np.argsort(place, kind="stable")
        self.starts = np.searchsorted(place[self.order], np.arange(count))

    def reduce(self, how: np.ufunc, values: np.ndarray) -> np.ndarray:
        if not len(values):
            return values
        return np.asarray(how.reduceat(values[self.order], self.starts))


def _sum_runs(channel: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    if not len(start):
        return np.zeros(0)
    # Sums from each run's start to its stop, and from there to the next start: every other one.
    cuts = np.column_stack([start, stop]).reshape(-1)
    is_open = cuts[-1] == channel.size
    sums = np.add.reduceat(channel, cuts[:-1] if is_open else cuts, dtype=np.float64)
    return np.asarray(sums[::2])


def _how(name: str) -> str:
    return {"first": "min", "min": "min", "max": "max"}.get(name.partition("-")[0], "sum")


def _plain(source: Source) -> Source:
    return replace(source, labels=None)
