"""Does the program of SpatialData's page on Dask run in the memory that the page gives it?

The workflow as the page has it: a parsed image of random numbers, two ``map_raster`` in spans,
fusion switched off, workers of one thread and 5 GB, memory sampled by Dask. Only the import of
``map_raster`` differs. Each number of workers runs in processes of its own, and is measured from
outside; then ``barrow.scaling`` repeats the work with 1, 2 and 4 workers and draws time and memory.

Run it with the Python of an environment that holds both, see ``peers/environments.py``.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from measure import describe_machine, measure, write_json

SIDE, CHUNKS, MEMORY = 10000, (1, 1000, 1000), "5GB"
IMPORTS = ("barrow", "spatialdata")


def add_1(x):
    return x + 1


def add_2(x):
    return x + 2


def find_map_raster(name):
    """Return the function of the page, or the one that takes its place: all that differs."""
    if name == "spatialdata":
        from spatialdata import map_raster
    else:
        from barrow.fields.spatial import map_raster
    return map_raster


def workflow(map_raster, side):
    """Do what the page does, with the client that is alive; return the values."""
    import dask.array as da
    from distributed import span
    from spatialdata.models import Image2DModel

    pixels = da.random.default_rng(0).random((3, side, side), chunks=CHUNKS)
    image = Image2DModel.parse(pixels, dims=("c", "y", "x"))
    with span("add 1"):
        first = map_raster(image, func=add_1)
    with span("add 2"):
        second = map_raster(first, func=add_2)
    with span("compute"):
        return second.compute()


def run_page(name, workers, side):
    """Run the page on a cluster of its own; print what Dask's sampler saw."""
    import dask
    from distributed import Client, LocalCluster
    from distributed.diagnostics import MemorySampler

    dask.config.set({"optimization.fuse.active": False})
    sampler = MemorySampler()
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=MEMORY, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        sampler.sample("page", client=client, interval=0.1),
    ):
        result = workflow(find_map_raster(name), side)
        mean = float(result.mean())
    assert abs(mean - 3.5) < 5e-3, mean
    sampled = float(sampler.to_pandas()["page"].max()) / 2**30
    print(f"mean {mean:.4f}, MemorySampler {sampled:.2f} GiB")


def scale(side, repeats, folder):
    """Measure the work with 1, 2 and 4 workers; write the aligned plot beside the numbers."""
    import barrow

    map_raster = find_map_raster("barrow")
    found = barrow.scaling(
        lambda: workflow(map_raster, side), workers=(1, 2, 4), repeats=repeats, memory=MEMORY
    )
    print(found)
    for kind in ("html", "png", "json"):
        found.save(folder / f"spatial-scaling.{kind}")
    print("kept in", folder / "spatial-scaling.html")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=SIDE, help="pixels along y and x")
    parser.add_argument("--workers", type=int, nargs="+", default=(1, 2, 4))
    parser.add_argument("--original", action="store_true", help="run SpatialData's own as well")
    parser.add_argument("--scaling", type=int, metavar="REPEATS", default=0)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--do", nargs=2, metavar=("IMPORT", "WORKERS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do:
        run_page(options.do[0], int(options.do[1]), options.side)
        return
    rows = []
    for name in IMPORTS if options.original else IMPORTS[:1]:
        for workers in options.workers:
            command = [sys.executable, __file__, "--side", options.side, "--do", name, workers]
            found = measure([str(word) for word in command])
            last = (found.output.strip().splitlines() or [""])[-1]
            rows.append(
                {"import": name, "workers": workers, "completed": not found.exit_code,
                 "wall_seconds": found.wall_seconds, "cpu_seconds": found.cpu_seconds,
                 "peak_bytes": found.peak_bytes, "said": last[:200]}
            )  # fmt: skip
            print(
                f"{name:12} {workers} workers of {MEMORY}: "
                f"{'completed' if not found.exit_code else 'FAILED'}, {found.wall_seconds:.1f} s, "
                f"CPU {found.cpu_seconds:.1f} s, peak {found.peak_bytes / 2**30:.2f} GiB; {last}",
                flush=True,
            )
    content = {"question": __doc__.splitlines()[0], **describe_machine(), "side": options.side}
    print("kept in", write_json("spatial-page", {**content, "runs": rows}, options.folder))
    if options.scaling:
        scale(options.side, options.scaling, options.folder)


if __name__ == "__main__":
    main()
