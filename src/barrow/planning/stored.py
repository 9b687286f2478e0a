"""Choose the storage chunks of a result so that no two tasks share one."""

from collections.abc import Mapping
from math import prod

SMALLEST_BYTES = 2**18
LARGEST_BYTES = 2**26


def choose_stored_chunks(
    chunk: Mapping[str, int],
    *,
    lengths: Mapping[str, int],
    grain: Mapping[str, int],
    itemsize: int,
) -> dict[str, int]:
    """Return storage chunk lengths that divide the chunks of the tasks.

    The grain of the source is kept where it divides and has a sensible size;
    otherwise the task's chunk is stored whole, or in equal parts if it is large.

    Examples
    --------
    >>> choose_stored_chunks(
    ...     {"y": 2000, "x": 4000}, lengths={"y": 9000, "x": 4000}, grain={"y": 1000, "x": 1000},
    ...     itemsize=4)
    {'y': 1000, 'x': 1000}
    """
    kept = {
        dim: grain[dim] if _fits(grain.get(dim, 0), size, lengths[dim]) else size
        for dim, size in chunk.items()
    }
    if prod(kept.values()) * itemsize < SMALLEST_BYTES:
        kept = dict(chunk)
    while prod(kept.values()) * itemsize > LARGEST_BYTES:
        parts = {dim: _smallest_divisor(size) for dim, size in kept.items() if size > 1}
        dim = max(parts, key=lambda name: kept[name] / parts[name])
        kept[dim] //= parts[dim]
    return kept


def _fits(grain: int, size: int, length: int) -> bool:
    # The last chunk may be cut short by the end of the data.
    return grain > 1 and (size % grain == 0 or (size == length and grain < length))


def _smallest_divisor(number: int) -> int:
    return next((d for d in range(2, int(number**0.5) + 1) if number % d == 0), number)
