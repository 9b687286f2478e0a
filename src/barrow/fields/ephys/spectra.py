"""Spectra by tapered Fourier transforms: from arguments to an array function and its settings.

Decides only: nothing is read or computed here.
"""

from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.analysis import Analysis, Trialing
from barrow.fields.ephys.fourier import count_windows, mtmconvol, mtmfft
from barrow.fields.ephys.frequencies import as_slice, choose_padding
from barrow.fields.ephys.requests import Request, as_times, describe_times
from barrow.fields.ephys.tapers import Taper, Tapering


def choose_mtmfft(
    asked: Request,
    tapering: Tapering,
    *,
    keeptapers: bool,
    pad: Any,
    demean_taper: bool = False,
    ft_compat: bool = False,
) -> Analysis:
    """Return spectra of whole trials."""
    trials = asked.trials
    taper = tapering.choose(trials.samplerate, trials.mean_length)
    keeptapers = _check_tapers(asked, tapering, taper, keeptapers)
    padded = choose_padding(pad, trials.lengths, trials.samplerate)
    bins, freqs = asked.pick_bins(padded)
    return Analysis(
        name="mtmfft",
        func=mtmfft,
        settings={
            **asked.settings,
            "taper": taper,
            "keeptapers": keeptapers,
            "padded": padded,
            "bins": as_slice(bins),
            "demean_taper": demean_taper,
            "ft_compat": ft_compat,
        },
        samplerate=trials.samplerate,
        lengths=np.ones(len(trials.lengths), int),
        offsets=trials.offsets,
        labels={"freq": freqs, "taper": _label(taper, keeptapers)},
        beside="lengths",
        nanoseconds=2.0 * taper.count,
    )


def _check_tapers(asked: Request, tapering: Tapering, taper: Taper, keeptapers: bool) -> bool:
    """Return whether there are tapers to be kept, or say why they must be."""
    if tapering.tapsmofrq is not None and not keeptapers and asked.output != "pow":
        raise InputError(
            f"output={asked.output!r} cannot be averaged over tapers. Set keeptapers=True, or "
            "output='pow'."
        )
    return keeptapers and taper.name == "dpss"


def _label(taper: Taper, keeptapers: bool) -> list[str]:
    return taper.labels if keeptapers else taper.labels[:1]


def choose_sliding(
    asked: Request,
    tapering: Tapering,
    *,
    method: str,
    keeptapers: bool,
    toi: Any,
    t_ftimwin: float | None,
) -> Analysis:
    """Return spectra of sliding windows, or their average over time."""
    trials, rate = asked.trials, asked.trials.samplerate
    taper = tapering.choose(rate, trials.mean_length)
    keeptapers = _check_tapers(asked, tapering, taper, keeptapers)
    window = _choose_window(t_ftimwin, trials, method)
    bins, freqs = asked.pick_bins(window)
    settings: dict[str, Any] = {
        **asked.settings,
        "taper": taper,
        "keeptapers": keeptapers,
        "bins": as_slice(bins),
        "window": window,
    }
    is_welch = method == "welch"
    if is_welch and (keeptapers or asked.output != "pow"):
        raise InputError("method='welch' averages power: leave out keeptapers= and output=.")
    if is_welch or isinstance(toi, (str, int, float, np.number)):
        step = _choose_step(toi, window, method)
        settings["step"] = step
        lengths = np.array([count_windows(int(n), step) for n in trials.lengths])
        offsets, answer_rate = trials.offsets / step, rate if step == 1 else round(rate / step, 2)
    else:
        times = as_times(toi, trials)
        settings |= {"at": times, "samplerate": rate, "step": None}
        answer_rate, lengths, offsets = describe_times(times, len(trials.lengths))
    share = 4.0 if is_welch else float((lengths * window / trials.lengths).max())
    if is_welch:
        settings["average"] = True
        lengths, offsets, answer_rate = np.ones_like(lengths), trials.offsets, rate
    if trials.is_alike:
        settings["offset"] = int(trials.offsets[0])
    return Analysis(
        method,
        mtmconvol,
        settings,
        answer_rate,
        lengths,
        offsets,
        {"freq": freqs, "taper": _label(taper, keeptapers)},
        beside="facts",
        nanoseconds=5.0 * taper.count * max(1.0, share),
    )


def _choose_window(t_ftimwin: Any, trials: Trialing, method: str) -> int:
    rate, shortest = trials.samplerate, trials.shortest
    is_number = isinstance(t_ftimwin, (int, float, np.number)) and not isinstance(t_ftimwin, bool)
    if not is_number or not 1 / rate <= t_ftimwin <= shortest / rate:
        raise InputError(
            f"t_ftimwin={t_ftimwin!r}: method={method!r} needs the length of its window in "
            f"seconds, from {1 / rate:g} to {shortest / rate:g}."
        )
    return int(t_ftimwin * rate)


def _choose_step(toi: Any, window: int, method: str) -> int:
    if isinstance(toi, str) and toi == "all" and method != "welch":
        return 1
    if isinstance(toi, (int, float, np.number)) and not isinstance(toi, bool) and 0 <= toi <= 1:
        return window - min(window - 1, int(toi * window))
    more = "" if method == "welch" else ", times in seconds, or 'all'"
    raise InputError(f"toi={toi!r}: give the overlap of windows from 0 to 1{more}.")
