"""Choose small real blocks on which to try a function out.

Integer arithmetic: nothing is read here. A block lies in the middle of the data,
not in a corner that may be empty, and starts where a storage chunk starts.
"""

from collections.abc import Collection, Iterator, Mapping
from math import prod

Core = dict[str, tuple[int, int]]

# Lengths differ from one another, from one sample to the next, and from most
# lengths that occur in data, so that an axis of the answer can be told by its
# length alone.
_FIRST, _SECOND, _STEP = 11, 17, 2
# Where dimensions that are whole make that a lot of data, less is tried first.
_FEW, _SOME = 3, 5
_MUCH_ITEMS = 2**16
_ROUNDS = 4
_MIDDLE = 0.5
_ELSEWHERE = (0.25, 0.75, 0.125, 0.875)


def sample_cores(
    lengths: Mapping[str, int], grain: Mapping[str, int], whole: Collection[str]
) -> Iterator[list[Core]]:
    """Yield sets of blocks, each set larger than the one before.

    The blocks of a set differ in length along every dimension that is not whole
    and has more than one item, and no two such dimensions have the same lengths
    in all of them. A function that cannot work on so little data is offered the
    next set. The last sets are small again, elsewhere: the function may not be able to
    work on these data in the middle.

    Examples
    --------
    >>> next(sample_cores({"c": 3, "x": 1000}, {"c": 1, "x": 1}, whole={"c"}))
    [{'c': (0, 3), 'x': (500, 513)}, {'c': (0, 3), 'x': (500, 519)}]
    """
    seen: list[list[Core]] = []
    turns = [(_FIRST * 4**turn, _SECOND * 4**turn, _MIDDLE) for turn in range(_ROUNDS)]
    turns += [(_FIRST, _SECOND, place) for place in _ELSEWHERE]
    usual = _core(lengths, grain, whole, _SECOND, _MIDDLE, shrink=False)
    if prod(map(_size, usual.values())) > _MUCH_ITEMS:
        turns.insert(0, (_FEW, _SOME, _MIDDLE))
    for first, second, place in turns:
        small = _core(lengths, grain, whole, first, place, shrink=True)
        large = _core(lengths, grain, whole, second, place, shrink=False)
        cores = [small] if small == large else [small, large]
        cores += _tell_apart(small, large)
        if cores not in seen:
            yield cores
        seen.append(cores)


def _tell_apart(small: Core, large: Core) -> list[Core]:
    """Return more blocks if the data are too short for lengths that all differ."""
    taken: set[tuple[int, int]] = set()
    more = []
    for dim in large:
        sizes = (_size(small[dim]), _size(large[dim]))
        if sizes in taken and sizes[0] != sizes[1]:
            more.append({**large, dim: small[dim]})
        taken.add(sizes)
    return more


def _size(extent: tuple[int, int]) -> int:
    return extent[1] - extent[0]


def _core(
    lengths: Mapping[str, int],
    grain: Mapping[str, int],
    whole: Collection[str],
    side: int,
    place: float,
    *,
    shrink: bool,
) -> Core:
    core = {}
    for index, (dim, length) in enumerate(lengths.items()):
        if dim in whole:
            core[dim] = (0, length)
            continue
        # The smaller block of a pair stays smaller where the data are short.
        most = max(1, length - 1) if shrink else length
        size = min(most, side + _STEP * index)
        start = int(length * place) // grain[dim] * grain[dim]
        start = min(start, length - size)
        core[dim] = (start, start + size)
    return core
