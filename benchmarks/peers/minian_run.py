"""MiniAn on a folder of videos, as its own notebook does it: run by a Python that has MiniAn.

    python minian_run.py VIDEOS OUT.npz [WORKERS]

Calls, order and parameters are those of MiniAn's pipeline notebook, without its pictures and
videos. OUT then holds A, C, S and motion as they are scored, and the seconds of each step.
"""

import contextlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import dask.array  # noqa: E402
import numpy as np  # noqa: E402

SPATIAL = {"dl_wnd": 10, "sparse_penal": 0.01, "size_thres": (25, None)}
TEMPORAL = {"noise_freq": 0.06, "sparse_penal": 1, "p": 1, "add_lag": 20}
MERGE = {"thres_corr": 0.8, "chunk": 600}


class Clock:
    """How long each step took."""

    def __init__(self):
        self.seconds = {}
        self.last = time.monotonic()

    def done(self, step):
        now = time.monotonic()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self.last
        self.last = now
        print(f"{step}: {self.seconds[step]:.1f} s", flush=True)


@contextlib.contextmanager
def started_cluster(workers):
    """Start the notebook's cluster, on this machine only."""
    from dask.distributed import Client, LocalCluster
    from minian.utilities import TaskAnnotation

    dask.config.set({"distributed.worker.memory.terminate": False})
    with LocalCluster(
        n_workers=workers,
        memory_limit="4GB",
        resources={"MEM": 1},
        threads_per_worker=2,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        cluster.scheduler.add_plugin(TaskAnnotation())
        with Client(cluster):
            yield


def decode_without_ffmpeg():
    """Let OpenCV read videos where there is no ffmpeg: a file in one task, as MiniAn does."""
    import cv2
    from minian import io

    def count(path):
        video = cv2.VideoCapture(path)
        names = (cv2.CAP_PROP_FRAME_COUNT, cv2.CAP_PROP_FRAME_HEIGHT, cv2.CAP_PROP_FRAME_WIDTH)
        return tuple(int(video.get(name)) for name in names)

    def decode(path, shape):
        video, frames = cv2.VideoCapture(path), np.empty(shape, np.uint8)
        for frame in frames:
            frame[:] = video.read()[1][..., 0]
        return frames

    def load(path):
        shape = count(path)
        return dask.array.from_delayed(dask.delayed(decode)(path, shape), shape, np.uint8)

    io._load_avi_lazy = load


def clean(videos, keep, clock):
    """Return the movie clean and in place, by frames and by pixels, and its motion."""
    from minian.io import load_videos
    from minian.motion_correction import apply_transform, estimate_motion
    from minian.preprocessing import denoise, remove_background
    from minian.utilities import get_optimal_chk

    movie = load_videos(
        str(videos),
        pattern=r"msCam[0-9]+\.avi$",
        dtype=np.uint8,
        downsample={"frame": 1, "height": 1, "width": 1},
        downsample_strategy="subset",
    )
    chunks, _ = get_optimal_chk(movie, dtype=float)
    movie = keep(movie.chunk({"frame": chunks["frame"], "height": -1, "width": -1}), "varr")
    clock.done("load videos")
    movie = movie - movie.min("frame").compute()
    movie = denoise(movie, method="median", ksize=7)
    movie = keep(remove_background(movie, method="tophat", wnd=15), "varr_ref")
    clock.done("glow, denoise, background")
    motion = estimate_motion(movie, dim="frame")
    motion = keep(motion.chunk({"frame": chunks["frame"]}), "motion")
    clock.done("estimate motion")
    by_frame = keep(apply_transform(movie, motion, fill=0).astype(np.float32), "Y_fm_chk")
    tiles = {"frame": -1, "height": chunks["height"], "width": chunks["width"]}
    by_pixel = keep(by_frame, "Y_hw_chk", tiles)
    clock.done("apply transform")
    return by_frame, by_pixel, motion, chunks


def initialise(by_frame, by_pixel, keep, clock):
    """Return first footprints and traces."""
    from minian.initialization import initA, initC, ks_refine, pnr_refine, seeds_init, seeds_merge

    max_proj = keep(by_frame.max("frame"), "max_proj").compute()
    seeds = seeds_init(
        by_frame, wnd_size=1000, method="rolling", stp_size=500, max_wnd=15, diff_thres=3
    )
    seeds, _, _ = pnr_refine(by_pixel, seeds, noise_freq=0.06, thres=1)
    seeds = ks_refine(by_pixel, seeds, sig=0.05)
    seeds = seeds[seeds["mask_ks"] & seeds["mask_pnr"]].reset_index(drop=True)
    seeds = seeds_merge(
        by_pixel, max_proj, seeds, thres_dist=10, thres_corr=0.8, noise_freq=0.06, chunk=600
    )
    clock.done("seeds")
    found = seeds[seeds["mask_mrg"]]
    A = keep(initA(by_pixel, found, thres_corr=0.8, wnd=10, noise_freq=0.06, chunk=600), "A_init")
    C = keep(initC(by_frame, A), "C_init", {"unit_id": 1, "frame": -1})
    clock.done("initial A, C")
    A, C, _ = merge(A, C, [])
    clock.done("merge")
    return keep(A, "A"), keep(C, "C")


def merge(A, C, others):
    """Return footprints and traces with units merged, also where there is nothing to merge."""
    from minian.cnmf import unit_merge

    try:
        found = unit_merge(A, C, others or None, **MERGE)
    except ValueError as error:
        # MiniAn ends with this error if no two units overlap.
        if "need at least one array" not in str(error):
            raise
        return A, C, others
    return found if others else (*found, [])


def refine(by_frame, by_pixel, A, C, noise, jac_thres, chunks, keep, clock):
    """Return footprints, traces, activity and baselines after both updates."""
    from minian.cnmf import compute_trace, update_background, update_spatial, update_temporal

    by_unit, by_time = {"unit_id": 1, "frame": -1}, {"unit_id": -1, "frame": chunks["frame"]}
    C_chk = keep(C, "C_chk", by_time)
    A_new, kept, scale = update_spatial(by_pixel, A, C, noise, **SPATIAL)
    C_new = keep(C.sel(unit_id=kept) * scale, "C_new")
    C_chk_new = keep(C_chk.sel(unit_id=kept) * scale, "C_chk_new")
    clock.done("spatial update")
    b, f = update_background(by_frame, A_new, C_chk_new)
    A = keep(A_new, "A", {"unit_id": 1, "height": -1, "width": -1})
    b, f = keep(b, "b"), keep(f.chunk({"frame": chunks["frame"]}), "f")
    clock.done("background update")
    C, C_chk = keep(C_new, "C"), keep(C_chk_new, "C_chk")
    YrA = keep(compute_trace(by_frame, A, b, C_chk, f), "YrA", by_unit)
    C, S, b0, c0, _, _ = update_temporal(A, C, YrA=YrA, **TEMPORAL, jac_thres=jac_thres)
    named = zip(("C", "S", "b0", "c0"), (C, S, b0, c0), strict=True)
    C, S, b0, c0 = (keep(values.chunk(by_unit), name) for name, values in named)
    clock.done("temporal update")
    return A.sel(unit_id=C.coords["unit_id"].values), C, S, b0 + c0


def main(videos, out, workers):
    """Run the pipeline and keep what is scored."""
    folder = Path(tempfile.mkdtemp(dir=out.parent))
    os.environ["MINIAN_INTERMEDIATE"] = str(folder)
    from minian.cnmf import get_noise_fft, update_background
    from minian.utilities import save_minian

    def keep(values, name, chunks=None):
        more = {} if chunks is None else {"chunks": chunks, "mem_limit": "1GB"}
        return save_minian(values.rename(name), str(folder), overwrite=True, **more)

    if not (shutil.which("ffmpeg") and shutil.which("ffprobe")):
        decode_without_ffmpeg()
    clock = Clock()
    try:
        with started_cluster(workers):
            clock.done("start")
            by_frame, by_pixel, motion, chunks = clean(videos, keep, clock)
            A, C = initialise(by_frame, by_pixel, keep, clock)
            C_chk = keep(C, "C_chk", {"unit_id": -1, "frame": chunks["frame"]})
            for name, values in zip("bf", update_background(by_frame, A, C_chk), strict=True):
                keep(values, name)
            clock.done("background update")
            noise = keep(get_noise_fft(by_pixel, noise_range=(0.06, 0.5)), "sn_spatial")
            clock.done("noise")
            shared = {"noise": noise, "chunks": chunks, "keep": keep, "clock": clock}
            A, C, S, base = refine(by_frame, by_pixel, A, C, jac_thres=0.2, **shared)
            A, C, [signal] = merge(A, C, [C + base])
            A, C = keep(A, "A_mrg"), keep(C, "C_mrg")
            keep(signal, "sig_mrg")
            clock.done("merge")
            A, C, S, _ = refine(by_frame, by_pixel, A, C, jac_thres=0.4, **shared)
            order = ("unit_id", "height", "width")
            np.savez(
                out,
                A=np.asarray(A.transpose(*order).fillna(0).values, np.float32),
                C=np.asarray(C.transpose("unit_id", "frame").values, np.float32),
                S=np.asarray(S.transpose("unit_id", "frame").values, np.float32),
                motion=np.asarray(motion.transpose("frame", "shift_dim").values, np.float32),
                steps=np.array(list(clock.seconds)),
                seconds=np.array(list(clock.seconds.values())),
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(
        Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute(), int((sys.argv[3:] or ["2"])[0])
    )
