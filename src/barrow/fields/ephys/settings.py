"""Settings as MATLAB structs, the way FieldTrip's users write them."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from barrow.errors import InputError


class StructDict(dict[str, Any]):
    """A dictionary whose keys are attributes as well.

    Examples
    --------
    >>> cfg = StructDict(method="mtmfft")
    >>> cfg.foilim = [1, 50]
    >>> cfg["foilim"], cfg.method
    ([1, 50], 'mtmfft')
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"cfg has no {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def copy(self) -> "StructDict":
        """Return a copy."""
        return StructDict(self)

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{key:>{width}} : {value}" for key, value in self.items()) or "{}"


def get_defaults(function: Callable[..., Any]) -> StructDict:
    """Return the arguments of a function that have a default, as a struct.

    Examples
    --------
    >>> get_defaults(lambda data, method="mtmfft", pad=1: None)
    {'method': 'mtmfft', 'pad': 1}
    """
    given = inspect.signature(function).parameters.values()
    return StructDict({p.name: p.default for p in given if p.default is not p.empty})


def takes_cfg(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function be called with a struct: ``f(cfg, data)``, ``f(data, cfg)`` or ``cfg=``.

    A struct that came with an earlier result has the settings under the function's name.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        structs = [value for value in args if isinstance(value, Mapping)]
        rest = [value for value in args if not isinstance(value, Mapping)]
        if "cfg" in kwargs:
            structs.append(kwargs.pop("cfg") or {})
        if len(structs) > 1:
            raise InputError(f"{function.__name__} takes one cfg, not {len(structs)}.")
        settings = dict(structs[0]) if structs else {}
        if isinstance(settings.get(function.__name__), Mapping):
            settings = dict(settings[function.__name__])
        for name in settings.keys() & kwargs.keys():
            raise InputError(f"{name}= is given twice: in cfg, and as an argument.")
        if not rest and "data" in settings:
            rest = [settings.pop("data")]
        return function(*rest, **settings, **kwargs)

    return call


def plain(value: Any) -> Any:
    """Return a setting as JSON can keep it.

    Examples
    --------
    >>> plain({"foi": np.arange(3), "pad": np.float64(2)})
    {'foi': [0, 1, 2], 'pad': 2.0}
    """
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, range, set)):
        return [plain(part) for part in value]
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return repr(value)
