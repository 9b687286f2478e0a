"""Superlets: sharp in time and frequency, by Moca et al. (2021).

A superlet is a set of Morlet wavelets with more and more cycles. The transform is
the geometric mean of theirs.
"""

from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.outputs import convert
from barrow.fields.ephys.wavelets import Bank, walk_trials

SPREAD = 5


def scale_of(period: Any) -> Any:
    """Return the scale that belongs to a period."""
    return period / (2 * np.pi)


def choose_orders(
    freqs: np.ndarray, order_max: int, order_min: int = 1, adaptive: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the orders of a superlet, and the exponent of each at each frequency.

    Parameters
    ----------
    freqs
        Frequencies; from low to high if adaptive.
    adaptive
        Whether the order grows with the frequency, in fractions, from the least to
        the largest. Otherwise all orders are used everywhere.

    Examples
    --------
    >>> orders, exponents = choose_orders(np.array([10.0, 20.0, 30.0]), 3)
    >>> orders.tolist(), exponents.round(2).tolist()[0]
    ([1, 2, 3], [0.33, 0.33, 0.33])
    """
    if order_max is None or order_min < 1 or order_max < order_min:
        raise InputError(
            f"order_max={order_max!r} and order_min={order_min!r} must be whole numbers, "
            "order_min from 1 on and order_max no less."
        )
    if not adaptive:
        orders = np.arange(order_min, order_max + 1)
        return orders, np.full((orders.size, freqs.size), 1 / orders.size)
    if freqs.size < 2 or np.any(np.diff(freqs) <= 0):
        raise InputError("adaptive=True needs two frequencies or more, from low to high.")
    exact = order_min + (order_max - order_min) * (freqs - freqs[0]) / (freqs[-1] - freqs[0])
    whole = np.floor(exact).astype(int)
    orders = np.unique(whole)
    share = 1 / (exact - order_min + 1)
    fraction = exact % whole
    exponents = np.zeros((orders.size, freqs.size))
    exponents[0] = share
    first = 1
    for number, jump in enumerate(np.flatnonzero(np.diff(whole)).tolist(), start=1):
        # Up to the jump the next order counts by its fraction, from there on in full.
        exponents[number, first : jump + 1] = (fraction * share)[first : jump + 1]
        exponents[number, jump + 1 :] = share[jump + 1 :]
        first = jump + 1
    return orders, exponents


def superlet(
    trials: np.ndarray,
    facts: np.ndarray | None = None,
    *,
    samplerate: float,
    scales: np.ndarray,
    cycles: np.ndarray,
    exponents: np.ndarray,
    at: np.ndarray | None = None,
    offset: int = 0,
    polyremoval: int | None = 0,
    output: str = "pow",
) -> np.ndarray:
    """Return the superlet transform of each trial and channel.

    Parameters
    ----------
    trials, facts, at, offset
        As for :func:`barrow.fields.ephys.wavelets.wavelet`.
    scales
        Scales in seconds: period / 2π.
    cycles
        Cycles of each wavelet of the set.
    exponents
        Wavelet × scale: weights of the geometric mean; 0 for wavelets not used.

    Returns
    -------
    array
        Trial × time × 1 × scale × channel; NaN behind trials that are shorter.

    Examples
    --------
    >>> time = np.arange(1000) / 1000
    >>> sine = np.sin(2 * np.pi * 40 * time).astype("f4")[None, :, None]
    >>> freqs = np.arange(20.0, 61.0)
    >>> orders, exponents = choose_orders(freqs, 5)
    >>> found = superlet(
    ...     sine, samplerate=1000.0, scales=scale_of(1 / freqs), cycles=3 * orders,
    ...     exponents=exponents,
    ... )
    >>> float(freqs[found[0, 500, 0, :, 0].argmax()])
    40.0
    """
    used = [
        (row, s) for s in range(len(scales)) for row in np.flatnonzero(exponents[:, s]).tolist()
    ]
    bank = Bank([_sample_morlet(scales[s], cycles[row], samplerate) for row, s in used])
    needs_phase = output not in ("pow", "abs")

    def transform(signals: np.ndarray, answer: np.ndarray, rows: Any) -> None:
        # A product of powers is a sum of logarithms.
        logs: Any = 0.0
        phase: Any = 0.0
        for (row, s), found in zip(used, bank.convolve(signals), strict=True):
            exponent = found.real.dtype.type(exponents[row, s])
            is_first, is_last = row == 0, _is_last(exponents, row, s)
            power = convert(found, "pow")
            with np.errstate(divide="ignore"):
                term = np.log(power, out=power)
            term *= exponent / 2
            logs = term if is_first else logs + term
            if needs_phase:
                angle = convert(found, "angle") * exponent
                phase = angle if is_first else phase + angle
            if is_last:
                size = np.exp(logs)
                spectrum = size * np.exp(1j * phase) if needs_phase else size + 0j
                answer[:, s] = convert(spectrum, output)[rows]

    return walk_trials(
        trials, facts, transform, len(scales), samplerate, at, offset, polyremoval, output
    )


def _is_last(exponents: np.ndarray, row: int, scale: int) -> bool:
    return not exponents[row + 1 :, scale].any()


def _sample_morlet(scale: float, cycles: float, samplerate: float) -> np.ndarray:
    count = 10 * scale * cycles * samplerate
    x = np.arange((1 - count) / 2, (count + 1) / 2) / samplerate / scale
    gain = samplerate**-0.5 / (4 * np.pi) * SPREAD / (scale * cycles * (2 * np.pi) ** 1.5)
    found: np.ndarray = gain * np.exp(1j * x - 0.5 * (SPREAD * x / (2 * np.pi * cycles)) ** 2)
    return found
