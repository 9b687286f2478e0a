"""Choose the best of all ways to cut a chain of steps: what each would take, in time and memory."""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from math import prod

from barrow.errors import BudgetError
from barrow.model.applied import Apply, leaves
from barrow.model.cost import Cost
from barrow.model.plan import Place
from barrow.model.reading import block_at, count_block_bytes, count_items, count_stored_bytes
from barrow.model.source import Source
from barrow.planning.chunks import count_chunks
from barrow.planning.ladder import balance, climb
from barrow.planning.layout import Layout

# Another call of the function inside a task.
STRIDE_SECONDS = 30e-6
# While a stored block is decoded, a second copy of it may be in memory.
DECODING = 2.0
# Times that differ by less are the same.
ABOUT_AS_FAST = 1.03
# Tasks of so many times the largest that was measured are still familiar.
FAMILIAR = 4
# What is simpler is taken unless the other way is faster by more than measurements scatter.
WORTH_IT = 0.95

Chunk = dict[str, int]


@dataclass(frozen=True)
class Candidate:
    """One way to do it, with its predictions."""

    layout: Layout
    chunk: Chunk
    strides: Chunk
    """Blocks in which a task walks its chunk; empty when it takes all at once."""
    n_chunks: int
    items: int
    task_seconds: float
    seconds: float
    peak_bytes: float
    peak_bound: float


def cuttable_dims(target: Source) -> tuple[str, ...]:
    """Return the dimensions that can be cut through a whole chain of steps."""
    if not isinstance(target.read, Apply):
        return target.dims
    dims: tuple[str, ...] = target.read.form.cuttable
    for below in target.read.inputs:
        through = cuttable_dims(below)
        dims = tuple(dim for dim in dims if dim in through or dim not in below.lengths)
    return dims


def list_rungs(target: Source) -> list[Chunk]:
    """Return chunks of all sizes, before any cost is known: some of them are measured."""
    return climb(
        target.lengths,
        grain=target.grain,
        cuttable=cuttable_dims(target),
        count_items=lambda chunk: count_items(target, block_at(target, chunk, 0.5)),
        most_items=2**62,
    )


