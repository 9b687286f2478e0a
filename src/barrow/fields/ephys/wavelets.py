"""Wavelet transforms, with the wavelets of Torrence and Compo (1998).

The transform of a signal is computed once; each scale then costs one inverse
transform.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import fft, special

from barrow.errors import InputError
from barrow.fields.ephys.detrending import detrend, working_dtype
from barrow.fields.ephys.fourier import split_facts
from barrow.fields.ephys.outputs import convert, output_dtype

NAMES = ("Morlet", "Paul", "DOG", "Ricker", "Marr", "Mexican_hat")

# A wavelet is sampled out to five times its scale on either side.
SUPPORT = 10


class Wavelet(Protocol):
    """A shape, and how its scale and the period of an oscillation belong together."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the shape at times in units of the scale."""

    def period(self, scale: Any) -> Any:
        """Return the period of the oscillation that a scale sees best."""

    def scale(self, period: Any) -> Any:
        """Return the scale that sees an oscillation of a period best."""


@dataclass(frozen=True)
class Morlet:
    """A wave of ``width`` radians for each unit of time under a Gaussian.

    Examples
    --------
    >>> round(float(Morlet(6).period(1.0)), 3)
    1.033
    """

    width: float = 6.0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        wave = np.exp(1j * self.width * x) - np.exp(-0.5 * self.width**2)
        found: np.ndarray = wave * np.exp(-0.5 * x**2) * np.pi**-0.25
        return found

    def period(self, scale: Any) -> Any:
        return 4 * np.pi * scale / (self.width + np.sqrt(2 + self.width**2))

    def scale(self, period: Any) -> Any:
        return period * (self.width + np.sqrt(2 + self.width**2)) / (4 * np.pi)


@dataclass(frozen=True)
class Paul:
    """Short in time, wide in frequency."""

    order: int = 4

    def __call__(self, x: np.ndarray) -> np.ndarray:
        m = self.order
        gain = 2**m * 1j**m * special.factorial(m)
        gain = gain / np.sqrt(np.pi * special.factorial(2 * m))
        found: np.ndarray = gain * (1 - 1j * x) ** -(m + 1)
        return found

    def period(self, scale: Any) -> Any:
        return 4 * np.pi * scale / (2 * self.order + 1)

    def scale(self, period: Any) -> Any:
        return period * (2 * self.order + 1) / (4 * np.pi)


@dataclass(frozen=True)
class DOG:
    """A derivative of a Gaussian: real, so without phase. Order 2 is the Mexican hat."""

    order: int = 2

    def __call__(self, x: np.ndarray) -> np.ndarray:
        m = self.order
        gain = (-1) ** (m + 1) / np.sqrt(special.gamma(m + 0.5))
        found: np.ndarray = gain * special.hermitenorm(m)(x) * np.exp(-0.5 * x**2)
        return found

    def period(self, scale: Any) -> Any:
        return 2 * np.pi * scale / np.sqrt(self.order + 0.5)

    def scale(self, period: Any) -> Any:
        return period * np.sqrt(self.order + 0.5) / (2 * np.pi)


def choose_wavelet(name: str, width: float = 6, order: int | None = None) -> Wavelet:
    """Return a wavelet by its name.

    Examples
    --------
    >>> choose_wavelet("Morlet", width=7)
    Morlet(width=7)
    """
    if name not in NAMES:
        raise InputError(f"wavelet={name!r} is unknown. Use one of {', '.join(NAMES)}.")
    if name == "Morlet":
        if not width >= 1:
            raise InputError(f"width={width!r} is too small for a Morlet wavelet: use 6 or more.")
        return Morlet(width)
    if name in ("Paul", "DOG"):
        least = 4 if name == "Paul" else 1
        if order is None or int(order) != order or order < least:
            raise InputError(f"wavelet={name!r} needs order={least} or more, not {order!r}.")
        return Paul(int(order)) if name == "Paul" else DOG(int(order))
    return DOG(2)


def choose_scales(
    scale: Callable[[float], float], length: int, samplerate: float, dj: float = 0.25
) -> np.ndarray:
    """Return scales from the length of a trial down to two samples, four to an octave."""
    least = scale(2 / samplerate)
    octaves = int(np.log2(length / samplerate / least) / dj)
    return np.asarray(least * 2 ** (dj * np.arange(octaves + 1))[::-1])


