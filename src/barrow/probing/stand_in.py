"""A stand-in for the result of steps that have not run yet.

It has the dimensions and the dtype of the whole result, and answers any block
with real answers of the steps, computed once at a few places and repeated. Good
enough to learn what the next step returns and costs; never for a result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from barrow.model.reading import block_at, count_block_bytes
from barrow.model.source import Labels, Reader, Source
from barrow.probing.sizes import PLACES
from barrow.shared import Ranges

# Of what is read, and of what is kept, for each of the places: never more than this ...
SAMPLE_BYTES = 2**24
# ... nor than this share of everything.
SAMPLE_SHARE = 1 / 16


def make_stand_in(
    target: Source,
    rungs: Sequence[Mapping[str, int]],
    *,
    cuttable: Sequence[str],
    labels: Labels | None = None,
    most_bytes: int = SAMPLE_BYTES,
) -> Source:
    """Return a source that looks like the result of a chain of steps.

    Parameters
    ----------
    rungs
        Chunks of growing size in which the steps can be computed.
    cuttable
        Dimensions along which answers can be put side by side.
    labels
        Of the result.
    most_bytes
        What may be read at once for it, if the steps can do with so little.
    """
    # Along a dimension that cannot be cut every block is whole already.
    sides = [dim for dim in target.dims if dim in cuttable]
    chunk = _choose_rung(target, rungs, most_bytes)
    blocks = [block_at(target, chunk, place) for place in (PLACES if sides else PLACES[:1])]
    answers = [np.array(target.read(block)) for block in dict.fromkeys(blocks)]
    axis = target.dims.index(sides[0]) if sides else 0
    sample = np.concatenate(answers, axis=axis) if len(answers) > 1 else answers[0]
    return Source(
        name=target.name,
        lengths=target.lengths,
        dtype=target.dtype,
        read=StandIn(sample),
        labels=labels,
        has_names=target.has_names,
    )


def _choose_rung(
    target: Source, rungs: Sequence[Mapping[str, int]], most_bytes: int
) -> Mapping[str, int]:
    def size_of(block: Ranges) -> int:
        answer = int(np.prod([stop - start for start, stop in block])) * target.dtype.itemsize
        return max(answer, count_block_bytes(target, block))

    def size(rung: Mapping[str, int]) -> int:
        return size_of(block_at(target, rung, 0.5))

    most = min(most_bytes, SAMPLE_BYTES, SAMPLE_SHARE * size_of(target.everything))
    small = [rung for rung in rungs if size(rung) <= most]
    return max(small, key=size) if small else min(rungs, key=size)


@dataclass(frozen=True, eq=False)
class StandIn(Reader):
    """Answer any block by repeating a sample."""

    sample: np.ndarray = field(repr=False)

    def __call__(self, ranges: Ranges) -> np.ndarray:
        if 0 in self.sample.shape:
            return np.zeros([stop - start for start, stop in ranges], self.sample.dtype)
        block = self.sample
        # Cut first, repeat then: so no more is copied than was asked for.
        repeated = []
        for axis, ((start, stop), length) in enumerate(zip(ranges, block.shape, strict=True)):
            first = start % length
            if first + stop - start <= length:
                block = block[(slice(None),) * axis + (slice(first, first + stop - start),)]
            else:
                repeated.append((axis, np.arange(start, stop) % length))
        for axis, places in repeated:
            block = block.take(places, axis=axis)
        return block if repeated else block.copy()
