"""Run array functions over trials: the only place here that calls barrow.

Little data are worked on at once; all else is measured, planned and cut over trials
and channels by barrow.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from barrow import api
from barrow.errors import InputError
from barrow.fields.ephys.analysis import Analysis
from barrow.fields.ephys.averages import Total
from barrow.fields.ephys.kinds import AnalogData
from barrow.fields.ephys.trial_data import TrialData
from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.identity import identify_text

# Work that takes no longer, on no more than so much, is over before it could be planned.
AT_ONCE_SECONDS = 0.5
AT_ONCE_BYTES = 2**26
# Channels are cut only where one trial has more than this.
BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Means:
    """Where and how to compute."""

    parallel: bool | None = None
    """False for one core; otherwise a Dask client that is alive is used, and without one barrow
    decides by measurement."""
    chan_per_worker: int | None = None
    to: Any = None
    memory: Any = None
    cluster: Any = None
    quiet: bool = False

    @property
    def where(self) -> Any:
        """What barrow calls ``cluster``."""
        if self.parallel not in (None, True, False):
            raise InputError(f"parallel={self.parallel!r}: use True, False or None.")
        return False if self.parallel is False else self.cluster


def compute(data: TrialData, analysis: Analysis, means: Means) -> Any:
    """Return the answer for all trials in one array: trial × what the function returns."""
    sources = _open(data, analysis)
    if means.to is None and _is_tiny(data, analysis, means):
        blocks = [source.read(source.everything) for source in sources]
        return analysis.func(*blocks, **analysis.settings)
    plan = api.plan(
        analysis.func,
        *sources,
        whole=[dim for dim in ("time", "fact") if any(dim in s.dims for s in sources)],
        to=means.to,
        memory=means.memory,
        cluster=means.where,
        name=analysis.name,
        quiet=means.quiet,
        kwargs=analysis.settings,
    )
    if means.chan_per_worker is not None:
        if means.chan_per_worker < 1:
            raise InputError(f"chan_per_worker={means.chan_per_worker!r}: use 1 or more.")
        if "channel" in plan.cuttable:
            plan = plan.with_chunks(channel=means.chan_per_worker)
    return api.run(plan).result


def add_up(data: TrialData, analysis: Analysis, func: Callable[..., Any], means: Means) -> Any:
    """Return what a function says about all trials, added up; only trials are cut."""
    if means.to is not None:
        raise InputError("to= is for each trial: an average over trials is small. Use save().")
    sources = _open(data, analysis)
    if _is_tiny(data, analysis, means):
        blocks = [source.read(source.everything) for source in sources]
        return func(*blocks, **analysis.settings)
    dims = {dim for source in sources for dim in source.dims}
    return api.reduce(
        func,
        *sources,
        whole=sorted(dims - {"trial"}),
        memory=means.memory,
        cluster=means.where,
        name=analysis.name,
        quiet=means.quiet,
        kwargs=analysis.settings,
    )


def compute_analog(data: AnalogData, analysis: Analysis, means: Means) -> AnalogData:
    """Return the answer of a function that turns trials into trials."""
    values = compute(data, analysis, means)
    made = AnalogData(
        values,
        analysis.samplerate,
        lengths=analysis.lengths,
        offsets=analysis.offsets,
        trialinfo=data.trialinfo,
        channel=data.channel,
    )
    made.info = report_nan(find_nan(values, analysis.lengths))
    return made


def find_nan(values: Any, lengths: np.ndarray) -> np.ndarray:
    """Return which trials have NaN within their own length; a store is read chunk by chunk.

    Parameters
    ----------
    values
        Trial × time × rest. Of spectra only the first frequency of the first taper is
        looked at: a NaN is in all of them.
    """
    first = (slice(None), 0, 0) if values.ndim == 5 else ()
    count = values.shape[0]
    step = count if isinstance(values, np.ndarray) else values.chunks[0]
    found = np.zeros(count, bool)
    for low in range(0, count, step):
        block = np.asarray(values[(slice(low, low + step), *first)])
        for number, trial in enumerate(block, start=low):
            # A sum is NaN if any of its parts is, and needs no array of its own.
            found[number] = np.isnan(trial[: lengths[number]].sum())
    return found


class Averaged:
    """An array function that adds its answers up over trials."""

    def __init__(self, func: Callable[..., np.ndarray]) -> None:
        self.func = func
        self.__name__ = getattr(func, "__name__", "func")

    def __call__(self, *blocks: np.ndarray, **settings: Any) -> Total:
        return Total.of(self.func(*blocks, **settings))


def _is_tiny(data: TrialData, analysis: Analysis, means: Means) -> bool:
    if means.memory is not None or means.chan_per_worker is not None:
        return False
    padded = len(data.trials) * int(data.lengths.max(initial=0)) * int(np.prod(data.rest_shape))
    size = padded * data.dtype.itemsize
    return size <= AT_ONCE_BYTES and size * analysis.nanoseconds <= AT_ONCE_SECONDS * 1e9


def _open(data: TrialData, analysis: Analysis) -> list[Any]:
    if not len(data.trials) or not int(data.lengths.max()):
        raise InputError("There is no trial with samples in the data.")
    sources = [_keep_channels_together(data.source())]
    is_alike = data.is_equal and (
        analysis.beside == "lengths" or bool((data.offsets == data.offsets[0]).all())
    )
    if analysis.beside is None or is_alike:
        return sources
    if analysis.beside == "lengths":
        lengths = data.lengths.astype(np.int64)
        return [*sources, api.open(lengths, name="lengths", dims=("trial",))]
    facts = np.column_stack([data.lengths, np.rint(data.offsets)]).astype(np.int64)
    return [*sources, api.open(facts, name="facts", dims=("trial", "fact"))]


def _keep_channels_together(source: Source) -> Source:
    """Return the source with so many channels in a grain that a block of one trial is not small.

    Channels lie side by side: taking a few out of each sample costs as much as taking all.
    """
    if "channel" not in source.lengths:
        return source
    column = source.nbytes // max(1, source.lengths["trial"] * source.lengths["channel"])
    least = max(source.grain["channel"], BLOCK_BYTES // max(1, column))
    return replace(source, grain={**source.grain, "channel": least})


def report_nan(trials: np.ndarray) -> dict[str, Any]:
    """Return the numbers of trials with NaN for ``info``, and say so if there are any."""
    numbers = np.flatnonzero(trials).tolist()
    if numbers:
        shown = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
        warnings.warn(
            f"{len(numbers)} of {len(trials)} trials have NaN: {shown}. What is computed of their "
            "channels is NaN too, or leaves them out of averages; see info['nan_trials'].",
            stacklevel=6,  # the user's line, seen from here through the call
        )
    return {"nan_trials": numbers}


def generate(
    make: Callable[..., np.ndarray], count: int, settings: Mapping[str, Any], means: Means
) -> Any:
    """Return trials made by a function of their numbers: trial × time × channel."""
    first = make(np.zeros(1, np.int64), **settings)[0]
    if means.to is None and first.nbytes * count * 10 <= AT_ONCE_SECONDS * 1e9:
        return make(np.arange(count), **settings)
    lengths = {"trial": count, "time": first.shape[0], "channel": first.shape[1]}
    return api.map(
        _keep,
        Source("made", lengths, first.dtype, MadeReader(make, dict(settings))),
        whole=("time", "channel"),
        to=means.to,
        memory=means.memory,
        cluster=means.where,
        name=make.__name__.strip("_"),
        quiet=means.quiet,
    )


@dataclass(frozen=True)
class MadeReader(Reader):
    """Trials that are made when they are read."""

    make: Callable[..., np.ndarray]
    settings: dict[str, Any]

    def __call__(self, ranges: Ranges) -> np.ndarray:
        (first, last), (low, high), (left, right) = ranges
        return self.make(np.arange(first, last), **self.settings)[:, low:high, left:right]

    def identity(self) -> str | None:
        return identify_text(self.make.__name__, sorted(self.settings.items()))


def _keep(trials: np.ndarray) -> np.ndarray:
    return trials
