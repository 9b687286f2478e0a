"""Run your own function over data larger than memory.

``import barrow`` does nothing but define these names; what each needs is
imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barrow.api import cluster, map, open, plan, reduce, resume, run
    from barrow.model.plan import Plan
    from barrow.model.run import Run
    from barrow.model.source import Source
    from barrow.model.step import Step

__version__ = "0.1.0"

_HOMES = {
    "open": "barrow.api",
    "map": "barrow.api",
    "reduce": "barrow.api",
    "plan": "barrow.api",
    "run": "barrow.api",
    "resume": "barrow.api",
    "cluster": "barrow.api",
    "Step": "barrow.model.step",
    "Source": "barrow.model.source",
    "Plan": "barrow.model.plan",
    "Run": "barrow.model.run",
}

__all__ = [
    "open",
    "map",
    "reduce",
    "plan",
    "run",
    "resume",
    "cluster",
    "Step",
    "Source",
    "Plan",
    "Run",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'barrow' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
