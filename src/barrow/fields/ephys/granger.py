"""Spectral Granger causality, from averaged cross spectra.

The cross spectra are factorised by Wilson's method (1972); what comes of it is put
together as by Dhamala, Rangarajan and Ding (2008).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Granger:
    """Causality, and how well the factorisation went."""

    values: np.ndarray
    """Frequency × from × to."""
    converged: bool
    error: float
    """Largest relative error of the factorisation."""
    added: float
    """What was added to the diagonal to make it possible; -1 if that was not enough."""
    condition: float
    """Largest condition number before."""


def causality(
    csd: np.ndarray, *, rtol: float = 5e-6, iterations: int = 100, most_condition: float = 1e4
) -> Granger:
    """Return the causality between all channels.

    Parameters
    ----------
    csd
        Frequency × channel × channel: from 0 to half the sample rate, all of them.

    Examples
    --------
    >>> white = np.tile(np.eye(2, dtype=complex), (9, 1, 1))
    >>> bool(np.allclose(causality(white).values[:, 0, 1], 0, atol=1e-6))
    True
    """
    made, added, condition = _regularise(csd, most_condition)
    made = made.astype(np.complex128)
    transfer, noise, converged, error = factorise(made, iterations, rtol)
    power = np.abs(np.diagonal(made, axis1=1, axis2=2))
    variance = np.abs(np.diagonal(noise))
    # From i to j: the part of the power of j that noise of i, not shared with j, makes.
    gain = np.abs(transfer.transpose(0, 2, 1)) ** 2
    private = variance[:, None] - np.abs(noise.T) ** 2 / variance[None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.log(power[:, None, :] / (power[:, None, :] - private * gain))
    return Granger(values.astype(np.float32), converged, error, added, condition)


def factorise(
    csd: np.ndarray, iterations: int = 100, rtol: float = 1e-6
) -> tuple[np.ndarray, np.ndarray, bool, float]:
    """Return transfer functions, noise covariance, whether it converged, and its error."""
    count = len(csd)
    both = np.concatenate([csd, csd[count - 2 : 0 : -1].conj()])
    first = _first_guess(both)
    factor = np.tile(first.astype(complex), (len(both), 1, 1))
    root = np.linalg.cholesky(both)
    unit = np.eye(csd.shape[1])
    converged, error = False, np.inf
    size = np.abs(both)
    # Where two channels share nothing there is nothing to compare with.
    size = np.maximum(size, 1e-12 * size.max())
    for _ in range(iterations):
        half = np.linalg.solve(factor, root)
        positive, start = _positive_part(half @ half.conj().swapaxes(1, 2) + unit)
        upper = np.triu(start)
        upper = upper - upper.conj().T
        factor = factor @ (positive + upper)
        first = first @ (start + upper)
        product = factor @ factor.conj().swapaxes(1, 2)
        error = float((np.abs(both - product) / size).max())
        if error < rtol:
            converged = True
            break
    noise = first @ first.T
    transfer = factor @ np.linalg.inv(first)
    return transfer[:count], noise, converged, error


def _first_guess(csd: np.ndarray) -> np.ndarray:
    covariance = csd.sum(axis=0)
    covariance = ((covariance + covariance.T.conj()) / 2).real
    try:
        return np.asarray(np.linalg.cholesky(covariance).T)
    except np.linalg.LinAlgError:
        return np.ones_like(covariance)


def _positive_part(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keep the lags from zero on, half of lag zero and half of the last; and lag zero."""
    half = len(values) // 2
    lags = np.fft.ifft(values, axis=0).real
    lags[0] *= 0.5
    lags[half] *= 0.5
    lags[half + 1 :] = 0
    return np.fft.fft(lags, axis=0), lags[0].copy()


def _regularise(csd: np.ndarray, most: float) -> tuple[np.ndarray, float, float]:
    """Add to the diagonal, more and more, until the matrices can be inverted well."""
    condition = float(np.linalg.cond(csd).max())
    if condition < most:
        return csd, 0.0, condition
    made = csd
    for added in np.logspace(-10, -1, 15):
        made = csd + added * np.eye(csd.shape[1])
        if np.linalg.cond(made).max() < most:
            return made, float(added), condition
    return made, -1.0, condition
