"""The steps from a movie to cells and traces, each kept when it is done."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np
from scipy import sparse

from barrow import api
from barrow.fields.miniscope import footprints as fp
from barrow.fields.miniscope import seeding, spatial, temporal
from barrow.fields.miniscope.checkpoints import Checkpoints
from barrow.fields.miniscope.cleaning import clean
from barrow.fields.miniscope.moving import (
    Template,
    apply_motion,
    estimate_motion,
    make_template,
    sample_numbers,
    sample_size,
)
from barrow.fields.miniscope.segments import Summary, summarise
from barrow.fields.miniscope.temporal import Traces
from barrow.fields.miniscope.walking import Walk, beside, frame_numbers
from barrow.model.source import Source

Arrays = dict[str, np.ndarray]

STEPS = (
    "minimum",
    "motion",
    "movie",
    "summary",
    "seeds",
    "initial",
    "first_spatial",
    "first_temporal",
    "second_spatial",
    "second_temporal",
    "units",
)
"""Names of all steps, in order."""
MOST_MERGES = 2
"""How often units are joined after an update: each time costs a pass over the movie."""


@dataclass
class Pipeline:
    """A movie, what is wanted of it, and what is known so far."""

    source: Source
    params: dict[str, dict[str, Any]]
    walk: Walk
    kept: Checkpoints
    say: Callable[[str], None]
    identity: str
    """Of the source: what was found for another one is of no use."""

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.source.lengths["height"], self.source.lengths["width"]

    def minimum(self) -> np.ndarray:
        """Return the least value of each pixel: the glow."""
        if not self.params["glow_removal"]["enabled"]:
            return np.zeros(self.shape, self.source.dtype)
        found = self._step("minimum", self._minimum_key, lambda: {"image": self._minimum()})
        return found["image"]

    def motion(self) -> np.ndarray:
        """Return the shift that puts each frame in place."""
        return self._step("motion", self._motion_key, self._motion)["shifts"]

    @cached_property
    def movie(self) -> Source:
        """The movie clean and in place, stored."""
        names = ("glow_removal", "denoise", "background_removal")
        wanted = {name: self.params[name] for name in names}
        key = self.kept.key("movie", wanted, self._minimum_key, self._motion_key)
        self.movie_key = key

        def compute(place: Any) -> None:
            self.say("movie")
            self.walk.map(
                clean_and_move,
                self.source,
                beside(self.minimum(), "height", "width"),
                beside(self.motion(), "frame", "shift_dim"),
                name="movie",
                to=place,
                denoise_options=wanted["denoise"],
                background_options=wanted["background_removal"],
            )

        place = self.kept.store("movie", key, compute)
        return api.open(place, dims=self.source.dims)

    @cached_property
    def summary(self) -> Summary:
        """What is known of each pixel of the clean movie."""
        movie = self.movie
        seeds, noise = self.params["seeds_init"], self.params["get_noise"]
        wanted = {
            "noise_freq": self.params["initialize"]["noise_freq"],
            "noise_range": tuple(noise["noise_range"]),
            "block": gcd(seeds["wnd_size"], seeds["stp_size"]),
        }
        self.summary_key = self.kept.key("summary", wanted, self.movie_key)

        def compute() -> Arrays:
            made = self.walk.reduce(
                summarise, movie, frame_numbers(movie), name="summary", **wanted
            )
            numbers = sorted(made.peaks)
            return {
                "frames": np.array([made.frames, made.degrees]),
                "images": np.stack([made.total, made.slow, made.fast]),
                "numbers": np.array(numbers),
                "peaks": np.stack([made.peaks[number] for number in numbers]),
            }

        found = self._step("summary", self.summary_key, compute)
        peaks = dict(zip(found["numbers"].tolist(), found["peaks"], strict=True))
        frames, degrees = found["frames"].tolist()
        total, slow, fast = found["images"]
        return Summary(frames, total, slow, fast, degrees, peaks)

    def seeds(self) -> np.ndarray:
        """Return pixels that are cells, as far as one pixel can tell."""
        summary = self.summary
        names = ("seeds_init", "pnr_refine", "ks_refine", "seeds_merge")
        wanted = {name: self.params[name] for name in names}
        self.seeds_key = self.kept.key("seeds", wanted, self.summary_key)

        def compute() -> Arrays:
            options = wanted["seeds_init"]
            found = seeding.seeds_init(
                summary.roll_windows(options["wnd_size"], options["stp_size"]),
                max_wnd=options["max_wnd"],
                diff_thres=options["diff_thres"],
            )
            return {"seeds": self._refine(found, summary.max_proj)}

        return self._step("seeds", self.seeds_key, compute)["seeds"]

    def initial(self) -> Arrays:
        """Return first footprints and traces, and an even background."""
        seeds, summary = self.seeds(), self.summary
        wanted = {name: self.params[name] for name in ("initialize", "init_merge")}
        key = self.kept.key("initial", wanted, self.seeds_key)
        self.units_key = key

        def compute() -> Arrays:
            options, movie = wanted["initialize"], self.movie
            A = sparse.csc_array((summary.total.size, 0), dtype=np.float32)
            if len(seeds):
                products = self.walk.reduce(
                    fp.sum_products,
                    movie,
                    frame_numbers(movie),
                    name="initial A",
                    seeds=seeds,
                    wnd=options["wnd"],
                    noise_freq=options["noise_freq"],
                )
                A = fp.initA(products, summary, seeds, thres_corr=options["thres_corr"])
            A, _ = fp.scale_to_peak(A)
            light, _ = self._light(A, np.zeros(A.shape[0]), "initial C")
            C = temporal.compute_trace(light, spatial.overlaps(A, np.zeros(A.shape[0]))[0])
            if len(C):
                C = C - np.percentile(C, 10, axis=1)[:, None]
            A, C = fp.unit_merge(A, C, noise_freq=options["noise_freq"], **wanted["init_merge"])
            return fp.pack(A, C=C, f=np.ones(summary.frames))

        return self._step("initial", key, compute)

    def spatial(self, which: str, found: Arrays) -> Arrays:
        """Return footprints, background and traces after a spatial update."""
        name, options, summary = f"{which}_spatial", self.params[f"{which}_spatial"], self.summary
        self.units_key = self.kept.key(name, options, self.units_key, self.summary_key)

        def compute() -> Arrays:
            (A, C), f = fp.unpack(found, self.shape), found["f"]
            reach = spatial.find_reach(A, self.shape, options["dl_wnd"])
            shared = self.walk.reduce(
                spatial.sum_shared,
                self.movie,
                beside(np.vstack([C, f]).T, "frame", "unit"),
                name=name.replace("_", " "),
                starts=reach.starts,
                units=reach.units,
            )
            more = {key: options[key] for key in ("sparse_penal", "size_thres")}
            made, kept = spatial.update_spatial(shared, reach, C, f, summary, **more)
            made, peak = fp.scale_to_peak(made)
            traces = C[kept] * peak[:, None]
            return fp.pack(made, C=traces, b=spatial.residual_mean(made, traces, summary), f=f)

        return self._step(name, self.units_key, compute)

    def temporal(self, which: str, found: Arrays) -> Arrays:
        """Return traces, activity and background after a temporal update, and a merge."""
        name = f"{which}_temporal"
        wanted = [self.params[name], self.params[f"{which}_merge"]]
        self.units_key = self.kept.key(name, wanted, self.units_key)

        def compute() -> Arrays:
            (A, C), b = fp.unpack(found, self.shape), found["b"]
            A, traces, f = self._settle(which, A, b, C, MOST_MERGES)
            return fp.pack(A, **vars(traces), b=b, f=f)

        return self._step(name, self.units_key, compute)

    def run(self) -> Arrays:
        """Return everything that is found about the units, with all steps done."""
        found = self.initial()
        for which in ("first", "second"):
            found = self.spatial(which, found)
            found = self.temporal(which, found)
        return self._keep_active(found)

    def _keep_active(self, found: Arrays) -> Arrays:
        """Return the units that behave as cells do."""
        options = self.params["keep_active"]

        def compute() -> Arrays:
            A, _ = fp.unpack(found, self.shape)
            kept = temporal.keep_active(found["YrA"], **options)
            units = {name: found[name][kept] for name in ("C", "S", "YrA", "b0", "g", "m", "sn")}
            return fp.pack(sparse.csc_array(A[:, kept]), **units, b=found["b"], f=found["f"])

        return self._step("units", self.kept.key("units", options, self.units_key), compute)

    @cached_property
    def _minimum_key(self) -> str:
        return self.kept.key("minimum", self.params["glow_removal"], self.identity)

    @cached_property
    def _motion_key(self) -> str:
        return self.kept.key("motion", self.params["estimate_motion"], self.identity)

    def _step(self, name: str, key: str, compute: Callable[[], Arrays]) -> Arrays:
        def tell() -> Arrays:
            self.say(name)
            return compute()

        return self.kept.arrays(name, key, tell)

    def _minimum(self) -> np.ndarray:
        found = self.walk.reduce(least, self.source, name="glow removal", combine=np.minimum)
        return np.asarray(found)

    def _motion(self) -> Arrays:
        options, count = self.params["estimate_motion"], self.source.lengths["frame"]
        if not options["enabled"]:
            return {"shifts": np.zeros((count, 2))}
        rest = self.source.everything[1:]
        numbers = sample_numbers(count, sample_size(self.source.nbytes // count)).tolist()
        sample = np.concatenate([self.source.read(((n, n + 1), *rest)) for n in numbers])
        template: Template = make_template(sample, options["max_sh"])
        del sample
        found = self.walk.map(
            estimate_motion, self.source, name="estimate motion", template=template
        )
        return {"shifts": np.asarray(found), "template": template.image}

    def _refine(self, seeds: np.ndarray, max_proj: np.ndarray) -> np.ndarray:
        if not len(seeds):
            return seeds
        traces = self.walk.map(
            take_pixels, self.movie, name="seeds", rows=seeds[:, 0], cols=seeds[:, 1]
        )
        values = np.ascontiguousarray(np.asarray(traces).T)
        kept, _ = seeding.pnr_refine(values, **self.params["pnr_refine"])
        seeds, values = seeds[kept], values[kept]
        kept = seeding.ks_refine(values, **self.params["ks_refine"])
        seeds, values = seeds[kept], values[kept]
        kept = seeding.seeds_merge(seeds, values, max_proj, **self.params["seeds_merge"])
        return np.asarray(seeds[kept])

    def _settle(
        self, which: str, A: fp.Footprints, b: np.ndarray, C: np.ndarray, merges: int
    ) -> tuple[fp.Footprints, Traces, np.ndarray]:
        """Return footprints, their traces and the background, with units joined that are one."""
        raw, f = self._trace(A, b, C, f"{which} temporal")
        traces = temporal.update_temporal(raw, **self.params[f"{which}_temporal"])
        joined, _ = fp.unit_merge(A, traces.C, **self.params[f"{which}_merge"])
        if not merges or joined.shape == A.shape:
            return A, traces, f
        del raw, traces  # the next pass needs the room
        # Units that turn out to be one are measured again as one.
        A, _ = fp.scale_to_peak(joined)
        C = temporal.compute_trace(self._light(A, b, "merge")[0], (A.T @ A).toarray())
        return self._settle(which, A, b, C, merges - 1)

    def _trace(
        self, A: fp.Footprints, b: np.ndarray, C: np.ndarray, name: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return traces as they are measured, and how bright the background is in each frame."""
        light, back = self._light(A, b, name)
        shared, with_b = spatial.overlaps(A, b)
        size = float(b @ b)
        f = (back - with_b @ C) / size if size > 0 else np.ones_like(back)
        for trace, weight in zip(light, with_b, strict=True):
            trace -= weight * f
        return temporal.compute_trace(light, shared), f

    def _light(self, A: fp.Footprints, b: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
        found = self.walk.map(
            fp.project,
            self.movie,
            name=name,
            indptr=A.indptr,
            indices=A.indices,
            data=A.data,
            b=np.asarray(b, float),
        )
        light = np.asarray(found).T.astype(float)
        return light[:-1], light[-1]


def least(movie: np.ndarray) -> np.ndarray:
    """Return the least value of each pixel."""
    return np.asarray(movie.min(axis=0))


def take_pixels(movie: np.ndarray, *, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Return the values of pixels: frame × pixel."""
    return movie[:, rows, cols]


def clean_and_move(
    movie: np.ndarray, minimum: np.ndarray, shifts: np.ndarray, **options: Any
) -> np.ndarray:
    """Return frames clean and in place."""
    return apply_motion(clean(movie, minimum, **options), shifts)
