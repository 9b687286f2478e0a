"""What all calls share: settings as a struct, a selection, where to compute, a history."""

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from barrow.errors import InputError
from barrow.fields.ephys.computing import Means
from barrow.fields.ephys.files import describe_store
from barrow.fields.ephys.settings import takes_cfg
from barrow.fields.ephys.trial_data import TrialData

Made = TypeVar("Made", bound=TrialData)

# Where the result lies and how it was computed does not belong to its history.
NOT_KEPT = ("to", "memory", "cluster", "quiet")


def analysis_call(*kinds: type[TrialData]) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Make a call of a function of data and settings.

    The function gets data of one of the kinds, and ``means``. The call takes ``select=`` and
    the fields of :class:`~barrow.fields.ephys.computing.Means` instead, or all as a struct, and
    its result knows how it was made.
    """

    def decorate(function: Callable[..., Made]) -> Callable[..., Made]:
        inner = inspect.signature(function)

        @functools.wraps(function)
        def call(data: Any, *args: Any, select: Any = None, **kwargs: Any) -> Made:
            given = {f.name: kwargs.pop(f.name, f.default) for f in fields(Means)}
            means = Means(**given)
            bound = inner.bind(data, *args, **kwargs, means=means)
            bound.apply_defaults()
            data = _choose(data, select, kinds)
            bound.arguments["data"] = data
            made = function(*bound.args, **bound.kwargs)
            settings = {k: v for k, v in bound.arguments.items() if k not in ("data", "means")}
            kept = {name: value for name, value in given.items() if name not in NOT_KEPT}
            made.inherit(data, function.__name__, {**settings, "select": select, **kept})
            if means.to is not None:
                describe_store(made, Path(os.fspath(means.to)))
            return made

        outer = takes_cfg(call)
        outer.__signature__ = _show(inner)  # type: ignore[attr-defined]
        return outer

    return decorate


def _show(inner: inspect.Signature) -> inspect.Signature:
    """Return the signature of a call, which users and ``get_defaults`` see."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter("select", keyword, default=None)]
    added += [inspect.Parameter(f.name, keyword, default=f.default) for f in fields(Means)]
    own = [parameter for name, parameter in inner.parameters.items() if name != "means"]
    return inner.replace(parameters=[*own, *added])


def _choose(data: Any, select: Any, kinds: tuple[type[TrialData], ...]) -> Any:
    if not isinstance(data, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise InputError(
            f"data must be {wanted}, not {type(data).__name__}. Make one of an array with "
            "barrow.ephys.AnalogData(array, samplerate=...)."
        )
    if select is None or (isinstance(select, str) and select == "all"):
        return data
    return data.selectdata(**select)
