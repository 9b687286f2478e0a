"""Make miniscope movies whose truth is known: cells, motion, neuropil, optics, noise.

Every frame follows from the seed and its own number, so a movie can be made in any
order and in any parts, and never has to fit the memory.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.identity import identify_text

_MARGIN = 24
"""Pixels around the field of view that motion may bring into sight."""


@dataclass(frozen=True)
class Scene:
    """What a simulated movie shows; the same scene is always the same movie."""

    frames: int = 1000
    height: int = 256
    width: int = 256
    cells: int = 60
    seed: int = 0
    fps: float = 20.0
    radius: float = 4.0
    """Standard deviation of a cell's footprint in pixels; each differs by up to a fifth."""
    rate: float = 0.35
    """Spikes of a cell in a second."""
    decay: float = 0.6
    """Seconds after which a transient has fallen to 1/e."""
    amplitude: float = 14.0
    """Grey levels that a spike adds in the middle of a cell."""
    background: float = 55.0
    neuropil: float = 8.0
    leakage: float = 12.0
    vignette: float = 0.5
    """Part of the light that is lost in the corners."""
    bleaching: float = 0.15
    """Part of the light that is lost from the first frame to the last."""
    motion: float = 3.0
    """Pixels; how far the tissue moves from its place, at most about three times that."""
    noise: float = 0.25
    """Variance of a grey level divided by its mean, as of photons."""

    def __post_init__(self) -> None:
        if min(self.frames, self.height, self.width) < 1 or self.cells < 0:
            raise InputError(
                f"A movie of {self.frames} × {self.height} × {self.width} with {self.cells} cells "
                "cannot be made. Give lengths of 1 or more, and 0 cells or more."
            )


@dataclass(frozen=True)
class Truth:
    """What is known about a simulated movie."""

    A: np.ndarray
    """Footprints: unit × height × width, where the tissue lies without motion."""
    C: np.ndarray
    """Calcium: unit × frame."""
    S: np.ndarray
    """Spikes: unit × frame."""
    motion: np.ndarray
    """Where the tissue is in each frame: frame × (height, width)."""


def simulate(scene: Scene | None = None, **settings: Any) -> tuple[Source, Truth]:
    """Return a movie that is made when it is read, and its truth.

    Examples
    --------
    >>> movie, truth = simulate(frames=20, height=64, width=48, cells=3, seed=1)
    >>> movie.lengths, truth.C.shape
    ({'frame': 20, 'height': 64, 'width': 48}, (3, 20))
    """
    scene = scene or Scene(**settings)
    lengths = {"frame": scene.frames, "height": scene.height, "width": scene.width}
    parts = _compose(scene)
    m = _MARGIN
    footprints = parts.footprints[:, m : m + scene.height, m : m + scene.width]
    truth = Truth(footprints, parts.calcium, parts.spikes, parts.motion)
    return Source("simulated", lengths, np.dtype("u1"), SceneReader(scene)), truth


def render(scene: Scene, start: int, stop: int) -> np.ndarray:
    """Return frames of a scene: frame × height × width, 8 bits."""
    import cv2

    parts = _compose(scene)
    h, w, m = scene.height, scene.width, _MARGIN
    out = np.empty((stop - start, h, w), np.uint8)
    for frame in range(start, stop):
        tissue = parts.texture + parts.haze @ parts.neuropil[:, frame]
        for unit in range(scene.cells):
            rows, cols = parts.windows[unit]
            tissue[rows, cols] += parts.calcium[unit, frame] * parts.footprints[unit, rows, cols]
        dy, dx = parts.motion[frame]
        turn = np.array([[1, 0, dx - m], [0, 1, dy - m]], np.float32)
        seen = cv2.warpAffine(tissue, turn, (w, h), flags=cv2.INTER_CUBIC)
        light = parts.leakage + parts.optics * parts.light[frame] * seen
        chance = np.random.default_rng((scene.seed, 7, frame))
        light += chance.standard_normal((h, w), np.float32) * np.sqrt(
            scene.noise * np.maximum(light, 0.0)
        )
        out[frame - start] = np.clip(np.rint(light), 0, 255)
    return out


@dataclass(frozen=True)
class SceneReader(Reader):
    """Frames that are made when they are read."""

    scene: Scene

    def __call__(self, ranges: Ranges) -> np.ndarray:
        (first, last), (top, bottom), (left, right) = ranges
        return render(self.scene, first, last)[:, top:bottom, left:right]

    def identity(self) -> str | None:
        return identify_text(self.scene)


@dataclass(frozen=True)
class _Parts:
    footprints: np.ndarray
    windows: list[tuple[slice, slice]]
    calcium: np.ndarray
    spikes: np.ndarray
    motion: np.ndarray
    texture: np.ndarray
    haze: np.ndarray
    neuropil: np.ndarray
    optics: np.ndarray
    leakage: np.ndarray
    light: np.ndarray
    extra: dict[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=4)
