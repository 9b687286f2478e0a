"""Check the fields of a saved plan, which somebody may have edited by hand.

Plain data in, one sentence out: nothing is read or planned here.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from barrow.errors import InputError

ENGINES = ("inline", "threads", "processes", "dask")
PLACES = ("memory", "store", "value")


def check_fields(saved: Mapping[str, Any], names: Mapping[str, bool], where: str) -> None:
    """Refuse a field that is missing, unknown or nonsense, by its name.

    Parameters
    ----------
    saved
        The fields as they were found.
    names
        All fields there are, and whether each must be there.
    where
        What the message calls the plan: its path.

    Examples
    --------
    >>> check_fields({"workers": -2}, {"workers": True}, "plan.json")
    Traceback (most recent call last):
        ...
    barrow.errors.InputError: plan.json: workers is -2, but must be a whole number of 1 or more.
    """
    missing = [name for name, is_needed in names.items() if is_needed and name not in saved]
    if missing:
        raise InputError(f"{where} is not a plan that barrow saved: it has no {missing[0]!r}.")
    for name, value in saved.items():
        if name not in names:
            raise InputError(f"{where}: {name!r} is no field of a plan. Take it out.")
        is_good, rule = _RULES.get(name, (None, ""))
        if is_good is not None and not is_good(value):
            raise InputError(f"{where}: {name} is {value!r}, but must be {rule}.")
    lengths = saved.get("lengths", {})
    for name in ("chunks", "strides", "stored_chunks"):
        unknown = [dim for dim in saved.get(name, {}) if dim not in lengths]
        if unknown:
            raise InputError(
                f"{where}: {name} names {unknown[0]!r}, but the dimensions are "
                f"{', '.join(map(repr, lengths))}."
            )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_real and 0 <= value < float("inf")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_text, value))


def _is_sizes(least: int) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, Mapping)
        and all(_is_text(dim) and _is_whole(n) and n >= least for dim, n in value.items())
    )


def _is_dtype(value: Any) -> bool:
    try:
        return _is_text(value) and (not value or np.dtype(value) is not None)
    except TypeError:
        return False


_SIZES = "whole numbers of 1 or more, by dimension"
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (_is_text, "text"),
    "source": (_is_text, "text"),
    "steps": (_is_texts, "a list of names"),
    "cuttable": (_is_texts, "a list of dimensions"),
    "reasons": (_is_texts, "a list of texts"),
    "reads": (lambda v: _is_texts(v) and all(map(_is_dtype, v)), "a list of dtypes"),
    "lengths": (_is_sizes(0), "whole numbers of 0 or more, by dimension"),
    "chunks": (_is_sizes(1), _SIZES),
    "strides": (_is_sizes(1), _SIZES),
    "stored_chunks": (_is_sizes(1), _SIZES),
    "result": (lambda v: v in PLACES, f"one of {', '.join(PLACES)}"),
    "dtype": (_is_dtype, "a NumPy dtype, or empty for a reduction"),
    "engine": (lambda v: v in ENGINES, f"one of {', '.join(ENGINES)}"),
    "is_local": (lambda v: isinstance(v, bool), "true or false"),
    "cost": (
        lambda v: (
            isinstance(v, Mapping)
            and all(_is_number(n) or isinstance(n, (list, tuple)) for n in v.values())
        ),
        "what barrow measured: numbers and points by name",
    ),
    "resources": (
        lambda v: (
            isinstance(v, Mapping) and all(_is_text(k) and _is_number(n) for k, n in v.items())
        ),
        "numbers by name",
    ),
    "before": (lambda v: isinstance(v, (list, tuple)), "a list of plans"),
    "measured": (
        lambda v: isinstance(v, Mapping) and all(map(_is_number, v.values())),
        "numbers by name",
    ),
    **dict.fromkeys(
        ("workers", "threads", "cores"),
        (lambda v: _is_whole(v) and v >= 1, "a whole number of 1 or more"),
    ),
    **dict.fromkeys(
        (
            "available_bytes",
            "at_once",
            "memory_bytes",
            "budget_bytes",
            "items",
            "peak_bytes",
            "peak_bound_bytes",
        ),
        (lambda v: _is_whole(v) and v >= 0, "a whole number of 0 or more"),
    ),
    **dict.fromkeys(("task_seconds", "seconds"), (_is_number, "a number of 0 or more")),
}
