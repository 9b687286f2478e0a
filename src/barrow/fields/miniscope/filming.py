"""A short video of a result: the movie as it was, clean and in place, and as the cells say."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.miniscope.opening import load_videos
from barrow.fields.miniscope.results import Result
from barrow.fields.miniscope.videos import write_frames

_AT_ONCE = 64


def film(
    result: Result,
    videos: Any,
    path: str | PathLike[str] | None = None,
    *,
    frames: tuple[int, int] = (0, 400),
    fps: float = 20.0,
) -> Path:
    """Write a video of three movies side by side: raw, processed, and what the cells explain.

    Parameters
    ----------
    result
        What :func:`run` returned or :func:`load` opens.
    videos
        What the result was made from.
    path
        Where to; by default ``film.mp4`` in the folder of the result.
    frames
        The first, and the one after the last.
    """
    raw = load_videos(videos, **result.params["load_videos"])
    processed = load_videos(result.folder / "steps" / "movie.zarr")
    first, last = max(0, frames[0]), min(frames[1], raw.lengths["frame"])
    if raw.shape != processed.shape or not first < last:
        raise InputError(
            f"frames={frames!r} of {raw.shape} cannot be shown beside the {processed.shape} of "
            f"{str(result.folder)!r}. Give the videos that it was made from, and frames they have."
        )
    place = Path(path) if path is not None else result.folder / "film.mp4"
    sides = _sides(result, (raw, processed), first, last)
    write_frames(place, sides, fps=fps, codec="mpeg4")
    return place


def _sides(result: Result, movies: tuple[Any, Any], first: int, last: int) -> Iterator[np.ndarray]:
    A, C = np.asarray(result.A).reshape(result.units, -1), np.asarray(result.C[:, first:last])
    # What is written must have even sides: the colours of a video have half its resolution.
    height, width = (side // 2 * 2 for side in movies[0].shape[1:])
    # Sparse light is seen by its root; what is explained has the light of what was processed.
    bright = max(1e-9, float(np.percentile(result.max_proj, 99)))
    raw = movies[0].read(((first, first + 1), *movies[0].everything[1:]))
    scales = (2 * max(1e-9, float(np.percentile(raw, 99.8))), bright, bright)
    for start in range(first, last, _AT_ONCE):
        stop = min(last, start + _AT_ONCE)
        blocks = [movie.read(((start, stop), *movie.everything[1:])) for movie in movies]
        light = C[:, start - first : stop - first].T @ A
        blocks.append(light.reshape(blocks[0].shape))
        parts = [
            255 * np.sqrt(np.clip(block[:, :height, :width] / scale, 0, 1))
            for block, scale in zip(blocks, scales, strict=True)
        ]
        for frame in np.concatenate(parts, axis=2).astype(np.uint8):
            yield np.repeat(frame[..., None], 3, axis=2)
