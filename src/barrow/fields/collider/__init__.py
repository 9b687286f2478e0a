"""Particle physics: a processor over the events of many files, and its histograms added up.

Processors are those of coffea, unchanged. Events come from ROOT trees, RNTuples and Parquet;
only the columns that a processor touches are read. There is no chunk size to choose.
"""

import awkward as ak

from barrow.fields.collider import schemas
from barrow.fields.collider.accumulating import accumulate
from barrow.fields.collider.accumulators import (
    AccumulatorABC,
    column_accumulator,
    defaultdict_accumulator,
    dict_accumulator,
    list_accumulator,
    set_accumulator,
    value_accumulator,
)
from barrow.fields.collider.api import partial_output, run
from barrow.fields.collider.events import open_events
from barrow.fields.collider.runner import (
    DaskExecutor,
    FuturesExecutor,
    IterativeExecutor,
    ProcessorABC,
    Runner,
)
from barrow.fields.collider.runs import Run
from barrow.fields.collider.schemas import BaseSchema, NanoAODSchema
from barrow.fields.collider.skips import Skip
from barrow.fields.collider.synthetic import write_nanoaod

__all__ = [
    "AccumulatorABC",
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
    "column_accumulator",
    "defaultdict_accumulator",
    "dict_accumulator",
    "list_accumulator",
    "open_events",
    "partial_output",
    "run",
    "schemas",
    "set_accumulator",
    "value_accumulator",
    "write_nanoaod",
]
