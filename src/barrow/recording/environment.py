"""In what surroundings a program runs: its Python and the packages it may depend on."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = (
    "barrow",
    "numpy",
    "scipy",
    "dask",
    "distributed",
    "dask-jobqueue",
    "zarr",
    "xarray",
    "numba",
    "pandas",
    "awkward",
    "coffea",
    "spatialdata",
)


def describe_environment() -> dict[str, Any]:
    """Return the versions of all that a result may depend on."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "versions": versions,
    }
