"""Ready steps for images: even out brightness, remove background, find a shift."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.spatial.mapping import map_raster
from barrow.fields.spatial.means import Means
from barrow.fields.spatial.raster import open_raster, pick_channel
from barrow.fields.spatial.readers import coarser, pick
from barrow.fields.spatial.statistics import histogram
from barrow.model.source import Source

# A shift is looked for in images of at most this many pixels along a side, then refined.
SEARCHED = 1024
# Windows at full resolution by which it is refined, along each side.
WINDOWS = 4


def normalize(
    image: Any, low: float = 1.0, high: float = 99.8, *, is_clipped: bool = False, **options: Any
) -> Any:
    """Scale each channel so that two percentiles of the whole image become 0 and 1.

    Parameters
    ----------
    low, high
        Percentiles. They are those of all pixels, so blocks fit each other.
    is_clipped
        Whether values beyond are cut off.
    options
        Of :func:`barrow.spatial.map_raster`.

    Examples
    --------
    >>> normalize(np.arange(101, dtype="u1").reshape(1, 1, 101), 0, 100)[0, 0, ::50].tolist()
    [0.0, 0.5, 1.0]
    """
    if not 0 <= low < high <= 100:
        raise InputError(f"low={low!r} and high={high!r} are no percentiles in order.")
    source = open_raster(image).source
    means = Means(**{name: options[name] for name in _SHARED if name in options})
    channels = (
        [pick(source, n) for n in range(source.lengths["c"])] if "c" in source.dims else [source]
    )
    bounds = np.array([percentiles(channel, (low, high), means) for channel in channels], "f4")
    return map_raster(image, Scale(bounds, is_clipped), **options)


_SHARED = ("memory", "cluster", "quiet")


def percentiles(source: Source, shares: Sequence[float], means: Means) -> list[float]:
    """Return values that so many percent of the pixels do not exceed."""
    counts, edges = histogram(source, means)
    below = np.cumsum(counts)
    centres = (edges[1:] + edges[:-1]) / 2
    places = [np.searchsorted(below, max(1, share / 100 * below[-1])) for share in shares]
    return [float(centres[min(place, len(centres) - 1)]) for place in places]


@dataclass(frozen=True, eq=False)
class Scale:
    """Scales each channel by bounds of its own."""

    bounds: np.ndarray
    is_clipped: bool

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """Return a block of all channels, or of an image without channels."""
        shape = (-1,) + (1,) * (block.ndim - 1) if len(self.bounds) > 1 else (1,) * block.ndim
        low, high = (bound.reshape(shape) for bound in self.bounds.T)
        scaled = (block.astype(np.float32) - low) / np.maximum(high - low, np.float32(1e-6))
        return np.asarray(np.clip(scaled, 0, 1) if self.is_clipped else scaled)


def background(image: Any, size: int = 51, **options: Any) -> Any:
    """Remove what is wider than an object: subtract the opening with a square (white top-hat).

    Parameters
    ----------
    size
        Side of the square in pixels; wider than the objects.
    options
        Of :func:`barrow.spatial.map_raster`.

    Examples
    --------
    >>> image = np.full((1, 30, 30), 7)
    >>> image[0, 10:13, 10:13] = 9
    >>> int(background(image, 5).sum())
    18
    """
    if size < 1:
        raise InputError(f"size={size!r} is no side of a square: use 1 or more.")
    return map_raster(image, remove_background, {"size": size}, depth=size, border=None, **options)


def remove_background(block: np.ndarray, size: int) -> np.ndarray:
    """Return a block without what is wider than a square, plane by plane."""
    from scipy import ndimage

    square = (1,) * (block.ndim - 2) + (size, size)
    return np.asarray(block - ndimage.grey_opening(block, square))


def register(
    fixed: Any,
    moving: Any,
    *,
    channel: Any = 0,
    memory: Any = None,
    cluster: Any = None,
    quiet: bool = False,
) -> dict[str, int]:
    """Find how far one image is shifted against another.

    A coarse shift by phase correlation of both images at a small scale, then the exact one by
    windows at full resolution; only these are read.

    Returns
    -------
    dict
        For y and x: where a pixel of ``fixed`` at 0 lies in ``moving``.

    Examples
    --------
    >>> image = np.random.default_rng(0).random((200, 200))
    >>> register(image[20:180, 10:170], image[13:173, 15:175], quiet=True)
    {'y': 7, 'x': -5}
    """
    sources = [_plane(data, channel) for data in (fixed, moving)]
    means = Means(memory=memory, cluster=cluster, quiet=quiet)
    longest = max(n for source in sources for n in source.shape)
    factor = max(1, -(-longest // SEARCHED))
    small = [_read_coarse(source, factor, means) for source in sources]
    shape = tuple(map(min, small[0].shape, small[1].shape))
    cut = tuple(slice(0, n) for n in shape)
    shift = np.array(find_shift(small[0][cut], small[1][cut])) * factor
    if factor > 1:
        shift = _refine(sources, shift, factor)
    return {"y": int(shift[0]), "x": int(shift[1])}


def find_shift(fixed: np.ndarray, moving: np.ndarray) -> tuple[int, int]:
    """Return where the origin of one image lies in another of the same shape."""
    power = _cross_power(fixed, moving)
    return _peak(power, fixed.shape)


def _cross_power(fixed: np.ndarray, moving: np.ndarray) -> np.ndarray:
    windows = [np.hanning(n + 2)[1:-1] for n in fixed.shape]
    taper = np.outer(*windows)
    waves = [np.fft.rfft2((image - image.mean()) * taper) for image in (fixed, moving)]
    power = waves[1] * np.conj(waves[0])
    return np.asarray(power / np.maximum(np.abs(power), 1e-12))


def _peak(power: np.ndarray, shape: tuple[int, ...], most: int | None = None) -> tuple[int, int]:
    found = np.fft.irfft2(power, shape)
    if most is not None:
        far = [np.minimum(np.arange(n), n - np.arange(n)) > most for n in shape]
        found[far[0]] = found[:, far[1]] = -np.inf
    at = np.unravel_index(int(np.argmax(found)), shape)
    y, x = (int(i) - n if i > n // 2 else int(i) for i, n in zip(at, shape, strict=True))
    return y, x


def _refine(sources: Sequence[Source], shift: np.ndarray, factor: int) -> np.ndarray:
    """Return the exact shift near a coarse one, by windows spread over both images."""
    side = max(64, 8 * factor)
    low = np.maximum(0, -shift)
    high = np.minimum(sources[0].shape, np.array(sources[1].shape) - shift) - side
    if (high < low).any():
        return shift
    power: Any = 0
    for y in np.linspace(low[0], high[0], WINDOWS).astype(int):
        for x in np.linspace(low[1], high[1], WINDOWS).astype(int):
            one = sources[0].read(((y, y + side), (x, x + side)))
            y2, x2 = y + shift[0], x + shift[1]
            other = sources[1].read(((y2, y2 + side), (x2, x2 + side)))
            power = power + _cross_power(one.astype(float), other.astype(float))
    return np.asarray(shift + np.array(_peak(power, (side, side), 2 * factor)))


def _plane(data: Any, channel: Any) -> Source:
    source = open_raster(data).source
    if "z" in source.lengths:
        raise InputError("register finds shifts of planes. Project z away first, for example with "
                         "map_raster(data, lambda x: x.max(axis=1)).")  # fmt: skip
    if "c" in source.lengths:
        source = pick(source, pick_channel(source, channel))
    return replace(source, labels=None)


def _read_coarse(source: Source, factor: int, means: Means) -> np.ndarray:
    factors: Mapping[str, int] = dict.fromkeys(source.dims, factor)
    values = means.map(np.float32, coarser(source, dict(factors), "mean"), name="coarse")
    return np.asarray(values)
