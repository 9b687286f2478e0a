"""Open movies: folders of videos, TIFF stacks, Zarr and NumPy files, arrays."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from barrow import api
from barrow.errors import InputError
from barrow.fields.miniscope.videos import SUFFIXES, open_videos
from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.identity import identify_text

DIMS = ("frame", "height", "width")
TIFF_SUFFIXES = (".tif", ".tiff")


def load_videos(
    videos: Any,
    pattern: str | None = None,
    *,
    subset: Mapping[str, Any] | None = None,
    downsample: Mapping[str, int] | None = None,
    downsample_strategy: str = "subset",
) -> Source:
    """Return a movie as a source of frame × height × width; nothing is decoded yet.

    Parameters
    ----------
    videos
        A folder of videos or TIFF stacks, in the order in which people count
        (``msCam2.avi`` before ``msCam10.avi``); one such file, or a list of them; a Zarr or
        NumPy file; an array of any kind that barrow opens.
    pattern
        A regular expression that the names of files in a folder must match.
    subset
        Which part, for example ``{"frame": slice(0, 5000)}`` or ``{"frame": [0, 5000]}``;
        counted in whole pixels and frames, before anything is left out.
    downsample
        Every how many to keep, for example ``{"frame": 2, "height": 2, "width": 2}``.
    downsample_strategy
        ``"subset"`` keeps one of so many, ``"mean"`` their mean.
    """
    movie = _open(videos, pattern)
    if len(movie.dims) != 3:
        raise InputError(
            f"A movie has frames of height × width; these data have {len(movie.dims)} dimensions "
            f"({', '.join(movie.dims)}). Choose one channel or plane first."
        )
    if movie.dims != DIMS:
        lengths = dict(zip(DIMS, movie.shape, strict=True))
        grain = dict(zip(DIMS, movie.grain.values(), strict=True))
        movie = replace(movie, lengths=lengths, grain=grain, labels=None, has_names=True)
    if not all(movie.shape):
        raise InputError(f"The movie {movie.name!r} is empty: {_describe(movie)}.")
    if movie.dtype.kind not in "buif":
        raise InputError(f"A movie of {movie.dtype} cannot be worked on. Convert it to numbers.")
    return _reduce(movie, subset or {}, downsample or {}, downsample_strategy)


def natural_key(path: Path) -> list[Any]:
    """Return a key that sorts names as people count.

    Examples
    --------
    >>> sorted(map(Path, ["m10.avi", "m9.avi", "m1.avi"]), key=natural_key)[1].name
    'm9.avi'
    """
    words = re.split(r"(\d+)", path.name.lower())
    return [int(word) if word.isdecimal() else word for word in words]


@dataclass(frozen=True)
class PartReader(Reader):
    """A part of a movie, and every how many of its frames and pixels."""

    movie: Source
    starts: tuple[int, ...]
    steps: tuple[int, ...]
    is_mean: bool

    def __call__(self, ranges: Ranges) -> np.ndarray:
        # Without a mean, what follows the last one kept is not read.
        wanted = tuple(
            (start + low * step, start + ((high * step) if self.is_mean else (high - 1) * step + 1))
            for (low, high), start, step in zip(ranges, self.starts, self.steps, strict=True)
        )
        block = self.movie.read(wanted)
        if not self.is_mean:
            return block[tuple(slice(None, None, step) for step in self.steps)]
        counts = [high - low for low, high in ranges]
        parts = [side for pair in zip(counts, self.steps, strict=True) for side in pair]
        mean = block.reshape(parts).mean(axis=(1, 3, 5), dtype=np.float32)
        is_whole = self.movie.dtype.kind in "bui"
        return np.asarray(np.rint(mean) if is_whole else mean, self.movie.dtype)

    def identity(self) -> str | None:
        found = self.movie.read.identity()
        return found and identify_text(found, self.starts, self.steps, self.is_mean)


@dataclass(frozen=True)
class StackReader(Reader):
    """Movies of one size, one after the other."""

    movies: tuple[Source, ...]

    def __call__(self, ranges: Ranges) -> np.ndarray:
        (first, last), *rest = ranges
        parts, begin = [], 0
        for movie in self.movies:
            length = movie.shape[0]
            start, stop = max(first, begin), min(last, begin + length)
            if start < stop:
                parts.append(movie.read(((start - begin, stop - begin), *rest)))
            begin += length
        return np.concatenate(parts)

    def identity(self) -> str | None:
        found = [movie.read.identity() for movie in self.movies]
        return identify_text(*found) if all(found) else None


def _open(videos: Any, pattern: str | None) -> Source:
    if isinstance(videos, Source):
        return videos
    if isinstance(videos, (list, tuple)) and videos:
        return _open_files([Path(path) for path in videos])
    if not isinstance(videos, (str, os.PathLike)):
        return api.open(videos)
    path = Path(videos).expanduser().absolute()
    if path.is_file() and path.suffix.lower() in SUFFIXES:
        return open_videos([path])
    if not path.is_dir() or any(
        (path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")
    ):
        return api.open(path)
    kinds = (*SUFFIXES, *TIFF_SUFFIXES)
    files = [file for file in path.iterdir() if file.suffix.lower() in kinds and file.is_file()]
    files = [file for file in files if pattern is None or re.search(pattern, file.name)]
    if not files:
        matching = "" if pattern is None else f" that matches {pattern!r}"
        raise InputError(
            f"{str(path)!r} holds no video or TIFF stack{matching}. Looked for {', '.join(kinds)}."
        )
    return _open_files(sorted(files, key=natural_key))


def _open_files(paths: list[Path]) -> Source:
    for path in paths:
        if not path.exists():
            raise InputError(f"{str(path)!r} does not exist.")
    are_videos = [path.suffix.lower() in SUFFIXES for path in paths]
    if all(are_videos):
        return open_videos(paths)
    if any(are_videos):
        names = paths[are_videos.index(True)].name, paths[are_videos.index(False)].name
        raise InputError(f"{names[0]} is a video, {names[1]} is not. Give files of one kind.")
    movies = [_with_frames(api.open(path)) for path in paths]
    first = movies[0]
    for path, movie in zip(paths, movies, strict=True):
        if movie.shape[1:] != first.shape[1:] or movie.dtype != first.dtype:
            raise InputError(
                f"{path.name} is {_describe(movie)}, but {paths[0].name} is {_describe(first)}. "
                "Files of one movie must be alike: leave it out, or open it alone."
            )
    if len(movies) == 1:
        return first
    lengths = {**first.lengths, first.dims[0]: sum(movie.shape[0] for movie in movies)}
    return replace(first, lengths=lengths, read=StackReader(tuple(movies)), labels=None)


def _with_frames(movie: Source) -> Source:
    """Return a single image as a movie of one frame."""
    if len(movie.dims) != 2:
        return movie
    lengths = {"frame": 1, **movie.lengths}
    return replace(movie, lengths=lengths, grain={"frame": 1, **movie.grain}, read=_One(movie))


@dataclass(frozen=True)
class _One(Reader):
    image: Source

    def __call__(self, ranges: Ranges) -> np.ndarray:
        return self.image.read(ranges[1:])[None]

    def identity(self) -> str | None:
        return self.image.read.identity()


def _reduce(
    movie: Source, subset: Mapping[str, Any], downsample: Mapping[str, int], strategy: str
) -> Source:
    if strategy not in ("subset", "mean"):
        raise InputError(f"downsample_strategy={strategy!r} is unknown. Use 'subset' or 'mean'.")
    for argument, given in (("subset", subset), ("downsample", downsample)):
        for dim in given:
            if dim not in DIMS:
                raise InputError(f"{argument}= names {dim!r}. Use {', '.join(map(repr, DIMS))}.")
    starts, lengths, steps = [], {}, []
    for dim, length in movie.lengths.items():
        step = downsample.get(dim, 1)
        if not isinstance(step, int) or step < 1:
            raise InputError(f"downsample={{{dim!r}: {step!r}}}: use a whole number of 1 or more.")
        start, stop, stride = _slice(subset.get(dim, slice(None)), dim).indices(length)
        count = (stop - start) // step if strategy == "mean" else -(-(stop - start) // step)
        if stride != 1 or count < 1:
            raise InputError(
                f"subset and downsample leave nothing of {dim!r}, which has {length}. Give a slice "
                "from a lower to a higher number, without a step."
            )
        starts.append(start)
        steps.append(step)
        lengths[dim] = count
    if lengths == dict(movie.lengths):
        return movie
    reader = PartReader(movie, tuple(starts), tuple(steps), strategy == "mean")
    grain = {
        dim: max(1, grain // step)
        for (dim, grain), step in zip(movie.grain.items(), steps, strict=True)
    }
    return replace(movie, lengths=lengths, read=reader, grain=grain, labels=None)


def _slice(given: Any, dim: str) -> slice:
    """Return a slice as it was given, or as the two numbers that a file of parameters has."""
    if isinstance(given, slice):
        return given
    if isinstance(given, (list, tuple)) and len(given) == 2:
        return slice(*given)
    raise InputError(f"subset={{{dim!r}: {given!r}}}: give a slice, or first and last as [0, 100].")


def _describe(movie: Source) -> str:
    return f"{' × '.join(map(str, movie.shape))} {movie.dtype}"