def _compose(scene: Scene) -> _Parts:
    from scipy.ndimage import gaussian_filter
    from scipy.signal import lfilter

    chance = np.random.default_rng(scene.seed)
    shape = scene.height + 2 * _MARGIN, scene.width + 2 * _MARGIN
    centres = _place(scene, chance)
    footprints = np.zeros((scene.cells, *shape), np.float32)
    windows = []
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    for unit, (cy, cx) in enumerate(centres):
        tall, wide = scene.radius * chance.uniform(0.8, 1.2, 2)
        reach = int(np.ceil(4 * max(tall, wide)))
        top, left = max(0, int(cy) - reach), max(0, int(cx) - reach)
        window = slice(top, int(cy) + reach + 1), slice(left, int(cx) + reach + 1)
        distance = ((y[window] - cy) / tall) ** 2 + ((x[window] - cx) / wide) ** 2
        footprints[unit][window] = np.exp(-0.5 * distance)
        windows.append(window)
    spikes = chance.poisson(scene.rate / scene.fps, (scene.cells, scene.frames))
    keep = np.exp(-1 / (scene.decay * scene.fps))
    gain = scene.amplitude * chance.uniform(0.7, 1.5, (scene.cells, 1))
    calcium = lfilter([1.0], [1.0, -keep], spikes * gain, axis=1).astype(np.float32)

    slow = chance.standard_normal((scene.frames, 2))
    path = lfilter([0.1], [1.0, -0.9], slow, axis=0)
    path = path / max(float(path.std()), 1e-9) * scene.motion if scene.frames > 1 else path * 0
    motion = np.clip(path, 0.9 - _MARGIN, _MARGIN - 0.9).astype(np.float32)

    texture = (
        gaussian_filter(chance.standard_normal(shape), 12) * 12
        + gaussian_filter(chance.standard_normal(shape), 3) * 3
    )
    haze = np.stack([gaussian_filter(chance.standard_normal(shape), 25) for _ in range(3)], -1)
    haze = np.abs(haze) / max(float(np.abs(haze).max()), 1e-9)
    waves = lfilter([1.0], [1.0, -0.98], chance.standard_normal((3, scene.frames)), axis=1)
    neuropil = 1 + waves / max(float(waves.std()), 1e-9) / 3
    v, u = np.mgrid[-1 : 1 : scene.height * 1j, -1 : 1 : scene.width * 1j]
    return _Parts(
        footprints=footprints,
        windows=windows,
        calcium=calcium,
        spikes=spikes,
        motion=motion,
        texture=(scene.background * (1 + 0.1 * texture)).astype(np.float32),
        haze=(haze * scene.neuropil).astype(np.float32),
        neuropil=neuropil.astype(np.float32),
        optics=(1 - scene.vignette * (u**2 + v**2) / 2).astype(np.float32),
        leakage=(scene.leakage * np.exp(-2 * ((u + 0.4) ** 2 + (v - 0.3) ** 2))).astype(np.float32),
        light=np.linspace(1, 1 - scene.bleaching, scene.frames, dtype=np.float32),
    )


def _place(scene: Scene, chance: np.random.Generator) -> np.ndarray:
    """Return centres that keep a distance from each other, as far as there is room."""
    edge = _MARGIN + 2.5 * scene.radius
    low = np.array([edge, edge])
    high = np.maximum(
        low + 1, [scene.height + 2 * _MARGIN - edge, scene.width + 2 * _MARGIN - edge]
    )
    centres = np.empty((0, 2))
    apart = 3.5 * scene.radius
    while len(centres) < scene.cells:
        for candidate in chance.uniform(low, high, (200, 2)):
            if len(centres) < scene.cells and (np.hypot(*(centres - candidate).T) >= apart).all():
                centres = np.vstack([centres, candidate])
        apart *= 0.9
    return centres


def write_video(movie: Any, path: str | Path, fps: float = 20.0, codec: str = "ffv1") -> Path:
    """Write frames of 8 bits into a video; ``ffv1`` and ``rawvideo`` lose nothing.

    Parameters
    ----------
    movie
        A source, or an array of frame × height × width.
    """
    from barrow.fields.miniscope.videos import write_frames

    count = movie.lengths["frame"] if isinstance(movie, Source) else len(movie)

    def frames() -> Any:
        for start in range(0, count, 64):
            stop = min(count, start + 64)
            if isinstance(movie, Source):
                yield from movie.read(((start, stop), *movie.everything[1:]))
            else:
                yield from np.asarray(movie[start:stop])

    return write_frames(Path(path), frames(), fps=fps, codec=codec)
