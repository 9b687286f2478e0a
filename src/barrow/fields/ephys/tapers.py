"""Tapers: windows that a signal is multiplied with before its Fourier transform.

They are scaled so that the power of the signal comes back in its spectrum, as
in Syncopy and FieldTrip. Each is computed once for each length.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from typing import Any

import numpy as np
from scipy.signal import windows

from barrow.errors import InputError

# 'dpss' is chosen by tapsmofrq=; an exponential window is not symmetric.
NAMES = tuple(n for n in windows.__all__ if n not in ("get_window", "exponential", "dpss"))


@dataclass(frozen=True)
class Taper:
    """Which taper, and its options: small, and fit to be sent to a worker.

    Examples
    --------
    >>> Taper("hann").windows(1000).shape
    (1, 1000)
    >>> Taper("dpss", (("Kmax", 3), ("NW", 2.0))).windows(1000).shape
    (3, 1000)
    """

    name: str = "hann"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def count(self) -> int:
        """Number of windows: more than one for multitapering only."""
        return int(dict(self.options).get("Kmax", 1))

    @property
    def labels(self) -> list[str]:
        """Names of the windows."""
        if self.name == "dpss":
            return [f"dpss{number}" for number in range(self.count)]
        return ["None" if self.name == "boxcar" else self.name]

    def windows(self, length: int, padded: int | None = None, sym: bool = True) -> np.ndarray:
        """Return the windows for a signal of a length, padded with zeros to another.

        Parameters
        ----------
        length
            Samples of the signal.
        padded
            Samples after padding; the scale depends on them. By default no padding.
        sym
            Whether Slepian windows are symmetric or one period of a periodic one.
        """
        return _make_windows(self.name, self.options, length, padded or length, sym)


@lru_cache(maxsize=512)
def _make_windows(
    name: str, options: tuple[tuple[str, Any], ...], length: int, padded: int, sym: bool
) -> np.ndarray:
    given = dict(options)
    if name == "dpss":
        # At most as many windows as samples exist; a short trial has fewer.
        given["Kmax"] = min(given["Kmax"], length)
        given["NW"] = min(given["NW"], np.nextafter(length / 2, 0))
        given["sym"] = sym
    made = np.atleast_2d(getattr(windows, name)(length, **given)).astype(float)
    if name == "dpss":
        made *= np.sqrt(padded)
    else:
        gain = 1 if name == "boxcar" else np.sqrt(4 / 3)
        total = made.sum()
        # A window of one or two samples may be all zero.
        made *= gain * np.sqrt(padded / total) if total > 0 else 0.0
    made.flags.writeable = False
    return made


@dataclass(frozen=True)
class Tapering:
    """Which taper is asked for, as the arguments of ``freqanalysis`` say it.

    Examples
    --------
    >>> Tapering(tapsmofrq=10).choose(samplerate=1000, length=1000).count
    19
    """

    taper: str | None = "hann"
    """Name of a window in ``scipy.signal.windows``; None for none."""
    taper_opt: Mapping[str, Any] | None = None
    """Options of that window."""
    tapsmofrq: float | None = None
    """Half the bandwidth in Hz over which Slepian tapers smooth: multitapering."""
    n_tapers: int | None = None
    """How many of them; by default as many as are well concentrated."""

    def choose(self, samplerate: float, length: float) -> Taper:
        """Return the taper for trials of so many samples, on average."""
        if self.tapsmofrq is not None:
            return self._choose_slepians(self.tapsmofrq, samplerate, length)
        if self.taper is None:
            return Taper("boxcar")
        if self.taper == "dpss":
            raise InputError("taper='dpss' is chosen by its bandwidth in Hz: write tapsmofrq=2.")
        if self.taper not in NAMES:
            raise InputError(
                f"taper={self.taper!r} is unknown. Use one of {', '.join(NAMES)}, or None."
            )
        takes = signature(getattr(windows, self.taper)).parameters
        needed = [name for name in takes if name not in ("M", "sym", "xp", "device")]
        given = dict(self.taper_opt or {})
        if set(given) != set(needed):
            raise InputError(
                f"taper={self.taper!r} needs taper_opt with {needed or 'nothing'}, but got "
                f"{sorted(given)}."
            )
        return Taper(self.taper, tuple(sorted(given.items())))

    def _choose_slepians(self, tapsmofrq: float, samplerate: float, length: float) -> Taper:
        if self.taper not in ("hann", None):
            raise InputError(
                f"taper={self.taper!r} and tapsmofrq={tapsmofrq} are two choices of taper. Leave "
                "one out."
            )
        if not tapsmofrq > 0:
            raise InputError(f"tapsmofrq={tapsmofrq!r} is no bandwidth. Give Hz, for example 2.")
        if self.n_tapers is not None and self.n_tapers < 1:
            raise InputError(f"nTaper={self.n_tapers!r} is no number of tapers: use 1 or more.")
        least = samplerate / length
        most = min(samplerate / 2 - 1 / length, samplerate * (length + 1) / (2 * length))
        width = float(np.clip(tapsmofrq, least, most)) * length / samplerate
        count = max(int(2 * width - 1), 1) if self.n_tapers is None else int(self.n_tapers)
        return Taper("dpss", (("Kmax", count), ("NW", width)))
