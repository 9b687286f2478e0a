"""What is known after some chunks: the sum, what was left out, and what it took."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from barrow.fields.collider.accumulating import accumulate
from barrow.fields.collider.skips import Skip


class Spent(NamedTuple):
    """What one call of the processor took."""

    dataset: str
    path: str
    start: int
    stop: int
    worker: str
    began: float
    """Seconds since the epoch."""
    open_seconds: float
    read_seconds: float
    decompress_seconds: float
    process_seconds: float
    """Without reading."""
    merge_seconds: float
    cpu_seconds: float
    read_bytes: int
    value_bytes: int


@dataclass(frozen=True)
class Portion:
    """What is known of a file that is not finished: whole files may yet be left out."""

    events: int
    value: Any
    skips: tuple[Skip, ...] = ()

    def join(self, other: "Portion") -> "Portion":
        """Return this and a later part of the same file."""
        value = accumulate(self.value, other.value)
        return Portion(self.events + other.events, value, self.skips + other.skips)


@dataclass(frozen=True)
class Tally:
    """The sum over some chunks that follow one another."""

    value: Any = None
    skips: tuple[Skip, ...] = ()
    spent: tuple[Spent, ...] = ()
    columns: frozenset[str] = frozenset()
    portions: Mapping[int, Portion] = field(default_factory=dict)
    """Files that are not finished, by their number; only where files are left out whole."""


@dataclass(frozen=True)
class Merge:
    """Joins two tallies, the first with what comes after it.

    Parameters
    ----------
    lengths
        How many events each file has, if a file with a fault is left out whole.
    """

    lengths: tuple[int, ...] = ()

    def __call__(self, one: Tally, other: Tally) -> Tally:
        portions = dict(one.portions)
        value, skips = one.value, one.skips + other.skips
        for number, portion in other.portions.items():
            before = portions.get(number)
            portions[number] = portion if before is None else before.join(portion)
        for number in sorted(portions):
            if self.lengths and portions[number].events == self.lengths[number]:
                value, skips = settle(portions.pop(number), value, skips)
        return Tally(
            accumulate(value, other.value),
            skips,
            one.spent + other.spent,
            one.columns | other.columns,
            portions,
        )


def finish(tally: Tally) -> Tally:
    """Return a tally that nothing will be added to: files that did not become whole count as well.

    That is so where not all of a file was asked for.
    """
    value, skips = tally.value, tally.skips
    for number in sorted(tally.portions):
        value, skips = settle(tally.portions[number], value, skips)
    return replace(tally, value=value, skips=skips, portions={})


def settle(portion: Portion, value: Any, skips: tuple[Skip, ...]) -> tuple[Any, tuple[Skip, ...]]:
    """Return sum and gaps with a file that is finished: all of it, or nothing."""
    if not portion.skips:
        return accumulate(value, portion.value), skips
    first = portion.skips[0]
    return value, (
        *skips,
        Skip(first.dataset, first.path, 0, portion.events, first.reason, first.attempts),
    )
