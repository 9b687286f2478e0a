"""Particle physics: a processor over the events of many files, and its histograms added up.

Processors are those of coffea, unchanged. Events come from ROOT trees, RNTuples and Parquet;
only the columns that a processor touches are read. There is no chunk size to choose.
"""

import awkward as ak

from barrow.fields.collider.accumulating import accumulate
from barrow.fields.collider.api import partial_output, run
from barrow.fields.collider.events import open_events
from barrow.fields.collider.runner import (
    BaseSchema,
    DaskExecutor,
    FuturesExecutor,
    IterativeExecutor,
    NanoAODSchema,
    ProcessorABC,
    Runner,
)
from barrow.fields.collider.runs import Run
from barrow.fields.collider.skips import Skip
from barrow.fields.collider.synthetic import write_nanoaod

__all__ = [
    "BaseSchema",
    "DaskExecutor",
    "FuturesExecutor",
    "IterativeExecutor",
    "NanoAODSchema",
    "ProcessorABC",
    "Run",
    "Runner",
    "Skip",
    "accumulate",
    "ak",
    "open_events",
    "partial_output",
    "run",
    "write_nanoaod",
]
