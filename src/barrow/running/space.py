"""Tell before a run whether its result can fit on the disk.

How well a result is compressed is known only when it is there, and a disk that is
full in the middle costs nothing that was done: so a run is refused only if it
clearly cannot fit, and in doubt it is begun with a word of warning.
"""

import time
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from barrow.errors import OutputError
from barrow.model.applied import evaluate
from barrow.model.plan import Plan
from barrow.model.reading import block_at
from barrow.running.disk import Room, measure_room
from barrow.units import format_bytes

# No store and no record can be begun with less.
LEAST_BYTES = 2**19
# Blocks that are computed, stored and looked at, all over the data; without all of them
# nothing is refused, and no more are tried after one that takes longer than this.
PLACES = (0.05, 0.25, 0.5, 0.75, 0.95)
SAMPLE_SECONDS = 5.0
SAMPLE_BYTES = 2**22
# What is refused would fit only if all of it took so many times less than the least of them.
CLEARLY = 4.0


@dataclass(frozen=True)
class Outlook:
    """What a run will need, and what is free."""

    most_bytes: int
    """What is still to be stored, uncompressed."""
    likely_bytes: int
    """The same, if all of it is compressed like some samples; 0 if that is not known."""
    least_bytes: int
    """The same, if all of it takes as little as the least of them."""
    room: Room

    @property
    def is_hopeless(self) -> bool:
        """Whether it clearly cannot fit.

        Examples
        --------
        >>> room = Room(free_bytes=2**30, total_bytes=2**40, path=Path("/"))
        >>> [Outlook(2**33, 2**33, least, room).is_hopeless for least in (2**33, 2**31)]
        [True, False]
        """
        return self.room.free_bytes < max(LEAST_BYTES, self.least_bytes / CLEARLY)

    def describe(self) -> str:
        """Return the numbers in words."""
        likely = f" (about {format_bytes(self.likely_bytes)}, by some samples of it)"
        return (
            f"The result needs up to {format_bytes(self.most_bytes)} more"
            f"{likely if self.likely_bytes else ''}; "
            f"{format_bytes(self.room.free_bytes)} is free at {self.room.path}."
        )


def foresee(plan: Plan, place: Path, share_left: float) -> Outlook | None:
    """Return what is to be expected; None if there is nothing to say.

    Parameters
    ----------
    share_left
        Of the result, what is not stored yet.
    """
    room = measure_room(place)
    most = int(plan.result_bytes * share_left)
    if room is None or not most or (most <= room.free_bytes and room.free_bytes >= LEAST_BYTES):
        return None
    shares = [] if room.free_bytes < LEAST_BYTES else measure_shares(plan)
    if len(shares) < len(PLACES):
        return Outlook(most, 0, 0, room)
    return Outlook(most, int(most * fmean(shares)), int(most * min(shares)), room)


def refuse(outlook: Outlook, place: Path) -> OutputError:
    """Return the error for a result that cannot fit."""
    return OutputError(
        f"{place} cannot hold the result. {outlook.describe()} Free some space there, or choose "
        "another place with to=."
    )


def measure_shares(plan: Plan) -> list[float]:
    """Return the stored bytes for each byte of some samples of the result.

    There are fewer if one took too long, or could not be computed.
    """
    assert plan.target is not None
    stored = plan.stored_chunks or plan.grid.chunk
    lengths = {
        dim: stored.get(dim, length) if dim in plan.cuttable else length
        for dim, length in plan.lengths.items()
    }
    lengths = _shorten(plan, lengths)
    shares: list[float] = []
    for place in PLACES:
        began = time.monotonic()
        try:
            answer = evaluate(plan.target, block_at(plan.target, lengths, place))
        except Exception:
            break  # it will be said when the chunk is done
        shares.append(_stored_share(answer))
        if time.monotonic() - began > SAMPLE_SECONDS:
            break
    return shares


def _shorten(plan: Plan, lengths: dict[str, int]) -> dict[str, int]:
    """Return lengths of a small block: shorter along the dimensions that can be cut."""
    short = dict(lengths)
    itemsize = np.dtype(plan.dtype).itemsize
    while prod(short.values()) * itemsize > SAMPLE_BYTES:
        sides = [dim for dim in short if dim in plan.cuttable and short[dim] > 1]
        if not sides:
            break
        longest = max(sides, key=short.__getitem__)
        short[longest] = -(-short[longest] // 2)
    return short


def _stored_share(answer: Any) -> float:
    """Return the bytes that a block takes in a store, for each of its own."""
    import zarr
    from zarr.storage import MemoryStore

    if not isinstance(answer, np.ndarray) or not answer.nbytes or answer.dtype.hasobject:
        return 0.0
    array = zarr.create_array(
        MemoryStore(), shape=answer.shape, dtype=answer.dtype, chunks=answer.shape, zarr_format=3
    )
    empty = array.nbytes_stored()
    array[...] = answer
    return (array.nbytes_stored() - empty) / answer.nbytes
