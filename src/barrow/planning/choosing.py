"""Choose between settings of which the time is known: the one rule of all studies."""

from collections.abc import Sequence

AS_FAST = 1.1
"""Times that differ by less are about the same: then fewer workers are better."""


def choose(seconds: Sequence[float]) -> int:
    """Return the first setting that is about as fast as the fastest; they come by their price.

    Examples
    --------
    >>> choose([8.0, 4.1, 4.0])
    1
    """
    fastest = min(seconds)
    return next(i for i, taken in enumerate(seconds) if taken <= AS_FAST * fastest)
