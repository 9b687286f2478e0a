"""A step applied to sources is a source again.

Reading a block of it reads what the step needs, calls the function, and trims
the halo. Steps that follow one another are thus fused by reading through them:
nothing but the block in hand is ever in memory. Plain array work: no Dask, no
files, no clock.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from barrow.errors import InputError, StepError
from barrow.model.grid import format_ranges
from barrow.model.source import Reader, Source
from barrow.model.step import Step
from barrow.shared import Ranges

# scipy.ndimage and NumPy give different names to the same borders.
_PAD_MODES = {"reflect": "symmetric", "mirror": "reflect", "nearest": "edge"}


@dataclass(frozen=True)
class Form:
    """What a step returns for its whole sources, learnt by calling it."""

    lengths: Mapping[str, int]
    """Length of each dimension of the answer, in its order."""
    dtype: np.dtype
    kept: frozenset[str]
    """Dimensions of the answer that run along the same dimension of the sources."""
    whole: frozenset[str]
    """Dimensions of the sources that cannot be cut: the user said so, or the
    function changes or drops them."""

    @property
    def cuttable(self) -> tuple[str, ...]:
        """Dimensions along which answers can simply be put side by side."""
        return tuple(dim for dim in self.lengths if dim in self.kept and dim not in self.whole)


def join_lengths(sources: Sequence[Source]) -> dict[str, int]:
    """Return the dimensions of all sources together, or say which disagree.

    Examples
    --------
    >>> import numpy as np
    >>> from barrow.sources.opening import open_source
    >>> image = open_source(np.zeros((3, 20, 30)), dims=("c", "y", "x"))
    >>> mask = open_source(np.zeros((20, 30)), dims=("y", "x"))
    >>> join_lengths([image, mask])
    {'c': 3, 'y': 20, 'x': 30}
    """
    lengths: dict[str, int] = {}
    owner: dict[str, str] = {}
    for source in sources:
        for dim, length in source.lengths.items():
            if lengths.setdefault(dim, length) != length:
                raise InputError(
                    f"'{dim}' has length {lengths[dim]} in '{owner[dim]}' but {length} in "
                    f"'{source.name}'. Dimensions of the same name must have the same length: "
                    "crop one of them, or give the dimensions other names "
                    "(barrow.open(data, dims=...))."
                )
            owner.setdefault(dim, source.name)
    return lengths


def apply_step(step: Step, inputs: Sequence[Source], form: Form) -> Source:
    """Return the answer of a step as a source: nothing is computed until it is read."""
    return Source(
        name=step.name,
        lengths=form.lengths,
        dtype=form.dtype,
        read=Apply(step, tuple(inputs), form),
        grain={dim: n for dim, n in join_grains(inputs).items() if dim in form.kept},
        labels=inputs[0].labels,
        has_names=inputs[0].has_names,
    )


def join_grains(sources: Sequence[Source]) -> dict[str, int]:
    """Return the grain that cuts no storage chunk of the larger-grained source."""
    grains: dict[str, int] = {}
    for source in sources:
        for dim, grain in source.grain.items():
            grains[dim] = max(grain, grains.get(dim, 1))
    return grains


@dataclass(frozen=True)
class Apply(Reader):
    """Read a block of the answer: read the inputs, call the function, trim."""

    step: Step
    inputs: tuple[Source, ...]
    form: Form

    def __call__(self, ranges: Ranges) -> np.ndarray:
        wanted = dict(zip(self.form.lengths, ranges, strict=True))
        core = self._core(ranges)
        arrays, margins = read_inputs(self.step, self.inputs, core)
        answer = as_array(self.call(arrays, core), self.step)
        self._check(answer, core, margins)
        trim = []
        for dim, length in self.form.lengths.items():
            start, stop = wanted[dim]
            if dim in self.form.kept:
                offset = margins[dim][0] - core[dim][0]
                start, stop = start + offset, stop + offset
                length = core[dim][1] - core[dim][0] + sum(margins[dim])
            trim.append(slice(start, stop) if (start, stop) != (0, length) else slice(None))
        return answer[tuple(trim)] if any(part != slice(None) for part in trim) else answer

    def value(self, ranges: Ranges) -> Any:
        """Return what the function says about a block, as it is: for reductions."""
        core = self._core(ranges)
        arrays, _ = read_inputs(self.step, self.inputs, core)
        return self.call(arrays, core)

    def call(self, arrays: Sequence[np.ndarray], core: Mapping[str, tuple[int, int]]) -> Any:
        """Call the function; an exception says on which block it happened."""
        try:
            return call_safely(self.step, arrays)
        except Exception as error:
            where = ", ".join(
                f"{source.name}{format_ranges(block)}"
                for source, (block, _) in zip(
                    self.inputs, (reach(self.step, s, core) for s in self.inputs), strict=True
                )
            )
            error.add_note(f"barrow: step '{self.step.name}' was called with {where}")
            raise

    def reaches(self, ranges: Ranges) -> list[Ranges]:
        """Return the block of each input that a block of the answer needs."""
        core = self._core(ranges)
        return [reach(self.step, source, core)[0] for source in self.inputs]

    def _core(self, ranges: Ranges) -> dict[str, tuple[int, int]]:
        wanted = dict(zip(self.form.lengths, ranges, strict=True))
        cuttable = set(self.form.cuttable)
        return {
            dim: wanted[dim] if dim in cuttable else (0, length)
            for dim, length in join_lengths(self.inputs).items()
        }

    def _check(
        self,
        answer: np.ndarray,
        core: Mapping[str, tuple[int, int]],
        margins: Mapping[str, tuple[int, int]],
    ) -> None:
        shape = tuple(
            core[dim][1] - core[dim][0] + sum(margins[dim]) if dim in self.form.kept else length
            for dim, length in self.form.lengths.items()
        )
        if answer.shape == shape and answer.dtype == self.form.dtype:
            return
        where = ", ".join(f"{dim} {start}:{stop}" for dim, (start, stop) in core.items())
        raise StepError(
            f"'{self.step.name}' returned {answer.dtype}{list(answer.shape)} for the chunk "
            f"({where}), but {self.form.dtype}{list(shape)} was expected from its first answers. "
            "The answers cannot be put together: make the function return the same dtype and "
            "the same shape for equal shapes, or use barrow.reduce with a combine function."
        )


def reach(
    step: Step, source: Source, core: Mapping[str, tuple[int, int]]
) -> tuple[Ranges, dict[str, tuple[int, int]]]:
    """Return the block of a source that a step needs for a core, and what lies beyond.

    The second part says, for each dimension with a halo, how many items are
    missing before and after because the data end there.
    """
    block, missing = [], {}
    for dim, length in source.lengths.items():
        start, stop = core[dim]
        before, after = step.halo.get(dim, (0, 0))
        low, high = max(0, start - before), min(length, stop + after)
        missing[dim] = (low - (start - before), stop + after - high)
        block.append((low, high))
    return tuple(block), missing


def read_inputs(
    step: Step, inputs: Sequence[Source], core: Mapping[str, tuple[int, int]]
) -> tuple[list[np.ndarray], dict[str, tuple[int, int]]]:
    """Return the array of each input for a core, with halo, and the margins added."""
    arrays = []
    margins = dict.fromkeys(core, (0, 0))
    for source in inputs:
        block, missing = reach(step, source, core)
        array = source.read(block)
        if step.border is not None and any(pair != (0, 0) for pair in missing.values()):
            array = _pad(array, list(missing.values()), step.border)
            missing = {}
        for dim in source.dims:
            before, after = step.halo.get(dim, (0, 0))
            beyond = missing.get(dim, (0, 0))
            margins[dim] = (before - beyond[0], after - beyond[1])
        arrays.append(array)
    return arrays, margins


def _pad(array: np.ndarray, widths: list[tuple[int, int]], border: Any) -> np.ndarray:
    if border in _PAD_MODES:
        padded: np.ndarray = np.pad(array, widths, mode=_PAD_MODES[border])  # type: ignore[call-overload]
        return padded
    return np.pad(array, widths, mode="constant", constant_values=border)


def call_safely(step: Step, arrays: Sequence[np.ndarray]) -> Any:
    """Call a step's function, and never let it change the user's own data.

    Arrays that belong to the user are handed over read-only. A function that
    works in place (or compiled code that insists on writable memory) says so at
    once, and gets a copy instead.
    """
    try:
        return step.func(*arrays, **step.kwargs)
    except ValueError as error:
        if "read-only" not in str(error) or all(array.flags.writeable for array in arrays):
            raise
    return step.func(*(a if a.flags.writeable else a.copy() for a in arrays), **step.kwargs)


def as_array(answer: Any, step: Step) -> np.ndarray:
    """Return an answer as a plain array, or say why it cannot be one."""
    if isinstance(answer, np.ma.MaskedArray):
        raise StepError(
            f"'{step.name}' returned a masked array; its mask would be lost. "
            "Return answer.filled(...) instead."
        )
    array = np.asarray(answer)
    if array.dtype.hasobject and getattr(answer, "dtype", None) != array.dtype:
        raise StepError(
            f"'{step.name}' returned {type(answer).__name__}, not an array or a number. "
            "Make it return a NumPy array, or use barrow.reduce to add up other objects."
        )
    return array


def evaluate(target: Source, ranges: Ranges) -> Any:
    """Return the answer of a chain of steps for one block: an array, or a part of a reduction."""
    read = target.read
    if isinstance(read, Apply) and read.step.combine is not None:
        return read.value(ranges)
    return read(ranges)


def leaves(source: Source) -> list[Source]:
    """Return the sources at the bottom of a chain of steps, in order."""
    if not isinstance(source.read, Apply):
        return [source]
    return [leaf for below in source.read.inputs for leaf in leaves(below)]


def leaf_ranges(source: Source, ranges: Ranges) -> list[Ranges]:
    """Return the block of each leaf that a block of the source needs."""
    if not isinstance(source.read, Apply):
        return [ranges]
    blocks = zip(source.read.inputs, source.read.reaches(ranges), strict=True)
    return [found for below, block in blocks for found in leaf_ranges(below, block)]


def graft(source: Source, leaf: Source) -> Source:
    """Return the same chain of steps on another source of the same dimensions and dtype.

    For chains that read one source only: unlike :func:`rebind` it takes over the
    leaf's name, grain and labels.
    """
    if not isinstance(source.read, Apply):
        return leaf
    inputs = [graft(below, leaf) for below in source.read.inputs]
    return apply_step(source.read.step, inputs, source.read.form)


def rebind(source: Source, readers: Iterator[Reader]) -> Source:
    """Return the same chain of steps with other readers at its leaves."""
    if not isinstance(source.read, Apply):
        return replace(source, read=next(readers))
    inputs = tuple(rebind(below, readers) for below in source.read.inputs)
    return replace(source, read=replace(source.read, inputs=inputs))


def kept_dims(source: Source) -> frozenset[str]:
    """Return the dimensions that came unchanged through all steps of a chain."""
    if not isinstance(source.read, Apply):
        return frozenset(source.lengths)
    return source.read.form.kept & kept_dims(source.read.inputs[0])
