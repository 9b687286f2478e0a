"""Smooth an image of a SpatialData object, write it, read it back and sum points in regions."""

import sys
from pathlib import Path

import dask.array as da
import numpy as np
import spatialdata
from dask.distributed import Client, LocalCluster
from spatialdata.datasets import blobs
from spatialdata.models import Image2DModel

if __name__ == "__main__":
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        data = blobs(length=512)
        pixels = da.random.random((3, 2048, 2048), chunks=(1, 512, 512))
        smooth = pixels.map_overlap(lambda x: (x + np.roll(x, 1, -1)) / 2, depth=1)
        data["smooth"] = Image2DModel.parse(smooth, dims=("c", "y", "x"))
        place = Path(sys.argv[1]) / "slide.zarr"
        data.write(place)
        again = spatialdata.read_zarr(place)
        total = again.aggregate(values="blobs_points", by="blobs_circles", agg_func="count")
        print(float(again["smooth"].mean().compute()), total)
