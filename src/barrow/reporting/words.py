"""Small changes of form that all parts of a report share."""

from typing import Any

import numpy as np


def shorten(text: str, most: int) -> str:
    """Return a text that is at most so long; the middle is left out.

    Examples
    --------
    >>> shorten("a_very_long_name_of_a_step", 13)
    'a_very… a_step'
    >>> shorten("short", 13)
    'short'
    """
    if len(text) <= most + 1:
        return text
    half = most // 2
    return f"{text[:half]}… {text[-half:]}"


def to_list(values: np.ndarray, digits: int = 6) -> list[Any]:
    """Return numbers for JSON: not longer than needed, None for what is not known.

    Examples
    --------
    >>> to_list(np.array([1.23456789, np.nan, 100000.0]))
    [1.23457, None, 100000.0]
    """
    return [float(f"{v:.{digits}g}") if v == v else None for v in values.tolist()]


def plain(text: str) -> str:
    """Return a text in one line, without signs that would steer a terminal.

    Examples
    --------
    >>> plain("two\\nlines \\x1b[31mred")
    'two lines [31mred'
    """
    return "".join(c for c in " ".join(str(text).split()) if c.isprintable())