class Choice:
    """All candidates for one target: what each reads is computed once for all layouts."""

    def __init__(
        self, target: Source, cost: Cost, place: Place, least: Mapping[str, int] | None = None
    ) -> None:
        self.target = target
        self.grain = {
            dim: max(
                grain, min(target.lengths[dim], -(-(least or {}).get(dim, 1) // grain) * grain)
            )
            for dim, grain in target.grain.items()
        }
        self.cost = cost
        self.place = place
        self.cuttable = cuttable_dims(target)
        self.items = _remember(target, count_items)
        self.block_bytes = _remember(target, count_block_bytes)
        self.stored_bytes = _remember(target, count_stored_bytes)
        self.strides = self._list_strides()

    def rank(self, layouts: list[Layout]) -> list[Candidate]:
        """Return the best candidate of each layout, the best of all first."""
        found: list[Candidate] = []
        refused: BudgetError | None = None
        for layout in layouts:
            if layout.is_reserve and found:
                # Fewer tasks at once, with more memory for each, if nothing else fits.
                continue
            try:
                found.append(self._best_of(layout))
            except BudgetError as error:
                # More tasks at once have less memory each: another layout may still fit.
                refused = error if layout.is_reserve else refused or error
        if not found and layouts[-1].is_reserve:
            found += self._dare(layouts[-1])
        if not found:
            assert refused is not None
            raise refused
        # Layouts come with the simplest first: the others have to be worth their trouble.
        best = found[0]
        for other in found[1:]:
            if other.seconds < WORTH_IT * best.seconds:
                best = other
        others = sorted((c for c in found if c is not best), key=lambda c: c.seconds)
        return [best, *others]

    def _dare(self, layout: Layout) -> list[Candidate]:
        """Return what should fit a whole worker, if not with all that is uncertain about it.

        Nobody else is there to suffer; and if it does not fit, the fence tells.
        """
        daring = copy(self)
        daring.cost = replace(self.cost, peak_margin=0.0, peak_slack_bytes=0.0)
        try:
            best = daring._best_of(layout)
        except BudgetError:
            return []
        return [self.predict(layout, best.chunk, best.strides)]

    def _best_of(self, layout: Layout) -> Candidate:
        strided = list(self._strided(layout))
        try:
            rungs = climb(
                self.target.lengths,
                grain=self.grain,
                cuttable=self.cuttable,
                count_items=self.items,
                most_items=self.cost.items_within(layout.budget_bytes),
                bytes_per_item=self.cost.peak_per_item * (1 + self.cost.peak_margin),
            )
        except BudgetError:
            if not strided:
                raise
            rungs = []
        tried = [self.predict(layout, rung) for rung in rungs]
        if not self.cost.is_measured:
            return tried[-1] if tried else strided[-1]
        best = _largest_of_the_best([*tried, *strided], FAMILIAR * self.cost.points[-1][0])
        balanced = balance(
            best.chunk,
            lengths=self.target.lengths,
            grain=self.grain,
            cuttable=self.cuttable,
            slots=layout.slots,
        )
        other = self.predict(layout, balanced, best.strides)
        return min(best, other, key=lambda candidate: candidate.seconds)

    def _list_strides(self) -> list[Chunk]:
        """Return blocks smaller than a chunk, where storage does not allow small chunks."""
        is_map = self.place != "value"
        grain = {dim: self.grain.get(dim, 1) for dim in self.cuttable}
        if not is_map or max(grain.values(), default=1) == 1:
            return []
        return climb(
            self.target.lengths,
            grain={},
            cuttable=self.cuttable,
            count_items=self.items,
            most_items=2**62,
        )

    def _strided(self, layout: Layout) -> Iterator[Candidate]:
        """Yield candidates that read whole storage chunks and walk them in smaller blocks."""
        if not self.strides:
            return
        cost, target = self.cost, self.target
        fitting = [
            s for s in self.strides if self.items(s) <= cost.items_within(layout.budget_bytes)
        ]
        if not fitting:
            return

        def price(block: Chunk) -> float:
            seconds = cost.seconds(self.items(block)) * layout.slowdown(cost, self.items(block))
            return (seconds + STRIDE_SECONDS) / prod(block.values())

        best = min(fitting, key=price)
        for chunk in climb(
            target.lengths,
            grain=self.grain,
            cuttable=self.cuttable,
            count_items=self.items,
            most_items=2**62,
        ):
            strides = {dim: min(size, chunk[dim]) for dim, size in best.items()}
            if strides == chunk:
                continue
            found = self.predict(layout, chunk, strides)
            if found.peak_bound > layout.budget_bytes:
                return
            yield found

    def predict(self, layout: Layout, chunk: Chunk, strides: Chunk | None = None) -> Candidate:
        """Return what a chunk would take in a layout."""
        cost, target = self.cost, self.target
        n_chunks = count_chunks(target.lengths, chunk)
        share = prod(chunk.values()) / max(1, prod(target.lengths.values()))
        answer_bytes = share * target.nbytes if self.place != "value" else 0.0
        step = strides or chunk
        steps = count_chunks(chunk, step)
        items = self.items(step)
        task = steps * cost.seconds(items) + (steps - 1) * STRIDE_SECONDS
        task += cost.read_seconds_per_byte * self.stored_bytes(chunk)
        if self.place != "value":
            task += cost.write_seconds_per_chunk + cost.write_seconds_per_byte * answer_bytes
        task *= layout.slowdown(cost, items)
        around = DECODING * self.block_bytes(chunk) + answer_bytes if strides else 0.0
        carried = target.nbytes if self.place == "memory" else 0
        carried += sum(leaf.nbytes for leaf in leaves(target) if leaf.read.is_heavy)
        return Candidate(
            layout=layout,
            chunk=chunk,
            strides=strides or {},
            n_chunks=n_chunks,
            items=self.items(chunk),
            task_seconds=task,
            seconds=layout.makespan(n_chunks, task, carried),
            peak_bytes=around + cost.peak_bytes(items),
            peak_bound=around + cost.peak_bound(items),
        )


def _remember(target: Source, count: Callable[..., int]) -> Callable[[Mapping[str, int]], int]:
    """Return a function that counts something for a chunk, once for each of its sizes.

    It holds no choice: a choice that holds it would hold itself, and the data with it.
    """
    known: dict[tuple[int, ...], int] = {}

    def counted(chunk: Mapping[str, int]) -> int:
        key = tuple(chunk.values())
        if key not in known:
            known[key] = count(target, block_at(target, chunk, 0.5))
        return known[key]

    return counted


def _largest_of_the_best(candidates: list[Candidate], most_items: float) -> Candidate:
    """Return the candidate with the fewest chunks among those that are about as fast as any.

    What measurements cannot tell apart is decided by what they leave out: every chunk has
    its price. But of tasks much larger than those that were measured little is known.
    """
    least = min(candidate.seconds for candidate in candidates)
    good = [candidate for candidate in candidates if candidate.seconds <= ABOUT_AS_FAST * least]
    known = [candidate for candidate in good if candidate.items <= most_items]
    return min(known, key=lambda c: c.n_chunks) if known else min(good, key=lambda c: c.items)
