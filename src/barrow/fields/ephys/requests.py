"""What every method of frequency analysis is asked alike: frequencies, times, output."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.analysis import Trialing, check_polyremoval
from barrow.fields.ephys.frequencies import choose_foi, match_bins
from barrow.fields.ephys.outputs import output_dtype


@dataclass(frozen=True)
class Request:
    """Which spectra are wanted, of which trials."""

    trials: Trialing
    foi: np.ndarray | None
    """Frequencies in Hz; None for all."""
    foilim: np.ndarray | None
    """Lowest and highest frequency in Hz; None for all."""
    output: str
    polyremoval: int | None

    @classmethod
    def check(
        cls, trials: Trialing, foi: Any, foilim: Any, output: str, polyremoval: int | None
    ) -> "Request":
        """Return a request, or say what is wrong with it."""
        output_dtype(output)
        check_polyremoval(polyremoval)
        return cls(trials, *choose_foi(foi, foilim, trials.samplerate), output, polyremoval)

    @property
    def settings(self) -> dict[str, Any]:
        """What every array function takes."""
        return {"polyremoval": self.polyremoval, "output": self.output}

    def pick_bins(self, n_fft: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices and the frequencies that are wanted of a Fourier transform."""
        freqs = np.fft.rfftfreq(n_fft, 1 / self.trials.samplerate)
        bins = match_bins(freqs, self.foi, self.foilim)
        return bins, freqs[bins]


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


def describe_times(times: np.ndarray, count: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the sample rate, lengths and offsets of answers at these times."""
    steps = np.diff(times)
    is_even = steps.size > 0 and np.allclose(steps, steps[0])
    rate = float(1 / steps[0]) if is_even else 1.0
    return rate, np.full(count, times.size), np.full(count, times[0] * rate)
