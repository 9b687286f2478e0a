"""From the arguments of ``freqanalysis`` to an array function and its settings.

Decides only: nothing is read or computed here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.fourier import count_windows, mtmconvol, mtmfft
from barrow.fields.ephys.frequencies import as_slice, choose_foi, choose_padding, match_bins
from barrow.fields.ephys.outputs import output_dtype
from barrow.fields.ephys.superlets import choose_orders, scale_of, superlet
from barrow.fields.ephys.tapers import Taper, choose_taper
from barrow.fields.ephys.wavelets import choose_scales, choose_wavelet, wavelet

METHODS = ("mtmfft", "mtmconvol", "welch", "wavelet", "superlet")


@dataclass(frozen=True)
class Trialing:
    """What is known of trials before they are read."""

    samplerate: float
    lengths: np.ndarray
    offsets: np.ndarray

    @property
    def is_alike(self) -> bool:
        """Whether all trials have the same times."""
        is_long = (self.lengths == self.lengths[0]).all()
        return bool(is_long and (self.offsets == self.offsets[0]).all())


@dataclass(frozen=True)
class Analysis:
    """An array function with its settings, and what its answer means."""

    name: str
    func: Callable[..., Any]
    settings: Mapping[str, Any]
    samplerate: float
    lengths: np.ndarray
    """Samples of each trial of the answer."""
    offsets: np.ndarray
    """Time of the first one, in samples."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    beside: str | None = None
    """What the function gets besides the trials where they differ: ``lengths`` of trials, or
    ``facts``, lengths and offsets."""
    nanoseconds: float = 20.0
    """What it takes for each byte of trials, roughly: decides only what is done without a plan."""


def choose_spectra(
    given: Trialing,
    *,
    method: str = "mtmfft",
    output: str = "pow",
    foi: Any = None,
    foilim: Any = None,
    pad: Any = "maxperlen",
    polyremoval: int | None = 0,
    taper: str | None = "hann",
    demean_taper: bool = False,
    taper_opt: Mapping[str, Any] | None = None,
    tapsmofrq: float | None = None,
    nTaper: int | None = None,  # noqa: N803 - as FieldTrip's users write it
    keeptapers: bool = False,
    toi: Any = "all",
    t_ftimwin: float | None = None,
    wavelet: str = "Morlet",
    width: float = 6,
    order: int | None = None,
    order_max: int | None = None,
    order_min: int = 1,
    c_1: int = 3,
    adaptive: bool = False,
    ft_compat: bool = False,
) -> Analysis:
    """Return what the arguments of ``freqanalysis`` ask for."""
    if method not in METHODS:
        raise InputError(f"method={method!r} is unknown. Use one of {', '.join(METHODS)}.")
    output_dtype(output)
    check_polyremoval(polyremoval)
    wanted = choose_foi(foi, foilim, given.samplerate)
    if method in ("wavelet", "superlet"):
        return _choose_transform(
            given,
            method,
            wanted,
            toi,
            {"polyremoval": polyremoval, "output": output},
            _WaveletChoice(wavelet, width, order, order_max, order_min, c_1, adaptive),
        )
    if tapsmofrq is not None and not keeptapers and output != "pow":
        raise InputError(
            f"output={output!r} cannot be averaged over tapers. Set keeptapers=True, or "
            "output='pow'."
        )
    window = choose_taper(
        taper,
        taper_opt=taper_opt,
        tapsmofrq=tapsmofrq,
        n_tapers=nTaper,
        samplerate=given.samplerate,
        length=float(given.lengths.mean()),
    )
    keeptapers = keeptapers and window.name == "dpss"
    shared = {"polyremoval": polyremoval, "output": output, "keeptapers": keeptapers}
    if method == "mtmfft":
        padded = choose_padding(pad, given.lengths, given.samplerate)
        more = {"padded": padded, "demean_taper": demean_taper, "ft_compat": ft_compat}
        return _choose_whole(given, window, wanted, {**shared, **more})
    return _choose_sliding(given, method, window, wanted, toi, t_ftimwin, shared)


def check_polyremoval(order: Any) -> None:
    """Refuse any other polynomial than a mean or a line."""
    if order not in (None, 0, 1):
        raise InputError(f"polyremoval={order!r}: use 0 for the mean, 1 for a line, or None.")


def _choose_whole(
    given: Trialing, taper: Taper, wanted: tuple[Any, Any], settings: dict[str, Any]
) -> Analysis:
    freqs = np.fft.rfftfreq(settings["padded"], 1 / given.samplerate)
    bins = match_bins(freqs, *wanted)
    count = len(given.lengths)
    return Analysis(
        name="mtmfft",
        func=mtmfft,
        settings={**settings, "taper": taper, "bins": as_slice(bins)},
        samplerate=given.samplerate,
        lengths=np.ones(count, int),
        offsets=given.offsets,
        labels={"freq": freqs[bins], "taper": _label(taper, settings["keeptapers"])},
        beside="lengths",
        nanoseconds=2.0 * taper.count,
    )


def _label(taper: Taper, keeptapers: bool) -> list[str]:
    return taper.labels if keeptapers else taper.labels[:1]


