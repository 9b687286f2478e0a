"""Small changes of form that all parts of a report share."""

import re
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


def in_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return the key by which people sort names: numbers in them by their value.

    Examples
    --------
    >>> sorted(["worker-10", "worker-2", "client"], key=in_order)
    ['client', 'worker-2', 'worker-10']
    """
    # Of a name that is longer than anybody reads, the beginning will do.
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+", name[:200])
    return tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts)


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
