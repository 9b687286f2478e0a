"""Write a movie of minisim as AVI, and its truth beside it: run by a Python that has minisim.

    python make_minisim.py FOLDER VARIANT [SECONDS [SIDE]]

VARIANT is one of MOVIES; SIDE is in pixels, and the number of cells goes with it. The folder
then holds msCam1.avi, msCam2.avi, ... and truth.npz.
"""

import sys
from pathlib import Path

import cv2
import numpy as np
from minisim import spec
from minisim.testing import make_recording

MOVIES = {
    "usual": {"n_cells": 60, "seed": 1, "photons": 40.0},
    "dense": {"n_cells": 120, "seed": 2, "photons": 40.0},
    "noisy": {"n_cells": 60, "seed": 3, "photons": 15.0},
}
FRAMES_OF_A_FILE = 400


def main(folder: Path, variant: str, seconds: float = 50.0, side: float = 256) -> None:
    """Write the movie and the truth."""
    settings = dict(MOVIES[variant])
    settings["n_cells"] = round(settings["n_cells"] * (side / 256) ** 2)
    photons = settings.pop("photons")
    made = make_recording(
        **settings,
        n_px=int(side),
        duration_s=seconds,
        motion=True,
        activity=spec.CellActivity(),
        sensor=spec.Sensor(photons_per_unit=photons),
        extra_steps=[spec.Neuropil(), spec.Vignette(), spec.Leakage(), spec.Bleaching()],
    )
    movie = np.asarray(made.observed)
    if movie.dtype != np.uint8:
        movie = np.clip(np.rint(movie), 0, 255).astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(movie), FRAMES_OF_A_FILE), start=1):
        frames = movie[start : start + FRAMES_OF_A_FILE]
        code = cv2.VideoWriter_fourcc(*"FFV1")
        size = movie.shape[2], movie.shape[1]
        writer = cv2.VideoWriter(str(folder / f"msCam{number}.avi"), code, 20.0, size, False)
        for frame in frames:
            writer.write(frame)
        writer.release()
    truth = made.ground_truth
    np.savez_compressed(
        folder / "truth.npz",
        A=np.asarray(truth.A_observed, np.float32),
        C=truth.C,
        S=truth.S,
        motion=truth.shifts,
        detectable=truth.detectable,
    )
    print(movie.shape, movie.dtype, float(movie.mean()), int(movie.max()), truth.detectable.sum())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(float, sys.argv[3:]))