def _choose_sliding(
    given: Trialing,
    method: str,
    taper: Taper,
    wanted: tuple[Any, Any],
    toi: Any,
    t_ftimwin: float | None,
    settings: dict[str, Any],
) -> Analysis:
    rate, shortest = given.samplerate, int(given.lengths.min())
    is_number = isinstance(t_ftimwin, (int, float, np.number)) and not isinstance(t_ftimwin, bool)
    if t_ftimwin is None or not is_number or not 1 / rate <= t_ftimwin <= shortest / rate:
        raise InputError(
            f"t_ftimwin={t_ftimwin!r}: method={method!r} needs the length of its window in "
            f"seconds, from {1 / rate:g} to {shortest / rate:g}."
        )
    window = int(t_ftimwin * rate)
    freqs = np.fft.rfftfreq(window, 1 / rate)
    bins = match_bins(freqs, *wanted)
    settings = {**settings, "taper": taper, "bins": as_slice(bins), "window": window}
    labels = {"freq": freqs[bins], "taper": _label(taper, settings["keeptapers"])}
    if method == "welch" and (settings["keeptapers"] or settings["output"] != "pow"):
        raise InputError("method='welch' averages power: leave out keeptapers= and output=.")
    times = as_times(toi, given) if not isinstance(toi, (str, int, float, np.number)) else None
    if times is not None and method != "welch":
        answer_rate, lengths, offsets = _describe_times(times, len(given.lengths))
        settings |= {"at": times, "samplerate": rate, "step": None}
    else:
        step = _choose_step(toi, window, method)
        lengths = np.array([count_windows(int(n), step) for n in given.lengths])
        offsets, answer_rate = given.offsets / step, rate if step == 1 else round(rate / step, 2)
        settings["step"] = step
    if method == "welch":
        settings["average"] = True
        lengths, offsets, answer_rate = np.ones_like(lengths), given.offsets, rate
    if given.is_alike:
        settings["offset"] = int(given.offsets[0])
    windows = float((lengths * window / given.lengths).max()) if method != "welch" else 4.0
    return Analysis(
        method,
        mtmconvol,
        settings,
        answer_rate,
        lengths,
        offsets,
        labels,
        beside="facts",
        nanoseconds=5.0 * taper.count * max(1.0, windows),
    )


def _choose_step(toi: Any, window: int, method: str) -> int:
    if isinstance(toi, str) and toi == "all" and method != "welch":
        return 1
    if isinstance(toi, (int, float, np.number)) and not isinstance(toi, bool) and 0 <= toi <= 1:
        return window - min(window - 1, int(toi * window))
    more = "" if method == "welch" else ", times in seconds, or 'all'"
    raise InputError(f"toi={toi!r}: give the overlap of windows from 0 to 1{more}.")


def as_times(toi: Any, given: Trialing) -> np.ndarray:
    """Return times of interest, or say what is wrong with them."""
    try:
        times = np.atleast_1d(np.asarray(toi, float))
    except (TypeError, ValueError):
        times = np.array([np.nan])
    if times.ndim != 1 or not times.size or not np.isfinite(times).all():
        raise InputError(f"toi={toi!r} must be times in seconds, or 'all'.")
    low = given.offsets.min() / given.samplerate
    high = (given.offsets + given.lengths).max() / given.samplerate
    if times.min() < low - 1e-9 or times.max() > high + 1e-9 or (np.diff(times) < 0).any():
        raise InputError(f"toi={toi!r} must rise, from {low:g} to {high:g} s at most.")
    return times


def _describe_times(times: np.ndarray, count: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the sample rate, lengths and offsets of answers at these times."""
    steps = np.diff(times)
    is_even = steps.size > 0 and np.allclose(steps, steps[0])
    rate = float(1 / steps[0]) if is_even else 1.0
    return rate, np.full(count, times.size), np.full(count, times[0] * rate)


@dataclass(frozen=True)
class _WaveletChoice:
    wavelet: str
    width: float
    order: int | None
    order_max: int | None
    order_min: int
    c_1: int
    adaptive: bool


def _choose_transform(
    given: Trialing,
    method: str,
    wanted: tuple[Any, Any],
    toi: Any,
    settings: dict[str, Any],
    choice: _WaveletChoice,
) -> Analysis:
    rate, shortest = given.samplerate, int(given.lengths.min())
    shape = choose_wavelet(choice.wavelet, choice.width, choice.order)
    to_scale = scale_of if method == "superlet" else shape.scale
    foi, foilim = wanted
    if foi is None and foilim is None:
        scales = choose_scales(to_scale, shortest, rate)
    else:
        freqs = foi if foi is not None else np.arange(foilim[0], foilim[1] + 1)
        scales = np.asarray(to_scale(1 / np.maximum(freqs, 0.01)))
    settings = {**settings, "samplerate": rate}
    if method == "superlet":
        if choice.adaptive:
            scales = np.sort(scales)[::-1]
        labels = 1 / (2 * np.pi * scales)
        if choice.order_max is None:
            raise InputError("method='superlet' needs order_max=, the largest order of its set.")
        orders, exponents = choose_orders(
            labels, choice.order_max, choice.order_min, choice.adaptive
        )
        settings |= {"cycles": choice.c_1 * orders, "exponents": exponents}
    else:
        labels = 1 / shape.period(scales)
        settings["shape"] = shape
    settings["scales"] = scales
    lengths, offsets = given.lengths, given.offsets
    if not (isinstance(toi, str) and toi == "all"):
        times = as_times(toi, given)
        if times.size < 2 or not np.allclose(np.diff(times, 2), 0):
            raise InputError(f"toi={toi!r}: method={method!r} needs evenly spaced times, or 'all'.")
        settings["at"] = times
        rate, lengths, offsets = _describe_times(times, len(lengths))
    if given.is_alike:
        settings["offset"] = int(given.offsets[0])
    func: Callable[..., Any] = superlet if method == "superlet" else wavelet
    return Analysis(
        method,
        func,
        settings,
        rate,
        lengths,
        offsets,
        {"freq": labels, "taper": ["None"]},
        beside="facts",
        nanoseconds=10.0 * np.count_nonzero(settings.get("exponents", scales)),
    )
