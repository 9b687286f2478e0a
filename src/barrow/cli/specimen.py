"""What the demo works on: a made-up microscope image, and a filter for it.

Plain NumPy that knows nothing of chunks, as a scientist would write it.
"""

from pathlib import Path

import numpy as np

WAVELENGTHS = (405, 488, 561)
TILE = 1024
HALO = 5
"""How far `enhance` looks: 1 + 4 pixels."""


def write_slide(path: Path, side: int) -> None:
    """Write an image of cells with noise, one tile after the other."""
    import xarray
    import zarr

    shape = (len(WAVELENGTHS), side, side)
    coords = xarray.Dataset(coords={"c": list(WAVELENGTHS)})
    coords.to_zarr(path, zarr_format=3, consolidated=False)
    image = zarr.create_array(
        store=str(path / "image"),
        shape=shape,
        chunks=(1, min(TILE, side), min(TILE, side)),
        dtype="uint16",
        dimension_names=["c", "y", "x"],
        compressors=None,  # noise does not shrink
    )
    cells = _draw_cells()
    random = np.random.default_rng(7)
    for channel in range(shape[0]):
        for y in range(0, side, TILE):
            for x in range(0, side, TILE):
                # Another part of the drawing each time, so that no two tiles are alike.
                tile = np.roll(cells, random.integers(0, TILE, 2), axis=(0, 1))
                tile = tile[: side - y, : side - x]
                noise = random.standard_normal(tile.shape, "f4")
                noise *= 60
                noise += tile
                np.clip(noise, 0, 4095, out=noise)
                image[channel, y : y + TILE, x : x + TILE] = noise.astype("u2")


def enhance(image: np.ndarray) -> np.ndarray:
    """Take away noise and background: a fine blur minus a coarse one."""
    fine = blur(image.astype("f4"), 1)
    fine -= blur(fine, 4)
    rounded: np.ndarray = np.rint(fine).astype("i2")
    return rounded


def blur(image: np.ndarray, step: int) -> np.ndarray:
    """Weigh each pixel with its neighbours at a distance, 1 2 1, along y and along x."""
    for axis in (-2, -1):
        widths = [(0, 0)] * image.ndim
        widths[axis] = (step, step)
        padded = np.moveaxis(np.pad(image, widths, mode="symmetric"), axis, 0)
        blurred = padded[: -2 * step] + padded[2 * step :]
        blurred += padded[step:-step]
        blurred += padded[step:-step]
        blurred *= 0.25
        image = np.moveaxis(blurred, 0, axis)
    return image


def count_brightness(image: np.ndarray) -> np.ndarray:
    """Return how many pixels have each brightness, in 16 classes of 256."""
    return np.bincount((image >> 8).ravel(), minlength=16)


def _draw_cells() -> np.ndarray:
    """Return a tile with round cells on an uneven background."""
    random = np.random.default_rng(3)
    y, x = np.mgrid[:TILE, :TILE].astype("f4")
    tile = 300 + 100 * np.sin(y * (2 * np.pi / TILE)) * np.sin(x * (2 * np.pi / TILE))
    y, x = np.mgrid[-24:25, -24:25]
    for top, left, radius in random.integers((0, 0, 5), (TILE - 49, TILE - 49, 12), (300, 3)):
        cell = 1500 * np.exp(-(y**2 + x**2) / (2 * radius**2))
        tile[top : top + 49, left : left + 49] += cell
    drawn: np.ndarray = tile.astype("f4")
    return drawn