def wavelet(
    trials: np.ndarray,
    facts: np.ndarray | None = None,
    *,
    samplerate: float,
    scales: np.ndarray,
    shape: Wavelet,
    at: np.ndarray | None = None,
    offset: int = 0,
    polyremoval: int | None = 0,
    output: str = "pow",
) -> np.ndarray:
    """Return the wavelet transform of each trial and channel.

    Parameters
    ----------
    trials
        Trial × time × channel.
    facts
        Samples, and time of the first sample in samples, of each trial; None if all
        are as long as the array and begin at ``offset``.
    scales
        Scales in seconds.
    at
        Times in seconds, evenly spaced, to be returned. The trial is cut to them first.

    Returns
    -------
    array
        Trial × time × 1 × scale × channel; NaN behind trials that are shorter.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(1, 500, 2)).astype("f4")
    >>> scales = Morlet().scale(1 / np.array([20.0, 40.0]))
    >>> wavelet(noise, samplerate=1000.0, scales=scales, shape=Morlet()).shape
    (1, 500, 1, 2, 2)
    """
    bank = Bank([_sample_wavelet(shape, scale, samplerate) for scale in scales])

    def transform(signals: np.ndarray, answer: np.ndarray, rows: Any) -> None:
        for number, found in enumerate(bank.convolve(signals)):
            answer[:, number] = convert(found, output)[rows]

    return walk_trials(
        trials, facts, transform, len(scales), samplerate, at, offset, polyremoval, output
    )


def _sample_wavelet(shape: Wavelet, scale: float, samplerate: float) -> np.ndarray:
    count = SUPPORT * scale * samplerate
    times = np.arange((1 - count) / 2, (count + 1) / 2) / samplerate
    gain = samplerate**-0.5 / (scale * 8 * np.pi)
    return np.asarray(gain * shape(times / scale))


class Bank:
    """Kernels with which signals are convolved; the spectra of the kernels are computed once.

    Examples
    --------
    >>> bank = Bank([np.array([0.5, 0.5]), np.array([0.0, 1.0, 0.0])])
    >>> [found[:, 0].real.round(6).tolist() for found in bank.convolve(np.eye(4, 1))]
    [[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    """

    def __init__(self, kernels: Sequence[np.ndarray]) -> None:
        self._kernels = kernels
        self._length = 0
        self._gains: list[np.ndarray] = []

    def convolve(self, signals: np.ndarray) -> Iterator[np.ndarray]:
        """Yield signals, time × channel, convolved with each kernel: as long as before, centred."""
        length = len(signals)
        if length != self._length:
            # Trials of one length follow one another; the last one is remembered.
            self._gains, self._length = self._transform(length), length
        is_single = signals.dtype == np.float32
        complex_dtype = np.complex64 if is_single else np.complex128
        spectrum = fft.fft(signals, len(self._gains[0]), axis=0)
        for kernel, gain in zip(self._kernels, self._gains, strict=True):
            shaped = spectrum * gain.astype(complex_dtype)[:, None]
            found = fft.ifft(shaped, axis=0, overwrite_x=True)[:length]
            if kernel.dtype.kind != "c":
                # Real by real is real: what is left of the rest is rounding.
                found.imag = 0
            yield found

    def _transform(self, length: int) -> list[np.ndarray]:
        """Return the spectra of the kernels for signals of a length."""
        # Of a kernel that is longer than the signal the ends never meet it.
        reach = max(min(len(kernel) // 2 + 1, length) for kernel in self._kernels)
        size = fft.next_fast_len(length + reach)
        gains = []
        for kernel in self._kernels:
            centre = (len(kernel) - 1) // 2
            before, after = min(centre, length - 1), min(len(kernel) - 1 - centre, length - 1)
            ring = np.zeros(size, np.complex128)
            ring[: after + 1] = kernel[centre : centre + after + 1]
            ring[size - before :] = kernel[centre - before : centre]
            gains.append(fft.fft(ring))
        return gains


def walk_trials(
    trials: np.ndarray,
    facts: np.ndarray | None,
    transform: Callable[[np.ndarray, np.ndarray, Any], None],
    count: int,
    samplerate: float,
    at: np.ndarray | None,
    offset: int,
    polyremoval: int | None,
    output: str,
) -> np.ndarray:
    """Let a function fill time × scale × channel for each trial, some channels at a time."""
    n_trials, n_samples, n_channels = trials.shape
    lengths, offsets = split_facts(facts, n_trials, n_samples, offset)
    n_times = at.size if at is not None else n_samples
    answer = np.full((n_trials, n_times, 1, count, n_channels), np.nan, output_dtype(output))
    width = max(1, min(n_channels, 2**15 // max(n_samples, 1)))
    for trial in range(n_trials):
        length = int(lengths[trial])
        cut, rows = _cut_to(at, length, int(offsets[trial]), samplerate)
        for low in range(0, n_channels, width):
            part = slice(low, min(low + width, n_channels))
            signals = detrend(trials[trial, :length, part], polyremoval)
            signals = signals.astype(working_dtype(signals.dtype), copy=False)[cut]
            if not len(signals):
                continue
            target = answer[trial, : length if at is None else None, 0, :, part]
            transform(signals, target, rows)
    return answer


def _cut_to(
    at: np.ndarray | None, length: int, offset: int, samplerate: float
) -> tuple[slice, Any]:
    """Return the samples that are transformed, and which of the answers are wanted."""
    if at is None:
        return slice(None), slice(None)
    first = int(np.rint(samplerate * at[0])) - offset
    rows = np.rint(samplerate * (at - at[0])).astype(int)
    low = max(0, first)
    high = min(length, first + int(rows[-1]) + 1)
    return slice(low, max(high, low)), np.clip(rows + first - low, 0, max(high - low - 1, 0))
