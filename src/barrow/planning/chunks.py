"""Count chunks, and cut a chunk down to a memory budget.

Integer arithmetic on names and lengths: no Dask, no files, no clock.
The same numbers always give the same chunks.
"""

from collections.abc import Callable, Collection, Mapping
from math import prod

from barrow.errors import BudgetError
from barrow.units import format_bytes

CountItems = Callable[[Mapping[str, int]], int]
"""How many items a task on a chunk of these lengths reads, halo included."""


def count_chunks(lengths: Mapping[str, int], chunk: Mapping[str, int]) -> int:
    """Return into how many chunks data are cut."""
    return prod(max(1, -(-length // chunk[dim])) for dim, length in lengths.items())


def shrink_chunk(
    chunk: dict[str, int],
    cuttable: Collection[str],
    count_items: CountItems,
    most_items: int,
    bytes_per_item: float,
) -> dict[str, int]:
    """Return the chunk cut until it fits, below the grain if need be."""
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
