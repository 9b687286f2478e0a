"""Add up what a processor returns for its chunks.

Dictionaries are joined key by key, sets united, lists joined; all else is added with ``+``:
numbers, histograms, arrays, accumulators of coffea.
"""

from collections.abc import Mapping, Set
from copy import copy
from typing import Any

from barrow.errors import StepError


def accumulate(one: Any, other: Any) -> Any:
    """Return the sum of two answers; neither is changed.

    Examples
    --------
    >>> accumulate({"n": 1, "seen": {"a"}}, {"n": 2, "seen": {"b"}}) == {"n": 3, "seen": {"a", "b"}}
    True
    >>> accumulate({"a": [1]}, {"a": [2], "b": 5})
    {'a': [1, 2], 'b': 5}
    >>> accumulate(None, 3)
    3
    """
    if other is None:
        return one
    if one is None:
        return other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return _join(one, other)
    if isinstance(one, Set) and isinstance(other, Set):
        return one | other
    try:
        return one + other
    except (TypeError, ValueError) as error:
        raise StepError(
            f"The processor returned {type(one).__name__} for one chunk and "
            f"{type(other).__name__} for another, which cannot be added ({_first_line(error)}). "
            "Return numbers, lists, sets, histograms, arrays of one length, or dictionaries of "
            "them; collider.column_accumulator(array) for arrays to be joined end to end."
        ) from None


def _join(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> Any:
    """Return both dictionaries in one, of the kind of the first."""
    # One that makes its values itself, or an accumulator, knows how to be copied.
    joined: Any = copy(one)
    for key, value in other.items():
        try:
            joined[key] = accumulate(one[key], value) if key in one else value
        except StepError as error:
            error.add_note(f"barrow: under {key!r}")
            raise
    return joined


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
