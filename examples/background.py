"""Take the background away from an image that may be larger than memory.

Run it with ``python examples/background.py``; it makes a small image first.
"""

import tempfile
from pathlib import Path

import numpy as np
import xarray

import barrow


def subtract_background(image, radius):
    """Subtract the mean of the square around each pixel, channel by channel."""
    widths = [(0, 0), (radius, radius), (radius, radius)]
    padded = np.pad(image.astype("f4"), widths, mode="symmetric")
    size = 2 * radius + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))
    return image - windows.mean(axis=(-2, -1))


def main():
    with tempfile.TemporaryDirectory() as folder:
        values = np.random.default_rng(0).integers(0, 4095, (2, 300, 400), "u2")
        image = xarray.DataArray(values, dims=("c", "y", "x"), coords={"c": [405, 488]})
        flat = barrow.map(
            subtract_background,
            image,
            halo={"y": 5, "x": 5},
            kwargs={"radius": 5},
            to=Path(folder) / "flat.zarr",
        )
        print(flat)
        print("brightest pixel:", barrow.reduce(np.max, flat, combine=max))


if __name__ == "__main__":
    main()
