"""Which frequencies are wanted, and which of those that exist are nearest.

Pure arithmetic on lists of numbers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from barrow.errors import InputError


def choose_padding(pad: Any, lengths: np.ndarray, samplerate: float) -> int:
    """Return the number of samples that all trials are padded to.

    Parameters
    ----------
    pad
        ``"maxperlen"``: the longest trial; ``"nextpow2"``: the next power of two;
        a number: so many seconds.

    Examples
    --------
    >>> lengths = np.array([900, 1000])
    >>> [choose_padding(pad, lengths, 1000.0) for pad in ("maxperlen", "nextpow2", 2.0)]
    [1000, 1024, 2000]
    """
    longest = int(lengths.max())
    if pad == "maxperlen":
        return longest
    if pad == "nextpow2":
        return 1 << (longest - 1).bit_length()
    if isinstance(pad, (int, float, np.number)) and not isinstance(pad, bool):
        if pad * samplerate >= longest:
            return int(pad * samplerate)
        raise InputError(
            f"pad={pad} s is shorter than the longest trial, {longest / samplerate:g} s. "
            "Use at least that."
        )
    raise InputError(f"pad={pad!r} is unknown. Use 'maxperlen', 'nextpow2' or a number of seconds.")


def choose_foi(foi: Any, foilim: Any, samplerate: float) -> tuple[Any, Any]:
    """Return the frequencies, or their limits, that were asked for; None for all."""
    foi, foilim = (
        None if value is None or (isinstance(value, str) and value == "all") else value
        for value in (foi, foilim)
    )
    if foi is not None and foilim is not None:
        raise InputError(
            "foi= and foilim= both choose frequencies. Give a list, or two limits, not both."
        )
    for name, value in (("foi", foi), ("foilim", foilim)):
        if value is None:
            continue
        try:
            array = np.atleast_1d(np.array(value, float))
        except (TypeError, ValueError):
            array = np.array([np.nan])
        if array.ndim != 1 or not array.size or not np.isfinite(array).all():
            raise InputError(f"{name}={value!r} must be frequencies in Hz.")
        if array.min() < 0 or array.max() > samplerate / 2:
            raise InputError(
                f"{name}={value!r} reaches beyond 0 to {samplerate / 2:g} Hz, half the sample rate."
            )
        if name == "foi":
            foi = array
        elif array.size != 2:
            raise InputError(f"foilim={value!r} must be two frequencies: lowest and highest.")
        else:
            foilim = np.sort(array)
    return foi, foilim


def match_bins(freqs: np.ndarray, foi: Any, foilim: Any) -> np.ndarray:
    """Return the indices of the frequencies that are wanted, or are nearest to it.

    Examples
    --------
    >>> match_bins(np.arange(6.0), [1.2, 0.9, 4], None).tolist()
    [1, 4]
    >>> match_bins(np.arange(6.0), None, [2, 4]).tolist()
    [2, 3, 4]
    """
    if foi is not None:
        found = nearest(freqs, foi)
    elif foilim is not None:
        found = np.flatnonzero((freqs >= foilim[0]) & (freqs <= foilim[1]))
    else:
        found = np.arange(freqs.size)
    if not found.size:
        raise InputError(
            f"foilim={list(foilim)} has no frequency: they lie "
            f"{freqs[1] - freqs[0] if freqs.size > 1 else 0:g} Hz apart. Use wider limits, or pad=."
        )
    return found


def nearest(source: np.ndarray, wanted: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the indices of the sorted values nearest to those wanted, each once, in order.

    Of two that are equally near the larger one is taken.
    """
    wanted = np.asarray(wanted, float)
    right = np.clip(np.searchsorted(source, wanted), 0, source.size - 1)
    left = np.maximum(right - 1, 0)
    is_left = np.abs(wanted - source[left]) < np.abs(wanted - source[right])
    found = np.where(is_left, left, right)
    _, first = np.unique(found, return_index=True)
    return found[np.sort(first)]


def as_slice(index: np.ndarray) -> Any:
    """Return consecutive indices as a slice, which is a view when it is used.

    Examples
    --------
    >>> as_slice(np.array([3, 4, 5])), as_slice(np.array([3, 5]))
    (slice(3, 6, None), array([3, 5]))
    """
    if index.size and np.array_equal(index, np.arange(index[0], index[0] + index.size)):
        return slice(int(index[0]), int(index[-1]) + 1)
    return index
