"""A ladder of chunk shapes, from the smallest that makes sense to the largest that fits.

Each rung doubles the dimension that makes reading cheapest per item: halo and
cut storage chunks cost least when chunks grow where they overlap most. A few
dozen rungs stand for all shapes there are. Integer arithmetic only.
"""

from collections.abc import Collection, Mapping
from math import prod

from barrow.planning.chunks import CountItems, shrink_chunk


def climb(
    lengths: Mapping[str, int],
    *,
    grain: Mapping[str, int],
    cuttable: Collection[str],
    count_items: CountItems,
    most_items: int,
    bytes_per_item: float = 1.0,
) -> list[dict[str, int]]:
    """Return chunks of growing size, none with more than the most items.

    Parameters
    ----------
    lengths
        Length of each dimension of what is cut, in storage order.
    grain
        Storage chunk along each dimension; 1 where any cut is as good.
    cuttable
        Dimensions that may be cut.
    count_items
        Items that a task on a chunk of these lengths reads, halo included.
    most_items
        Items per chunk that still fit the memory.
    bytes_per_item
        Only for the message when nothing fits.

    Examples
    --------
    >>> def with_halo(chunk):
    ...     return (chunk["y"] + 20) * (chunk["x"] + 20)
    >>> rungs = climb({"y": 400, "x": 400}, grain={"y": 50, "x": 50}, cuttable=("y", "x"),
    ...     count_items=with_halo, most_items=90_000)
    >>> [tuple(rung.values()) for rung in rungs]
    [(50, 50), (50, 100), (100, 100), (100, 200), (200, 200)]
    """
    chunk = {
        dim: max(1, min(length, grain.get(dim, 1)) if dim in cuttable else length)
        for dim, length in lengths.items()
    }
    if count_items(chunk) > most_items:
        return [shrink_chunk(chunk, cuttable, count_items, most_items, bytes_per_item)]
    rungs = [chunk]
    while True:
        larger = [
            {**chunk, dim: min(2 * chunk[dim], lengths[dim])}
            for dim in reversed(list(lengths))
            if dim in cuttable and chunk[dim] < lengths[dim]
        ]
        fitting = [tried for tried in larger if count_items(tried) <= most_items]
        if not fitting:
            return rungs
        # Neighbours of the last dimension lie side by side, so it grows first among equals.
        chunk = min(fitting, key=lambda tried: count_items(tried) / prod(tried.values()))
        rungs.append(chunk)


def balance(
    chunk: Mapping[str, int],
    *,
    lengths: Mapping[str, int],
    grain: Mapping[str, int],
    cuttable: Collection[str],
    slots: int,
) -> dict[str, int]:
    """Return the chunk a little smaller, so that all workers end together.

    Examples
    --------
    >>> balance({"x": 64}, lengths={"x": 320}, grain={}, cuttable=("x",), slots=2)
    {'x': 54}
    """
    counts = {dim: max(1, -(-length // chunk[dim])) for dim, length in lengths.items()}
    total = prod(counts.values())
    if total % slots == 0 or total > 16 * slots:
        return dict(chunk)
    tried = []
    for dim in lengths:
        if dim not in cuttable or counts[dim] >= lengths[dim]:
            continue
        step = grain.get(dim, 1)
        for count in range(counts[dim], counts[dim] + slots + 1):
            size = -(-lengths[dim] // count)
            size = min(lengths[dim], -(-size // step) * step)
            real = -(-lengths[dim] // size)
            if total // counts[dim] * real % slots == 0:
                tried.append({**chunk, dim: size})
                break
    return max(tried, key=lambda found: prod(found.values()), default=dict(chunk))
