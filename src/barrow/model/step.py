"""A step: a named function applied to every chunk."""

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from barrow.errors import InputError
from barrow.model.site import MEMORY, THREADS

BORDERS = ("reflect", "mirror", "nearest", None)
"""What a halo holds beyond the edge of the data, in the words of scipy.ndimage."""


@dataclass(frozen=True)
class Step:
    """A named function applied to every chunk of its sources.

    Parameters
    ----------
    func
        Called with one NumPy array for each source. It knows nothing of chunks.
    name
        What plans, progress and reports call it; the function's own name if empty.
    whole
        Dimensions never cut, because the function needs all of them at once.
        Names, or axis numbers.
    halo
        Neighbours that the function needs around each chunk, by dimension: a
        number, or a pair (before, after). They are trimmed from its answer.
    border
        What the halo holds beyond the edge of the data: ``"reflect"``,
        ``"mirror"``, ``"nearest"`` (as in ``scipy.ndimage``), a number, or None
        for nothing: the function then meets the edge as in a plain call.
    kwargs
        Keyword arguments for the function.
    combine
        For a reduction: adds two answers up. None for a map.
    resources
        What a task needs to itself while it runs, by name, for example
        ``{"GPU": 1}``. On a Dask cluster it runs on workers that offer it; on this
        machine there is one of each, so tasks that ask for one run one at a time.
        ``{"threads": 4}``: numerical libraries may use so many threads in a task, and
        fewer tasks run at once.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> centre = barrow.Step(lambda x: x - x.mean(axis=0), name="centre", whole=("time",))
    >>> centre.name, centre.whole
    ('centre', ('time',))
    """

    func: Callable[..., Any]
    name: str = ""
    whole: Collection[str | int] = ()
    halo: Mapping[Any, Any] = field(default_factory=dict)
    border: str | float | None = "reflect"
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    combine: Callable[[Any, Any], Any] | None = None
    resources: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.func):
            raise InputError(f"func must be a function, not {self.func!r}.")
        is_number = isinstance(self.border, (int, float)) and not isinstance(self.border, bool)
        if self.border not in BORDERS and not is_number:
            raise InputError(
                f"border={self.border!r} is unknown. Use 'reflect', 'mirror', 'nearest', "
                "a number, or None for no padding."
            )
        if self.halo is not None and not isinstance(self.halo, Mapping):
            raise InputError(
                f"halo={self.halo!r} does not say which dimensions it is for. "
                f"Write, for example, halo={{'y': {self.halo}, 'x': {self.halo}}}."
            )
        if self.kwargs is not None and not isinstance(self.kwargs, Mapping):
            raise InputError(f"kwargs must be a dictionary of arguments, not {self.kwargs!r}.")
        whole = (self.whole,) if isinstance(self.whole, (str, int)) else tuple(self.whole or ())
        object.__setattr__(self, "whole", whole)
        object.__setattr__(self, "halo", dict(self.halo or {}))
        object.__setattr__(self, "kwargs", dict(self.kwargs or {}))
        object.__setattr__(self, "name", self.name or name_of(self.func))
        object.__setattr__(self, "resources", check_resources(self.resources))

    def resolved(self, lengths: Mapping[str, int]) -> "Step":
        """Return the step with every dimension named and every halo a pair.

        Raises an :class:`~barrow.errors.InputError` for what does not fit data of
        these lengths.
        """
        whole = tuple(dict.fromkeys(_resolve(dim, lengths, "whole") for dim in self.whole))
        halo = {}
        for key, width in self.halo.items():
            dim = _resolve(key, lengths, "halo")
            pair = _as_pair(width, dim)
            # A mirror leaves the edge itself out, so it needs one neighbour more.
            room = lengths[dim] - (self.border == "mirror")
            if max(pair) > room:
                raise InputError(
                    f"halo of {max(pair)} for '{dim}' is larger than the data, which have "
                    f"{lengths[dim]} there. Use at most {room}, or name '{dim}' in whole=."
                )
            if pair != (0, 0):
                halo[dim] = pair
        return replace(self, whole=whole, halo=halo)


def check_resources(resources: Mapping[str, float] | None) -> dict[str, float]:
    """Return amounts of resources by name, or say what is wrong with them.

    Examples
    --------
    >>> check_resources({"GPU": 1})
    {'GPU': 1}
    """
    if not isinstance(resources, Mapping | None):
        raise InputError(
            f"resources={resources!r} does not say how much of what. Write, for example, "
            "resources={'GPU': 1}."
        )
    for name, amount in (resources or {}).items():
        is_number = isinstance(amount, (int, float)) and not isinstance(amount, bool)
        if not is_number or not 0 < amount < float("inf"):
            raise InputError(
                f"resources={dict(resources or {})!r}: {amount!r} is not an amount. Give a number "
                "above 0."
            )
        if not isinstance(name, str) or name == MEMORY:
            raise InputError(
                f"resources= names {name!r}. Give a name such as 'GPU'; memory is taken care of."
            )
        if name == THREADS and amount != int(amount):
            raise InputError(
                f"resources={{'threads': {amount!r}}}: give a whole number of threads."
            )
    return dict(resources or {})


def name_of(func: Callable[..., Any]) -> str:
    """Return what people call a function.

    Examples
    --------
    >>> import functools, numpy as np
    >>> name_of(np.add), name_of(functools.partial(np.add, 1)), name_of(lambda x: x)
    ('add', 'add', 'lambda')
    """
    while isinstance(func, functools.partial):
        func = func.func
    name = getattr(func, "__name__", None) or type(func).__name__
    return "lambda" if name == "<lambda>" else name


def _resolve(dim: str | int, lengths: Mapping[str, int], argument: str) -> str:
    names = list(lengths)
    if dim in lengths:
        return str(dim)
    if isinstance(dim, int) and not isinstance(dim, bool) and -len(names) <= dim < len(names):
        return names[dim]
    raise InputError(
        f"{argument}= names dimension {dim!r}, but the data have {', '.join(map(repr, names))}. "
        f"Use one of these names, or an axis number from 0 to {len(names) - 1}."
    )


def _as_pair(width: Any, dim: str) -> tuple[int, int]:
    pair = width if isinstance(width, (tuple, list)) else (width, width)
    try:
        before, after = (int(side) for side in pair)
        if (before, after) == tuple(pair) and before >= 0 and after >= 0:
            return before, after
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"halo of {width!r} for '{dim}' is not a width. Use a whole number of 0 or more, "
        "or a pair (before, after)."
    )
