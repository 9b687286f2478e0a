"""What a user might write, for tests that run it unchanged in every setting.

As a program, with a folder for results, it does so in the settings that need no SLURM.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import barrow


def smooth(image):
    """Return the mean of each pixel and the four next to it."""
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)), mode="symmetric")
    across = padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]
    along = padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1]
    return (image + across + along) / np.float32(5)


def contrast(image, smoothed, by=1.0):
    return by * (image.astype("f8") - smoothed)


def order(image):
    """Return for each pixel in which frame it is brightest."""
    return image.argmax(axis=0).astype("i2")


def three_calls(folder, **options):
    """Return the results of three calls, each of which uses the one before."""
    image = np.random.default_rng(7).random((6, 90, 80), dtype="f4")
    smoothed = barrow.map(smooth, image, halo={1: 1, 2: 1}, quiet=True, **options)
    place = Path(folder, "contrast.zarr")
    sharp = barrow.map(
        contrast, image, smoothed, kwargs={"by": 3.0}, to=place, quiet=True, **options
    )
    brightest = barrow.map(order, sharp, quiet=True, **options)
    return smoothed, sharp[:], brightest[:]


def expect():
    """Return what they should be."""
    image = np.random.default_rng(7).random((6, 90, 80), dtype="f4")
    smoothed = smooth(image)
    sharp = contrast(image, smoothed, by=3.0)
    return smoothed, sharp, order(sharp)


def is_expected(results):
    """Tell whether all results are the same to the last bit."""
    pairs = zip(results, expect(), strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def main(folder):
    """Run the same calls in five settings, and print for each where they ran and how it went."""
    from distributed import Client, LocalCluster

    def start(stack, **sizes):
        made = LocalCluster(
            host=None if sizes.get("processes") is False else "127.0.0.1",
            dashboard_address=None,
            threads_per_worker=1,
            **sizes,
        )
        return stack.enter_context(made)

    for setting in ("no cluster", "cluster=False", "LocalCluster", "address", "threads"):
        place = Path(folder, setting.replace(" ", "-"))
        place.mkdir()
        with ExitStack() as stack:
            options = {}
            if setting == "cluster=False":
                options["cluster"] = False
            elif setting == "LocalCluster":
                stack.enter_context(Client(start(stack, n_workers=2)))
            elif setting == "address":
                options["cluster"] = start(stack, n_workers=1).scheduler_address
            elif setting == "threads":
                cluster = start(stack, n_workers=2, processes=False)
                stack.enter_context(Client(cluster))
            engine = barrow.plan(np.sqrt, np.ones((4, 4)), quiet=True, **options).engine
            print(f"{setting}: {engine}, {is_expected(three_calls(place, **options))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
