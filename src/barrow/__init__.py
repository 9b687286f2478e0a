"""Run your own function over data larger than memory.

``import barrow`` does nothing but define these names; what each needs is
imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barrow.api import cluster, map, open, plan, reduce, report, resume, run
    from barrow.explaining import diagnose
    from barrow.fields import collider as collider
    from barrow.fields import ephys as ephys
    from barrow.fields import miniscope as miniscope
    from barrow.fields import spatial as spatial
    from barrow.forecasting.what_if import what_if
    from barrow.model.finding import Finding
    from barrow.model.plan import Plan
    from barrow.model.run import Run
    from barrow.model.source import Source
    from barrow.model.step import Step
    from barrow.observing import record, watch
    from barrow.recording.spans import span
    from barrow.studying.chunks import chunk_study
    from barrow.studying.measuring import scaling

__version__ = "0.1.0"

_HOMES = {
    "open": "barrow.api",
    "map": "barrow.api",
    "reduce": "barrow.api",
    "plan": "barrow.api",
    "run": "barrow.api",
    "resume": "barrow.api",
    "cluster": "barrow.api",
    "watch": "barrow.observing",
    "record": "barrow.observing",
    "span": "barrow.recording.spans",
    "load_ipython_extension": "barrow.recording.notebook",
    "report": "barrow.api",
    "scaling": "barrow.studying.measuring",
    "chunk_study": "barrow.studying.chunks",
    "what_if": "barrow.forecasting.what_if",
    "diagnose": "barrow.explaining",
    "Finding": "barrow.model.finding",
    "Step": "barrow.model.step",
    "Source": "barrow.model.source",
    "Plan": "barrow.model.plan",
    "Run": "barrow.model.run",
}

_FIELDS = ("collider", "ephys", "miniscope", "spatial")

__all__ = [
    "open",
    "map",
    "reduce",
    "plan",
    "run",
    "resume",
    "cluster",
    "watch",
    "span",
    "record",
    "report",
    "diagnose",
    "scaling",
    "chunk_study",
    "what_if",
    "Step",
    "Source",
    "Plan",
    "Run",
    "Finding",
]


def __getattr__(name: str) -> Any:
    if name in _FIELDS:
        return importlib.import_module(f"barrow.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'barrow' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, *_FIELDS, "__version__"]
