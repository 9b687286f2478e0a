"""Check what somebody asks of a cluster."""

from numbers import Integral
from typing import Any

from barrow.errors import InputError
from barrow.units import parse_bytes


def check_count(name: str, value: Any, also: str = "") -> int:
    """Return a whole number from 1 up, or refuse what is none.

    Parameters
    ----------
    also
        What may be written instead.

    Examples
    --------
    >>> check_count("jobs", 4)
    4
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        instead = f", or {also}" if also else ""
        raise InputError(
            f"{name}={value!r} is not a count. Give a whole number from 1 up{instead}."
        )
    return int(value)


def parse_memory(memory: str | int | None) -> int | None:
    """Return an amount of memory in bytes; None if none is given.

    Examples
    --------
    >>> parse_memory("5GB")
    5000000000
    """
    try:
        return None if memory is None else parse_bytes(memory)
    except ValueError as error:
        raise InputError(f"memory={memory!r} cannot be used: {error}") from None
