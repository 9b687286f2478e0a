"""Choose chunks that fit a memory budget.

Integer arithmetic on names and lengths: no Dask, no files, no clock.
The same numbers always give the same chunks.
"""

from collections.abc import Callable, Collection, Mapping
from math import prod

from barrow.errors import BudgetError
from barrow.units import format_bytes

CountItems = Callable[[Mapping[str, int]], int]
"""How many items a task on a chunk of these lengths reads, halo included."""


def choose_chunks(
    lengths: Mapping[str, int],
    *,
    grain: Mapping[str, int],
    cuttable: Collection[str],
    count_items: CountItems,
    wanted_items: int,
    most_items: int,
    fewest_chunks: int = 1,
    bytes_per_item: float = 1.0,
) -> dict[str, int]:
    """Return chunk lengths near the wanted size that never exceed the largest.

    A chunk is a whole number of grains and grows along the last dimensions
    first, where neighbours lie side by side in storage. Only when one grain is
    already too much is it cut below the grain.

    Parameters
    ----------
    lengths
        Length of each dimension of what is cut, in storage order.
    grain
        Storage chunk along each dimension; 1 where any cut is as good.
    cuttable
        Dimensions that may be cut.
    count_items
        Items that a task on a chunk of these lengths reads.
    wanted_items
        Items per chunk to aim at.
    most_items
        Items per chunk that still fit the memory.
    fewest_chunks
        Enough chunks for all workers; the wanted size gives way to it.
    bytes_per_item
        Only for the message when nothing fits.

    Examples
    --------
    >>> video = {"frame": 18_000, "height": 480, "width": 752}
    >>> choose_chunks(
    ...     video, grain={"frame": 100}, cuttable=video, count_items=lambda c: c["frame"] *
    ...     c["height"] * c["width"], wanted_items=2**28, most_items=2**30)
    {'frame': 700, 'height': 480, 'width': 752}
    """
    chunk = {
        dim: min(length, grain.get(dim, 1)) if dim in cuttable else length
        for dim, length in lengths.items()
    }
    chunk = {dim: max(1, length) for dim, length in chunk.items()}
    if count_items(chunk) > most_items:
        return _shrink(chunk, cuttable, count_items, most_items, bytes_per_item)
    aim = min(wanted_items, most_items)
    for dim in reversed([dim for dim in lengths if dim in cuttable]):
        chunk = _grow(chunk, dim, lengths, grain.get(dim, 1), count_items, aim, fewest_chunks)
        if chunk[dim] < lengths[dim]:
            break
    return chunk


def count_chunks(lengths: Mapping[str, int], chunk: Mapping[str, int]) -> int:
    """Return into how many chunks data are cut."""
    return prod(max(1, -(-length // chunk[dim])) for dim, length in lengths.items())


def _grow(
    chunk: dict[str, int],
    dim: str,
    lengths: Mapping[str, int],
    grain: int,
    count_items: CountItems,
    aim: int,
    fewest_chunks: int,
) -> dict[str, int]:
    """Return the chunk with as many grains along one dimension as are allowed."""

    def allowed(grains: int) -> bool:
        tried = {**chunk, dim: min(grains * grain, lengths[dim])}
        return count_items(tried) <= aim and count_chunks(lengths, tried) >= fewest_chunks

    low, high = 1, max(1, -(-lengths[dim] // grain))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle - 1)
    return {**chunk, dim: max(1, min(low * grain, lengths[dim]))}


def _shrink(
    chunk: dict[str, int],
    cuttable: Collection[str],
    count_items: CountItems,
    most_items: int,
    bytes_per_item: float,
) -> dict[str, int]:
    while (items := count_items(chunk)) > most_items:
        longer = [dim for dim in chunk if dim in cuttable and chunk[dim] > 1]
        if not longer:
            need, allowed = items * bytes_per_item, most_items * bytes_per_item
            fixed = [dim for dim in chunk if dim not in cuttable]
            raise BudgetError(
                f"The smallest chunk {chunk} needs {format_bytes(need)}, but a task may use "
                f"{format_bytes(allowed)}.\nNothing is left to cut"
                + (f": {', '.join(map(repr, fixed))} must be whole." if fixed else ".")
                + f"\nAllow more than {format_bytes(need)} per task (memory=), run fewer tasks at "
                "once, or let a dimension be cut."
            )
        longest = max(longer, key=chunk.__getitem__)
        chunk = {**chunk, longest: -(-chunk[longest] // 2)}
    return chunk
