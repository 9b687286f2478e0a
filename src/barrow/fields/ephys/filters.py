"""Filters in time: which, their coefficients, and how they are applied."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import signal

from barrow.errors import InputError
from barrow.fields.ephys.sinc import WINDOWS, convolve_centred, design_sinc, minimum_phase

TYPES = ("lp", "hp", "bp", "bs")
# From so many samples on a compiled filter saves more than it takes to load it.
COMPILED_SAMPLES = 2**26


@dataclass(frozen=True)
class Filter:
    """Which filter; its coefficients are computed once for each process."""

    kind: str
    """``but`` for Butterworth (IIR), ``firws`` for windowed sinc (FIR)."""
    band: str
    """``lp``, ``hp``, ``bp`` or ``bs``: low-pass, high-pass, band-pass, band-stop."""
    freq: tuple[float, ...]
    order: int
    direction: str
    samplerate: float
    window: str = "hamming"
    is_compiled: bool = False
    """Whether a Butterworth filter runs compiled: three times as fast, with the same bits."""

    def __call__(self, trials: np.ndarray) -> np.ndarray:
        """Return filtered signals: time is the second to last axis."""
        if self.kind == "but":
            return self._run_sections(trials)
        found = convolve_centred(trials, self.coefficients())
        if self.direction == "twopass":
            found = convolve_centred(found, self.coefficients())
        return found

    @property
    def edge(self) -> int:
        """Samples by which the ends are extended before two passes; a trial must have more."""
        if self.kind != "but" or self.direction != "twopass":
            return 0
        sections = self.coefficients()
        taps = 2 * len(sections) + 1
        return 3 * int(taps - min((sections[:, 2] == 0).sum(), (sections[:, 5] == 0).sum()))

    def compiled_for(self, n_samples: int) -> "Filter":
        """Return the filter, compiled if there are samples enough to make that worth while."""
        return replace(self, is_compiled=self.kind == "but" and n_samples >= COMPILED_SAMPLES)

    def _run_sections(self, trials: np.ndarray) -> np.ndarray:
        sections, is_twopass = self.coefficients(), self.direction == "twopass"
        compiled = _load_compiled() if self.is_compiled else None
        if compiled is not None and trials.ndim == 3 and trials.dtype in (np.float32, np.float64):
            return compiled(trials, sections, signal.sosfilt_zi(sections), self.edge, is_twopass)
        run = signal.sosfiltfilt if is_twopass else signal.sosfilt
        return np.asarray(run(sections, trials, axis=-2))

    def coefficients(self) -> np.ndarray:
        """Return second-order sections (IIR), or the impulse response (FIR)."""
        return _design(self)


def choose_filter(
    filter_class: str,
    *,
    filter_type: str,
    freq: Any,
    order: int | None,
    direction: str | None,
    window: str,
    samplerate: float,
    shortest: int,
) -> Filter:
    """Return the filter that the arguments of ``preprocessing`` ask for.

    Parameters
    ----------
    shortest
        Samples of the shortest trial.

    Examples
    --------
    >>> choose_filter(
    ...     "but", filter_type="bp", freq=[40, 20], order=None, direction="twopass",
    ...     window="hamming", samplerate=1000.0, shortest=1000,
    ... ).freq
    (20.0, 40.0)
    """
    if filter_class not in ("but", "firws"):
        raise InputError(f"filter_class={filter_class!r} is unknown. Use 'but', 'firws' or None.")
    if filter_type not in TYPES:
        raise InputError(f"filter_type={filter_type!r} is unknown. Use {', '.join(TYPES)}.")
    edges = _check_freq(freq, filter_type, samplerate)
    if filter_class == "but":
        directions: tuple[str, ...] = ("twopass", "onepass")
        direction, order = direction or "twopass", 4 if order is None else order
    else:
        directions = ("twopass", "onepass", "onepass-minphase")
        direction, order = direction or "onepass", min(shortest, 1000) if order is None else order
        if window not in WINDOWS:
            raise InputError(f"window={window!r} is unknown. Use {', '.join(WINDOWS)}.")
    if direction not in directions:
        raise InputError(
            f"direction={direction!r} does not exist for filter_class={filter_class!r}. "
            f"Use {', '.join(directions)}."
        )
    if int(order) != order or order < 1:
        raise InputError(f"order={order!r} is no order of a filter: use a whole number from 1 on.")
    chosen = Filter(filter_class, filter_type, edges, int(order), direction, samplerate, window)
    if shortest <= chosen.edge:
        raise InputError(
            f"The shortest trial has {shortest} samples, but a filter of order {order} that runs "
            f"forwards and backwards needs more than {chosen.edge}. Leave short trials out, lower "
            "order=, or set direction='onepass'."
        )
    return chosen


def _check_freq(freq: Any, filter_type: str, samplerate: float) -> tuple[float, ...]:
    wanted = 1 if filter_type in ("lp", "hp") else 2
    try:
        edges = tuple(float(value) for value in np.sort(np.atleast_1d(freq)))
    except (TypeError, ValueError):
        edges = ()
    if len(edges) != wanted or len(set(edges)) != wanted:
        words = "one frequency" if wanted == 1 else "two different frequencies"
        raise InputError(f"freq={freq!r}: filter_type={filter_type!r} needs {words} in Hz.")
    if not all(0 < edge < samplerate / 2 for edge in edges):
        raise InputError(
            f"freq={freq!r} must lie between 0 and {samplerate / 2:g} Hz, half the sample rate."
        )
    return edges


@lru_cache(maxsize=1)
def _load_compiled() -> Callable[..., np.ndarray] | None:
    try:
        from barrow.fields.ephys.biquads import filter_sections
    except ImportError:
        return None  # SciPy gives the same, later
    return filter_sections


@lru_cache(maxsize=32)
def _design(chosen: Filter) -> np.ndarray:
    if chosen.kind == "but":
        edges = chosen.freq[0] if len(chosen.freq) == 1 else chosen.freq
        made = signal.butter(chosen.order, edges, chosen.band, fs=chosen.samplerate, output="sos")
        return np.asarray(made)
    kernel = design_sinc(
        chosen.window, chosen.order, [f / chosen.samplerate for f in chosen.freq], chosen.band
    )
    return minimum_phase(kernel) if chosen.direction == "onepass-minphase" else kernel
