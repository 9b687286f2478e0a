"""Is a slide mapped and segmented as quickly as its function allows, within its memory?

Two parts, each from start to end in processes of its own:

1. The raster example of SpatialData's documentation (3 × 10000 × 10000 random floats, plus one,
   plus two, values in memory): SpatialData's ``map_raster`` on two workers of 8 GB, the same
   program with only the import changed on two workers of 5 GB, Dask's threads, NumPy, and barrow
   left to itself. SpatialData needs an environment of its own: make it with
   ``python -m benchmarks.peers.environments spatialdata`` and give ``--spatialdata FOLDER``.
2. Segmentation of a synthetic slide of 20000 × 20000: five cuts, with 4 GB. Are all labels the
   same? F1 against the truth; wall against the CPU time of the plain function, divided by the
   cores: called once with the whole slide, and, which suits it better, with a crop at a time; the
   uncut result on a crop; memory of all processes against the limit.

``--quick`` does both on small images, in about two minutes; ``--only segment --side 5000`` does
the second alone on a slide of another size.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from measure import Measurement, describe_machine, format_table, measure, write_json

SHAPE, CHUNKS = (3, 10000, 10000), (1, 1000, 1000)
SLIDE, CROP = 20000, 4000
CUTS = ("planned", "1500", "2900", "4100", "20000,1000")
MEMORY = "4GB"
HERE = Path(__file__).resolve()


def add_one(x):
    return x + 1


def add_two(x):
    return x + 2


def random_image(shape):
    """The image of the documentation, lazy; with or without SpatialData's model."""
    import dask.array as da
    import xarray

    return xarray.DataArray(
        da.random.default_rng(0).random(shape, chunks=CHUNKS), dims=("c", "y", "x")
    )


def documented(shape, map_raster, memory):
    """The program of the documentation; which ``map_raster`` is all that differs."""
    from distributed import Client, LocalCluster
    from spatialdata.models import Image2DModel

    image = Image2DModel.parse(random_image(shape).data, dims=("c", "y", "x"))
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        first = map_raster(image, func=add_one)
        return map_raster(first, func=add_two).compute().values


def spatialdata_8gb(shape):
    from spatialdata import map_raster

    return documented(shape, map_raster, "8GB")


def import_changed_5gb(shape):
    from barrow.fields.spatial import map_raster

    return documented(shape, map_raster, "5GB")


def numpy_blocks(shape):
    import numpy as np

    random = np.random.default_rng(0)
    out = np.empty(shape)
    _, height, width = CHUNKS
    for c in range(shape[0]):
        for y in range(0, shape[1], height):
            for x in range(0, shape[2], width):
                block = random.random((height, width))
                block += 1
                block += 2
                out[c, y : y + height, x : x + width] = block
    return out


def dask_threads(shape):
    lazy = random_image(shape).data.map_blocks(add_one).map_blocks(add_two)
    return lazy.compute(scheduler="threads")


def barrow_itself(shape):
    from barrow.fields.spatial import map_raster

    first = map_raster(random_image(shape), add_one, quiet=True)
    return map_raster(first, add_two, quiet=True).compute().values


VARIANTS = {
    "NumPy, one thread": numpy_blocks,
    "Dask threads": dask_threads,
    "barrow, left to itself": barrow_itself,
    "SpatialData, 2 workers of 8 GB": spatialdata_8gb,
    "barrow, import changed, 2 workers of 5 GB": import_changed_5gb,
}
PEERS = ("SpatialData", "barrow, import changed")


def run_variant(name, side):
    """Do one variant here, touch all of its result, and print it."""
    result = VARIANTS[name]((3, side, side))
    mean = float(result.mean())
    assert abs(mean - 3.5) < 2e-3, mean
    print(f"mean {mean:.6f}")


def make_slide(folder, side):
    """Store image and truth of a slide; only once."""
    import barrow
    from barrow.fields.spatial import Tissue
    from barrow.fields.spatial.means import keep

    tissue = Tissue(side, side, density=0.5, seed=1)
    for name, source in (("image", tissue.image()), ("truth", tissue.truth())):
        barrow.map(keep, source, to=folder / f"{name}.zarr", name=f"draw {name}", quiet=True)


def open_slide(folder, name):
    import barrow

    dims = ("c", "y", "x") if name == "image" else ("y", "x")
    return barrow.open(folder / f"{name}.zarr", dims=dims)


