"""Choose the storage chunks of a result so that no two tasks share one.

Integer arithmetic on names and lengths: no Dask, no files, no clock.
"""

from collections.abc import Collection, Mapping
from functools import partial
from math import ceil, prod

SMALLEST_BYTES = 2**18
LARGEST_BYTES = 2**26
# A result whose reader is not known is kept in about so many files: large enough that
# none of them is a bother, small enough that a reader need not take much that it does not want.
USUAL_FILES = 4096
USUAL_BYTES = 2**22
# A store between two steps: so much is quick to find and to read at once ...
HANDY_BYTES = 2**20
# ... and a task of the reader need not hold more than this to read whole stored chunks.
READER_BYTES = 2**26


def choose_stored_chunks(
    chunk: Mapping[str, int],
    *,
    lengths: Mapping[str, int],
    grain: Mapping[str, int],
    itemsize: int,
) -> dict[str, int]:
    """Return storage chunk lengths that divide the chunks of the tasks.

    The grain of the source is kept where it divides and has a sensible size;
    otherwise the task's chunk is stored whole, or in parts if it is large. It is cut
    where it spans most of the data: nobody knows how they will be read.

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
    if kept == dict(chunk):
        usual = max(USUAL_BYTES, prod(lengths.values()) * itemsize // USUAL_FILES)
        return _shrink(kept, chunk, lengths, itemsize, min(usual, LARGEST_BYTES))
    return _shrink(kept, chunk, lengths, itemsize)


def choose_between(
    chunk: Mapping[str, int],
    *,
    lengths: Mapping[str, int],
    reader_cuts: Collection[str],
    itemsize: int,
    reader_bytes: int = READER_BYTES,
) -> dict[str, int]:
    """Return storage chunks for a result that is written by one cut and read by another.

    They divide the writer's chunks, and are short along the dimensions that the
    reader cuts: it reads little more than it needs.

    Parameters
    ----------
    chunk
        What one task writes.
    reader_cuts
        Dimensions along which the reader's chunks are cut; all others it needs
        from end to end.
    reader_bytes
        What a task of the reader may hold of it.

    Examples
    --------
    >>> movie = {"frame": 18_000, "height": 480, "width": 752}
    >>> choose_between({**movie, "frame": 100}, lengths=movie, reader_cuts=("height", "width"),
    ...     itemsize=4)
    {'frame': 100, 'height': 30, 'width': 24}
    """
    kept = {dim: max(1, min(size, lengths[dim])) for dim, size in chunk.items()}
    whole = prod(length for dim, length in lengths.items() if dim not in reader_cuts)
    while True:
        stored = prod(kept.values()) * itemsize
        held = prod(n for dim, n in kept.items() if dim in reader_cuts) * whole * itemsize
        if stored <= HANDY_BYTES and held <= reader_bytes:
            break
        tried = [
            {**kept, dim: part}
            for dim in sorted(kept, key=kept.__getitem__, reverse=True)
            if dim in reader_cuts and (part := _next_part(kept[dim], chunk[dim], lengths[dim]))
        ]
        large = [t for t in tried if prod(t.values()) * itemsize >= SMALLEST_BYTES]
        if not large:
            break
        kept = large[0]
    return _shrink(kept, chunk, lengths, itemsize)


def least_chunk(
    lengths: Mapping[str, int],
    *,
    writer_cuts: Collection[str],
    reader_cuts: Collection[str],
    itemsize: int,
    reader_bytes: int = READER_BYTES,
) -> dict[str, int]:
    """Return how long the writer's chunks must be for a store that both sides can use.

    If a task writes few frames, stored chunks of a sensible size hold few frames of
    many pixels, and a reader of all frames gets more pixels than it can hold.

    Examples
    --------
    >>> movie = {"frame": 18_000, "height": 480, "width": 752}
    >>> least_chunk(movie, writer_cuts=("frame",), reader_cuts=("height", "width"), itemsize=4)
    {'frame': 71}
    """
    if prod(lengths.values()) * itemsize <= reader_bytes:
        return {}
    grown = [dim for dim in lengths if dim in writer_cuts and dim not in reader_cuts]
    wanted = ceil(prod(lengths[dim] for dim in grown) * min(1.0, SMALLEST_BYTES / reader_bytes))
    least = {}
    for dim in reversed(grown):
        least[dim] = max(1, min(lengths[dim], wanted))
        wanted = ceil(wanted / least[dim])
    return dict(reversed(least.items()))


def divides(
    stored: Mapping[str, int], chunk: Mapping[str, int], lengths: Mapping[str, int]
) -> bool:
    """Return whether no two tasks would write the same stored chunk.

    Examples
    --------
    >>> divides({"x": 5}, {"x": 10}, {"x": 33}), divides({"x": 6}, {"x": 10}, {"x": 33})
    (True, False)
    """
    return all(
        size >= lengths[dim] or size % stored.get(dim, lengths[dim]) == 0
        for dim, size in chunk.items()
    )


def _next_part(part: int, size: int, length: int) -> int:
    """Return a part of a chunk about half as long as this one; 0 if there is none."""
    if part <= 1:
        return 0
    if size >= length:
        return -(-part // 2)
    return next((n for n in range(part // 2, 0, -1) if size % n == 0), 0)


def _shrink(
    kept: dict[str, int],
    chunk: Mapping[str, int],
    lengths: Mapping[str, int],
    itemsize: int,
    largest_bytes: int = LARGEST_BYTES,
) -> dict[str, int]:
    """Return parts of a chunk small enough for a file; large ones if the others were tiny."""
    while prod(kept.values()) * itemsize > largest_bytes:
        tried = [
            {**kept, dim: part}
            for dim, size in kept.items()
            if (part := _next_part(size, chunk[dim], lengths[dim]))
        ]
        large = [t for t in tried if prod(t.values()) * itemsize >= SMALLEST_BYTES]
        if not large:
            break
        kept = min(large, key=partial(_rate, of=kept, lengths=lengths))
    return kept


def _rate(
    part: Mapping[str, int], of: Mapping[str, int], lengths: Mapping[str, int]
) -> tuple[bool, float, int]:
    """Return how bad a part is: a sliver (a prime number has no part but 1), long, or small."""
    items = prod(part.values())
    spans = max(size / lengths[dim] for dim, size in part.items())
    return 4 * items < prod(of.values()), spans, -items


def _fits(grain: int, size: int, length: int) -> bool:
    # The last chunk may be cut short by the end of the data.
    return grain > 1 and (size % grain == 0 or (size == length and grain < length))
