"""Trials with their names and times: what recordings and spectra have in common.

An object is values and what they mean. Values are in memory, or in a file and read
when they are used; a selection is a view of them.
"""

from typing import Any, ClassVar, Self

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.averages import Total
from barrow.fields.ephys.history import History
from barrow.fields.ephys.selecting import pick
from barrow.fields.ephys.settings import StructDict, plain
from barrow.fields.ephys.stacking import Stacked, Trials
from barrow.fields.ephys.stored import cut_trials, open_array
from barrow.fields.ephys.trial_table import TrialTable
from barrow.model.source import Source
from barrow.sources.lazy import LazyArray

Values = np.ndarray | LazyArray


class TrialData(History):
    """What recordings and spectra have in common.

    Parameters
    ----------
    data
        Samples of all trials one after the other; or one array for each trial; or
        trial × samples; or the path of a file, or any array that barrow opens.
    samplerate
        Samples for each second.
    trialdefinition
        One row for each trial: first sample, sample behind the last one, and the
        time of the first sample in samples; more columns are kept as ``trialinfo``.
    lengths, offsets, trialinfo
        Instead of a definition: samples, time of the first one in samples, and what else
        is known of each trial.
    labels
        Names along the other dimensions, such as ``channel``.
    """

    dimord: ClassVar[tuple[str, ...]] = ("time",)

    def __init__(
        self,
        data: Any,
        samplerate: float = 1000.0,
        trialdefinition: Any = None,
        *,
        name: str | None = None,
        lengths: np.ndarray | None = None,
        offsets: np.ndarray | None = None,
        trialinfo: np.ndarray | None = None,
        **labels: Any,
    ) -> None:
        super().__init__()
        self.samplerate = float(samplerate)
        self._array, self._is_cube, found = self._take(data, name)
        # A store without a place of its own lives as long as the array that was given.
        self._kept = None if isinstance(data, (list, tuple)) else data
        self._picks: list[np.ndarray | None] = [None] * (len(self.dimord) - 1)
        if lengths is None:
            count, samples = self._array.shape[:2]
            lengths = np.full(count, samples) if self._is_cube else found
        if lengths is None:
            lengths = np.array(self._array.shape[:1])
        self._table = TrialTable.of_lengths(lengths, offsets, trialinfo, is_cube=self._is_cube)
        if trialdefinition is not None:
            self.trialdefinition = trialdefinition
        self._labels: dict[str, np.ndarray] = {}
        for dim, length in zip(self.dimord[1:], self.rest_shape, strict=True):
            self._set_labels(dim, labels.pop(dim, None), length)
        if labels:
            raise InputError(f"{type(self).__name__} has no {', '.join(sorted(labels))}.")

    # -- what it is made of

    def _take(self, data: Any, name: str | None) -> tuple[Values, bool, np.ndarray | None]:
        """Return the values, whether they are a cube, and the lengths of trials if known."""
        depth = len(self.dimord)
        if isinstance(data, (list, tuple)) and data and all(hasattr(t, "shape") for t in data):
            lengths = np.array([len(trial) for trial in data])
            if any(np.ndim(trial) != depth for trial in data):
                raise InputError(f"Each trial must be {' × '.join(self.dimord)}.")
            if len({trial.shape[1:] for trial in data}) > 1:
                raise InputError("The trials differ in the number of channels.")
            return np.concatenate([np.asarray(trial) for trial in data]), False, lengths
        array = open_array(data, name)
        if array.ndim not in (depth, depth + 1):
            raise InputError(
                f"The data have {array.ndim} dimensions, but {type(self).__name__} needs "
                f"{' × '.join(self.dimord)}, or trials before them."
            )
        return array, array.ndim == depth + 1, None

    def _set_labels(self, dim: str, names: Any, length: int) -> None:
        if names is None:
            stem = "channel" if dim.startswith("channel") else dim
            digits = len(str(length))
            made: Any = [f"{stem}{number + 1:0{digits}d}" for number in range(length)]
            names = np.arange(length, dtype=float) if dim == "freq" else made
        found = np.atleast_1d(np.asarray(names))
        if len(found) != length:
            raise InputError(f"{dim}= has {len(found)} names, but the data have {length} there.")
        self._labels[dim] = found

    def __getattr__(self, name: str) -> Any:
        labels = self.__dict__.get("_labels", {})
        if name in labels:
            return labels[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self).dimord[1:] and "_labels" in self.__dict__:
            self._set_labels(name, value, self.rest_shape[type(self).dimord.index(name) - 1])
        else:
            super().__setattr__(name, value)

    # -- shape and times

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return np.dtype(self._array.dtype)

    @property
    def rest_shape(self) -> tuple[int, ...]:
        """Lengths of all dimensions but trial and time."""
        stored = self._array.shape[2 if self._is_cube else 1 :]
        return tuple(n if p is None else len(p) for n, p in zip(stored, self._picks, strict=True))

    @property
    def lengths(self) -> np.ndarray:
        """Samples of each trial."""
        return self._table.lengths

    @property
    def offsets(self) -> np.ndarray:
        """Time of the first sample of each trial, in samples."""
        return self._table.offsets

    @property
    def labels(self) -> dict[str, np.ndarray]:
        """Names along each dimension but time."""
        return dict(self._labels)

    @property
    def nbytes(self) -> int:
        """Bytes of all trials."""
        return int(self.lengths.sum()) * int(np.prod(self.rest_shape)) * self.dtype.itemsize

    @property
    def is_equal(self) -> bool:
        """Whether all trials have the same number of samples."""
        return self._table.is_equal

    @property
    def trialdefinition(self) -> np.ndarray:
        """First sample, sample behind the last, and offset of each trial; then ``trialinfo``."""
        return self._table.definition()

    @trialdefinition.setter
    def trialdefinition(self, definition: Any) -> None:
        if self._is_cube or any(p is not None for p in self._picks):
            if not isinstance(self._array, np.ndarray) or not self.is_equal:
                raise InputError(
                    "The trials of a selection, or of an array of trials, are defined already."
                )
            self._array = np.asarray(self.data)
            self._is_cube, self._picks = False, [None] * len(self._picks)
        self._table = TrialTable.of_definition(definition, self._array.shape[0])

    def definetrial(self, definition: Any) -> None:
        """Cut the samples into other trials: see ``trialdefinition``."""
        self.trialdefinition = definition

    @property
    def sampleinfo(self) -> np.ndarray:
        """First sample, and sample behind the last one, of each trial."""
        return self.trialdefinition[:, :2]

    @property
    def trialinfo(self) -> np.ndarray | None:
        """What else is known of each trial."""
        return self._table.info

    @property
    def time(self) -> list[np.ndarray]:
        """Times of the samples of each trial, in seconds."""
        return self._table.times(self.samplerate)

    @property
    def trialintervals(self) -> np.ndarray:
        """Time of the first and of the last sample of each trial."""
        return self._table.intervals(self.samplerate)

    # -- values

    @property
    def trials(self) -> Trials:
        """The trials, each an array without a dimension for trials."""
        return Trials(self)

    @property
    def data(self) -> Any:
        """All trials one after the other along time."""
        is_whole = all(pick is None for pick in self._picks)
        if not self._is_cube and is_whole and self._table.given is not None:
            return self._array
        if not self._is_cube and is_whole and int(self.lengths.sum()) == self._array.shape[0]:
            return self._array
        if self._is_cube and is_whole and isinstance(self._array, np.ndarray):
            trials, samples = self._array.shape[:2]
            everything = [[number, 0, samples] for number in range(trials)]
            if np.array_equal(self._table.rows, everything):
                return self._array.reshape(-1, *self._array.shape[2:])
        return Stacked(self)

    def read_trial(self, number: int) -> np.ndarray:
        """Return the values of a trial."""
        trial, start, length = self._table.rows[number].tolist()
        rows = slice(start, start + length)
        index = (trial, rows) if self._is_cube else (rows,)
        found = np.asarray(self._array[index])
        for axis, chosen in enumerate(self._picks, start=1):
            if chosen is not None:
                found = found.take(chosen, axis=axis)
        return found

    def source(self) -> Source:
        """Return all trials as a source of trial × time × rest, for :func:`barrow.map`."""
        picked = [pick is not None for pick in self._picks]
        if sum(picked) > 1:
            return self._copied().source()
        return cut_trials(
            self._array,
            self._table.rows,
            is_cube=self._is_cube,
            dims=("trial", *self.dimord),
            picks=self._picks,
            name=type(self).__name__,
        )

    def cube(self) -> np.ndarray:
        """Return a copy of all trials as trial × time × rest; zeros behind shorter ones."""
        source = self.source()
        return np.array(source.read(source.everything))

    def average(self) -> Self:
        """Return the mean over trials, as an object with one trial; NaN is left out."""
        if not self.is_equal:
            raise InputError("Trials of different lengths have no mean: selectdata(latency=...).")
        total = Total.of(self.read_trial(0)[None])
        for number in range(1, len(self.lengths)):
            total = total + Total.of(self.read_trial(number)[None])
        return self.like(total.mean().astype(self.dtype), offsets=self.offsets.mean(keepdims=True))

    def _copied(self) -> Self:
        return self.like(list(self.trials), offsets=self.offsets)

    def like(self, values: Any, **changes: Any) -> Self:
        """Return an object with other values, and the same names and history."""
        made = type(self)(values, self.samplerate, **{**self._labels, **changes})
        made.take_history(self)
        return made

    # -- choosing

    def selectdata(
        self,
        trials: Any = None,
        channel: Any = None,
        latency: Any = None,
        frequency: Any = None,
        taper: Any = None,
        channel_i: Any = None,
        channel_j: Any = None,
        **unknown: Any,
    ) -> Self:
        """Return a view of some trials, channels, times or frequencies; nothing is copied.

        Parameters
        ----------
        trials
            Numbers of trials, in any order; None for all.
        channel, channel_i, channel_j, taper
            Names or numbers, a slice or a range; None for all.
        latency
            First and last time in seconds; or ``"minperiod"``, ``"maxperiod"``,
            ``"prestim"``, ``"poststim"``. Trials that do not cover it are left out.
        frequency
            One frequency, or lowest and highest, in Hz.
        """
        if unknown:
            raise InputError(f"selectdata does not know {', '.join(sorted(unknown))}.")
        given = {
            "channel": channel,
            "taper": taper,
            "freq": frequency,
            "channel_i": channel_i,
            "channel_j": channel_j,
        }
        made = self.view()
        made._table = self._table.pick(pick(trials, np.arange(len(self.lengths)), "trials"))
        if latency is not None and not (isinstance(latency, str) and latency == "all"):
            made._table = made._table.cut(latency, self.samplerate)
        for dim, wanted in given.items():
            if wanted is None:
                continue
            if dim not in self.dimord:
                raise InputError(f"{type(self).__name__} has no {dim} to select from.")
            axis = self.dimord.index(dim) - 1
            index = pick(wanted, self._labels[dim], dim)
            if index is None:
                continue
            before = made._picks[axis]
            made._picks[axis] = index if before is None else before[index]
            made._labels[dim] = self._labels[dim][index]
        kept = {"trials": trials, "latency": latency, **given}
        made.cfg["selectdata"] = StructDict(
            {key: plain(value) for key, value in kept.items() if value is not None}
        )
        return made

    def view(self) -> Self:
        """Return another object of the same values."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._picks, made._labels = list(self._picks), dict(self._labels)
        made.take_history(self)
        return made

    def show(self, squeeze: bool = True, **selection: Any) -> Any:
        """Return a selection as an array; a list of arrays for several trials."""
        chosen = self.selectdata(**selection) if selection else self
        found = [np.squeeze(trial) if squeeze else trial for trial in chosen.trials]
        return found[0] if len(found) == 1 else found

    # -- other forms

    def to_xarray(self) -> Any:
        """Return all trials as an xarray DataArray; NaN behind shorter ones."""
        from barrow.fields.ephys.exchanging import to_xarray

        return to_xarray(self)

    @property
    def xarray(self) -> Any:
        """All trials as an xarray DataArray."""
        return self.to_xarray()

    def save(self, *args: Any, **kwargs: Any) -> Any:
        """Write the object to a file or container: see :func:`barrow.ephys.save`."""
        from barrow.fields.ephys.files import save

        return save(self, *args, **kwargs)

    def singlepanelplot(self, **selection: Any) -> Any:
        """Draw a selection in one panel; return figure and axes."""
        from barrow.fields.ephys.plotting import plot_single

        return plot_single(self, **selection)

    def multipanelplot(self, **selection: Any) -> Any:
        """Draw each channel in a panel of its own; return figure and axes."""
        from barrow.fields.ephys.plotting import plot_panels

        return plot_panels(self, **selection)

    def __repr__(self) -> str:
        shape = " × ".join(
            f"{dim} {length}" for dim, length in zip(self.dimord[1:], self.rest_shape, strict=True)
        )
        low, high = (int(self.lengths.min(initial=0)), int(self.lengths.max(initial=0)))
        samples = f"{high}" if self.is_equal else f"{low} to {high}"
        return (
            f"{type(self).__name__}: {len(self.lengths)} trials of {samples} samples at "
            f"{self.samplerate:g} Hz, {shape}, {self.dtype}"
        )