def threshold_of(folder):
    """Otsu's threshold of the whole slide, once for all cuts and the plain function."""
    from barrow.fields.spatial.means import Means
    from barrow.fields.spatial.readers import pick
    from barrow.fields.spatial.statistics import histogram, otsu

    return otsu(*histogram(pick(open_slide(folder, "image"), 0), Means(quiet=True)))


def run_cut(folder, cut, threshold):
    """Segment the slide by one cut; print what it took and a checksum of all labels."""
    import zarr

    from barrow.fields.spatial import segment

    chunks = None if cut == "planned" else tuple(map(int, cut.split(",")))
    chunks = chunks[0] if chunks and len(chunks) == 1 else chunks
    place = folder / f"labels-{cut}.zarr"
    began = time.perf_counter()
    found = segment(
        open_slide(folder, "image"), channel=0, threshold=threshold, chunks=chunks, to=place,
        memory=MEMORY, quiet=True,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    labels = zarr.open_array(place / "0", mode="r")
    digest = hashlib.sha256()
    for row in range(0, labels.shape[0], 1000):
        digest.update(labels[row : row + 1000].tobytes())
    print(json.dumps({"seconds": seconds, "objects": len(found.table), "sha": digest.hexdigest()}))


def run_whole(folder, threshold):
    """Call the plain function once, with all pixels; print its CPU time."""
    from barrow.fields.spatial import Watershed

    source = open_slide(folder, "image")
    _, height, width = source.lengths.values()
    image = source.read(((0, 1), (0, height), (0, width)))[0]
    began = time.process_time()
    objects = int(Watershed(threshold)(image).max())
    print(json.dumps({"cpu_seconds": time.process_time() - began, "objects": objects}))


def run_plain(folder, threshold, side):
    """Call the plain function on all pixels, a crop at a time; print its CPU time."""
    import numpy as np
    import zarr

    from barrow.fields.spatial import Watershed

    source = open_slide(folder, "image")
    model = Watershed(threshold)
    seconds = 0.0
    crop = min(CROP, side)
    for y in range(0, side, crop):
        for x in range(0, side, crop):
            tile = source.read(((0, 1), (y, min(y + crop, side)), (x, min(x + crop, side))))[0]
            began = time.process_time()
            labels = model(tile)
            seconds += time.process_time() - began
            if y == x == 0:
                corner = labels
    stored = zarr.open_array(folder / "labels-planned.zarr" / "0", mode="r")
    inner = slice(0, crop - 100 if crop < side else side)
    agree = same_objects(corner[inner, inner], np.asarray(stored[inner, inner]))
    print(json.dumps({"cpu_seconds": seconds, "crop_is_equal": agree}))


def same_objects(one, other):
    """Return whether two arrays of labels part pixels alike, whatever the numbers."""
    import numpy as np

    if ((one > 0) != (other > 0)).any():
        return False
    pairs = np.unique(np.stack([one[one > 0], other[one > 0]]), axis=1)
    return all(len(np.unique(side)) == pairs.shape[1] for side in pairs)


class CountPairs:
    """How many pixels each pair of found and true object share."""

    def __call__(self, found, truth):
        import numpy as np
        import pandas

        both = found.astype(np.uint64) << np.uint64(32) | truth
        names, counts = np.unique(both[both > 0], return_counts=True)
        return pandas.Series(counts, index=names)


def add_series(one, other):
    return one.add(other, fill_value=0)


def score(folder):
    """Print F1 of objects that share half of what they cover together with a true one."""
    import numpy as np

    import barrow

    found = barrow.open(folder / "labels-planned.zarr" / "0", dims=("y", "x"))
    pairs = barrow.reduce(
        CountPairs(), found, open_slide(folder, "truth"), combine=add_series, quiet=True
    )
    names = pairs.index.to_numpy().astype(np.uint64)
    sides = names >> np.uint64(32), names & np.uint64(2**32 - 1)
    counts = pairs.to_numpy()
    totals = []
    for side in sides:
        total = np.zeros(int(side.max()) + 1)
        np.add.at(total, side.astype(int), counts)
        totals.append(total)
    is_pair = (sides[0] > 0) & (sides[1] > 0)
    one, other = (side[is_pair].astype(int) for side in sides)
    shared = counts[is_pair]
    good = (shared / (totals[0][one] + totals[1][other] - shared) >= 0.5).sum()
    objects = [int((total[1:] > 0).sum()) for total in totals]
    print(json.dumps({"f1": 2 * int(good) / sum(objects), "found": objects[0], "true": objects[1]}))


def here(*words: object) -> list[str]:
    return [sys.executable, str(HERE), "--do", *map(str, words)]


def last_line(measured: Measurement) -> dict:
    if measured.exit_code:
        raise SystemExit(measured.output)
    return json.loads(measured.output.strip().splitlines()[-1])


def compare_rasters(side: int, spatialdata: str | None, repeats: int) -> dict:
    names = [n for n in VARIANTS if spatialdata or not n.startswith(PEERS)]
    rows: dict[str, list[Measurement]] = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            command = here("variant", name, side)
            if name.startswith(PEERS):
                command[0] = str(Path(spatialdata or "") / "bin" / "python")
            warm = 8 * 2**30 if side > 5000 else 0
            rows[name].append(measure(command, warm_bytes=warm))
    print(format_table(rows))
    return {
        name: [
            {"wall_seconds": m.wall_seconds, "cpu_seconds": m.cpu_seconds,
             "peak_bytes": m.peak_bytes, "exit_code": m.exit_code}
            for m in found
        ]
        for name, found in rows.items()
    }  # fmt: skip


def _small_cuts(side: int) -> tuple[str, ...]:
    return ("planned", *(str(side * part // 100) for part in (15, 25, 39)), f"{side},{side // 8}")


def segment_slide(side: int, folder: Path) -> dict:
    from barrow.units import parse_bytes

    make_slide(folder, side)
    threshold = threshold_of(folder)
    cuts = {}
    for cut in CUTS if side == SLIDE else _small_cuts(side):
        measured = measure(here("cut", folder, cut, threshold), timeout_seconds=1800)
        cuts[cut] = {
            **last_line(measured), "wall_seconds": measured.wall_seconds,
            "cpu_seconds": measured.cpu_seconds, "peak_bytes": measured.peak_bytes,
        }  # fmt: skip
        print(f"cut {cut:12}", {k: v for k, v in cuts[cut].items() if k != "sha"}, flush=True)
    plain = last_line(measure(here("plain", folder, threshold, side), timeout_seconds=1800))
    whole = measure(here("whole", folder, threshold), timeout_seconds=1800)
    whole = {**last_line(whole), "peak_bytes": whole.peak_bytes}
    scored = last_line(measure(here("score", folder), timeout_seconds=1800))
    cores = os.cpu_count() or 1
    result = {
        "slide": side, "memory": MEMORY, "cuts": cuts, "plain": plain, "whole": whole,
        "score": scored,
        "all_cuts_equal": len({found["sha"] for found in cuts.values()}) == 1,
        "wall_over_share": cuts["planned"]["seconds"] / (whole["cpu_seconds"] / cores),
        "wall_over_share_of_crops": cuts["planned"]["seconds"] / (plain["cpu_seconds"] / cores),
        "cpu_over_plain": cuts["planned"]["cpu_seconds"] / plain["cpu_seconds"],
        "peak_of_limit": max(c["peak_bytes"] for c in cuts.values()) / parse_bytes(MEMORY),
    }  # fmt: skip
    print({k: v for k, v in result.items() if k != "cuts"})
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small images")
    parser.add_argument("--spatialdata", help="folder of an environment with SpatialData")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("rasters", "segment"))
    parser.add_argument("--side", type=int, help="of the slide to segment")
    parser.add_argument("--scratch", help="folder for the slide; by default a new one")
    parser.add_argument("--do", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do:
        what, *rest = options.do
        if what == "variant":
            run_variant(rest[0], int(rest[1]))
        elif what == "cut":
            run_cut(Path(rest[0]), rest[1], float(rest[2]))
        elif what == "plain":
            run_plain(Path(rest[0]), float(rest[1]), int(rest[2]))
        elif what == "whole":
            run_whole(Path(rest[0]), float(rest[1]))
        else:
            score(Path(rest[0]))
        return
    content: dict[str, object] = {"question": __doc__.splitlines()[0], **describe_machine()}
    repeats = 1 if options.quick else options.repeats
    if options.only != "segment":
        side = 3000 if options.quick else SHAPE[1]
        content["rasters"] = compare_rasters(side, options.spatialdata, repeats)
    if options.only != "rasters":
        with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
            slide = options.side or (2000 if options.quick else SLIDE)
            content["segmentation"] = segment_slide(slide, Path(folder))
    is_trial = options.quick or options.side
    target = [Path(tempfile.gettempdir())] if is_trial else []
    path = write_json("spatial-trial" if is_trial else "spatial", content, *target)
    print("kept in", path)


if __name__ == "__main__":
    main()
