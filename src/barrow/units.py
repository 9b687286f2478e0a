"""Read and write sizes and durations the way people say them."""

import re

_STEPS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_FACTORS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgtp", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtp", start=1)},
    **{prefix: 1000**power for power, prefix in enumerate("kmgtp", start=1)},
}


def format_bytes(count: float) -> str:
    """Return a size with three digits and its unit.

    Examples
    --------
    >>> format_bytes(8000)
    '7.81 KiB'
    >>> format_bytes(5 * 2**30)
    '5.00 GiB'
    >>> format_bytes(12)
    '12 B'
    """
    size = float(count)
    for unit in _STEPS:
        if abs(size) < 1024 or unit == _STEPS[-1]:
            break
        size /= 1024
    if unit == "B":
        return f"{size:.0f} B"
    digits = 2 if abs(size) < 10 else 1 if abs(size) < 100 else 0
    return f"{size:.{digits}f} {unit}"


def parse_bytes(text: str | int | float) -> int:
    """Return the number of bytes meant by a number or by text such as ``"5GB"``.

    Examples
    --------
    >>> parse_bytes("5GB")
    5000000000
    >>> parse_bytes("1.5 GiB")
    1610612736
    >>> parse_bytes(4096)
    4096
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        count = float(text)
    else:
        match = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", str(text))
        factor = _FACTORS.get(match.group(2).lower()) if match else None
        try:
            count = float(match.group(1)) * factor  # type: ignore[union-attr, operator]
        except (AttributeError, TypeError, ValueError):
            raise ValueError(
                f"{text!r} is not a size. Write a number of bytes, or for example '5GB'."
            ) from None
    if not 0 <= count < 2**63:
        raise ValueError(f"{text!r} is not a size: it must be positive and below 8 EiB.")
    return int(count)


def format_seconds(seconds: float) -> str:
    """Return a duration in the unit a person would choose.

    Examples
    --------
    >>> format_seconds(0.0004), format_seconds(0.25), format_seconds(3.21)
    ('400 µs', '250 ms', '3.2 s')
    >>> format_seconds(95), format_seconds(7500), format_seconds(0.00005)
    ('1 min 35 s', '2 h 5 min', '50 µs')
    """
    if 0 < seconds < 0.00095:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 0.01:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun in the right number.

    Examples
    --------
    >>> format_count(1, "chunk"), format_count(12000, "chunk")
    ('1 chunk', '12,000 chunks')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
