"""Tell from a few calls what a function does to the dimensions of its data.

Lengths in, names out: nothing is read or called here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from barrow.errors import InputError, StepError
from barrow.model.applied import Form
from barrow.model.step import Step


@dataclass(frozen=True)
class Observation:
    """One call: how long the dimensions of the inputs were, and what came back."""

    given: Mapping[str, int]
    shape: tuple[int, ...]
    dtype: np.dtype


def match_axes(observations: Sequence[Observation]) -> list[str | None]:
    """Return the dimension that each axis of the answer runs along, or None.

    An axis runs along a dimension when both had the same length in every call.

    Examples
    --------
    >>> calls = [
    ...     Observation({"c": 3, "y": 11, "x": 13}, (11, 13, 2), np.dtype("f4")),
    ...     Observation({"c": 3, "y": 17, "x": 19}, (17, 19, 2), np.dtype("f4")),
    ... ]
    >>> match_axes(calls)
    ['y', 'x', None]
    """
    if len({len(seen.shape) for seen in observations}) != 1:
        return []
    dims = list(observations[0].given)
    lengths = {dim: [seen.given[dim] for seen in observations] for dim in dims}
    axes = [
        [seen.shape[axis] for seen in observations] for axis in range(len(observations[0].shape))
    ]
    if axes == list(lengths.values()):
        return list(dims)
    free = list(dims)
    found: list[str | None] = []
    passed = -1
    for axis in axes:
        alike = [dim for dim in free if lengths[dim] == axis]
        # In order if possible; a function that transposes is understood as well.
        later = [dim for dim in alike if dims.index(dim) > passed]
        dim = next(iter(later or alike), None)
        if dim is not None:
            free.remove(dim)
            passed = dims.index(dim)
        found.append(dim)
    return found


def infer_form(
    step: Step,
    lengths: Mapping[str, int],
    whole: Collection[str],
    observations: Sequence[Observation],
) -> Form:
    """Return the form of the whole answer.

    The result's ``whole`` may name more dimensions than were given: those that the
    function changes or drops. Then the calls must be made again with these whole,
    since only so their length in the answer is known.
    """
    _check_agreement(step, observations)
    axes = match_axes(observations)
    kept = {dim for dim in axes if dim is not None}
    missing = [dim for dim in lengths if dim not in kept]
    for lost in missing:
        if lost in step.halo:
            raise InputError(
                f"'{step.name}' changes or drops '{lost}', so a halo along it cannot be trimmed. "
                f"Leave '{lost}' out of halo=; it is not cut anyway."
            )
    # As many axes as dimensions: what does not match was changed in length.
    changed = iter(missing if len(axes) == len(lengths) else ())
    names: dict[str, int] = {}
    for axis, dim in enumerate(axes):
        name: str = dim or next(changed, None) or _new_name(step, lengths, names)
        names[name] = lengths[dim] if dim is not None else observations[0].shape[axis]
    return Form(
        lengths=names,
        dtype=observations[0].dtype,
        kept=frozenset(kept),
        whole=frozenset(whole) | frozenset(missing),
    )


def _check_agreement(step: Step, observations: Sequence[Observation]) -> None:
    first = observations[0]
    for other in observations[1:]:
        if other.dtype != first.dtype or len(other.shape) != len(first.shape):
            raise StepError(
                f"'{step.name}' returned {first.dtype}{list(first.shape)} for {dict(first.given)} "
                f"but {other.dtype}{list(other.shape)} for {dict(other.given)}. The answers "
                "cannot be put together: make the function return one dtype and one number of "
                "dimensions, or use barrow.reduce with a combine function."
            )


def _new_name(step: Step, lengths: Mapping[str, int], names: Mapping[str, int]) -> str:
    number = 0
    while (name := f"{step.name}_{number}") in lengths or name in names:
        number += 1
    return name
