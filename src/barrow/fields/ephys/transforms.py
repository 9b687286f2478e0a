"""Spectra at each time, by wavelets and superlets: from arguments to an array function.

Decides only: nothing is read or computed here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.analysis import Analysis
from barrow.fields.ephys.requests import Request, as_times, describe_times
from barrow.fields.ephys.superlets import choose_orders, scale_of, superlet
from barrow.fields.ephys.wavelets import Wavelet, choose_scales, wavelet


@dataclass(frozen=True)
class SuperletSet:
    """The wavelets of a superlet."""

    order_max: int | None
    order_min: int = 1
    c_1: int = 3
    """Cycles of the first."""
    adaptive: bool = False
    """Whether orders grow with frequency."""


def choose_wavelet_transform(asked: Request, shape: Wavelet, toi: Any) -> Analysis:
    """Return a transform by one wavelet for each frequency."""
    scales = _choose_scales(asked, shape.scale)
    settings = {"shape": shape, "scales": scales}
    return _at_times(asked, toi, "wavelet", wavelet, settings, 1 / shape.period(scales))


def choose_superlet_transform(asked: Request, chosen: SuperletSet, toi: Any) -> Analysis:
    """Return a transform by a set of wavelets for each frequency."""
    if chosen.order_max is None:
        raise InputError("method='superlet' needs order_max=, the largest order of its set.")
    scales = _choose_scales(asked, scale_of)
    if chosen.adaptive:
        scales = np.sort(scales)[::-1]
    freqs = 1 / (2 * np.pi * scales)
    orders, exponents = choose_orders(freqs, chosen.order_max, chosen.order_min, chosen.adaptive)
    settings = {"scales": scales, "cycles": chosen.c_1 * orders, "exponents": exponents}
    return _at_times(asked, toi, "superlet", superlet, settings, freqs)


def _choose_scales(asked: Request, scale: Callable[[Any], Any]) -> np.ndarray:
    if asked.foi is None and asked.foilim is None:
        return choose_scales(scale, asked.trials.shortest, asked.trials.samplerate)
    freqs = asked.foi
    if freqs is None:
        assert asked.foilim is not None
        freqs = np.arange(asked.foilim[0], asked.foilim[1] + 1)
    return np.asarray(scale(1 / np.maximum(freqs, 0.01)))


def _at_times(
    asked: Request,
    toi: Any,
    method: str,
    func: Callable[..., Any],
    settings: dict[str, Any],
    freqs: np.ndarray,
) -> Analysis:
    """Return the analysis at all times, or at those of interest."""
    trials = asked.trials
    settings = {**asked.settings, "samplerate": trials.samplerate, **settings}
    rate, lengths, offsets = trials.samplerate, trials.lengths, trials.offsets
    if not (isinstance(toi, str) and toi == "all"):
        times = as_times(toi, trials)
        if times.size < 2 or not np.allclose(np.diff(times, 2), 0):
            raise InputError(f"toi={toi!r}: method={method!r} needs evenly spaced times, or 'all'.")
        settings["at"] = times
        rate, lengths, offsets = describe_times(times, len(lengths))
    if trials.is_alike:
        settings["offset"] = int(trials.offsets[0])
    return Analysis(
        method,
        func,
        settings,
        rate,
        lengths,
        offsets,
        {"freq": freqs, "taper": ["None"]},
        beside="facts",
        nanoseconds=10.0 * np.count_nonzero(settings.get("exponents", settings["scales"])),
    )
