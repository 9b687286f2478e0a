"""Trials with their names and times: recordings, spectra, cross spectra.

An object is values and what they mean. Values are in memory, or in a file and read
when they are used; a selection is a view of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.averages import Total
from barrow.fields.ephys.selecting import cut_latency, find_window, pick
from barrow.fields.ephys.settings import StructDict, plain
from barrow.fields.ephys.stored import cut_trials, open_array
from barrow.model.source import Source
from barrow.sources.lazy import LazyArray

Values = np.ndarray | LazyArray


class Trials(Sequence[np.ndarray]):
    """The trials of an object: each an array that is read when it is asked for."""

    def __init__(self, data: "TrialData") -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data._rows)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[index] for index in range(len(self))[number]]
        return self._data.read_trial(range(len(self))[number])

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return f"{len(self)} trials"


class Stacked:
    """All trials one after the other along time: what ``data`` is if that is not stored so."""

    def __init__(self, data: "TrialData") -> None:
        self._data = data
        self._stops = np.cumsum(data.lengths)
        self.shape = (int(data.lengths.sum()), *data.rest_shape)
        self.dtype = data.dtype
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[()], dtype)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        first, rest = (
            (keys[0], keys[1:]) if keys and keys[0] is not Ellipsis else (slice(None), keys)
        )
        if isinstance(first, (int, np.integer)):
            return self._read(range(len(self))[int(first) : int(first) + 1 or None])[0][rest]
        wanted = np.arange(len(self))[first]
        block = self._read(range(int(wanted.min()), int(wanted.max()) + 1)) if wanted.size else None
        if block is None:
            return np.empty((0, *self.shape[1:]), self.dtype)[(slice(None), *rest)]
        return block[wanted - wanted.min()][(slice(None), *rest)]

    def _read(self, rows: range) -> np.ndarray:
        if not len(rows):
            raise IndexError("sample out of range")
        parts = []
        trial = int(np.searchsorted(self._stops, rows.start, side="right"))
        at = rows.start
        while at < rows.stop:
            begin = int(self._stops[trial] - self._data.lengths[trial])
            stop = min(rows.stop, int(self._stops[trial]))
            parts.append(self._data.read_trial(trial)[at - begin : stop - begin])
            at, trial = stop, trial + 1
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def __repr__(self) -> str:
        return f"<{self.dtype} {' × '.join(map(str, self.shape))}, trials one after the other>"


class TrialData:
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
        **labels: Any,
    ) -> None:
        self.samplerate = float(samplerate)
        self.cfg = StructDict()
        self.info: dict[str, Any] = {}
        self._log: list[str] = []
        self._array, self._is_cube, found = self._take(data, name)
        lengths = found if lengths is None else lengths
        self._picks: list[np.ndarray | None] = [None] * (len(self.dimord) - 1)
        self._define(lengths, offsets)
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

    def _define(self, lengths: np.ndarray | None, offsets: np.ndarray | None) -> None:
        shape = self._array.shape
        if self._is_cube:
            lengths = np.full(shape[0], shape[1]) if lengths is None else np.asarray(lengths)
            starts, trials = np.zeros(len(lengths), int), np.arange(len(lengths))
        else:
            lengths = np.array([shape[0]]) if lengths is None else np.asarray(lengths)
            starts, trials = np.cumsum(lengths) - lengths, np.zeros(len(lengths), int)
        self._rows = np.column_stack([trials, starts, lengths]).astype(np.int64)
        self._offsets = np.zeros(len(lengths)) if offsets is None else np.array(offsets, float)
        self._definition: np.ndarray | None = None
        self._info_columns: np.ndarray | None = None

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
        return self._rows[:, 2]

    @property
    def offsets(self) -> np.ndarray:
        """Time of the first sample of each trial, in samples."""
        return self._offsets

    @property
    def nbytes(self) -> int:
        """Bytes of all trials."""
        return int(self.lengths.sum()) * int(np.prod(self.rest_shape)) * self.dtype.itemsize

    @property
    def is_equal(self) -> bool:
        """Whether all trials have the same number of samples."""
        return bool((self.lengths == self.lengths[0]).all()) if len(self.lengths) else True

    @property
    def trialdefinition(self) -> np.ndarray:
        """First sample, sample behind the last, and offset of each trial; then ``trialinfo``."""
        if self._definition is not None:
            return self._definition.copy()
        stops = np.cumsum(self.lengths)
        columns = [stops - self.lengths, stops, self._offsets]
        if self._info_columns is not None:
            columns.append(self._info_columns)
        return np.column_stack(columns).astype(float)

    @trialdefinition.setter
    def trialdefinition(self, definition: Any) -> None:
        table = np.atleast_2d(np.array(definition, float))
        if self._is_cube or any(p is not None for p in self._picks):
            if not isinstance(self._array, np.ndarray) or not self.is_equal:
                raise InputError(
                    "The trials of a selection, or of an array of trials, are defined already."
                )
            self._array = np.asarray(self.data)
            self._is_cube, self._picks = False, [None] * len(self._picks)
        total = self._array.shape[0]
        if table.ndim != 2 or table.shape[1] < 3:
            raise InputError(
                "trialdefinition needs three columns: first sample, sample behind the last one, "
                f"offset. It has the shape {table.shape}."
            )
        starts, stops = table[:, 0].astype(int), table[:, 1].astype(int)
        if (starts < 0).any() or (stops > total).any() or (stops < starts).any():
            raise InputError(
                f"trialdefinition reaches beyond the data, which have {total} samples, or has a "
                "trial that ends before it begins."
            )
        self._rows = np.column_stack([np.zeros_like(starts), starts, stops - starts])
        self._offsets = table[:, 2]
        self._info_columns = table[:, 3:] if table.shape[1] > 3 else None
        self._definition = table

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
        return self._info_columns

    @property
    def time(self) -> list[np.ndarray]:
        """Times of the samples of each trial, in seconds."""
        return [
            (np.arange(length) + offset) / self.samplerate
            for length, offset in zip(self.lengths, self._offsets, strict=True)
        ]

    @property
    def trialintervals(self) -> np.ndarray:
        """Time of the first and of the last sample of each trial."""
        last = self._offsets + np.maximum(self.lengths - 1, 0)
        return np.column_stack([self._offsets, last]) / self.samplerate

    # -- values

    @property
    def trials(self) -> Trials:
        """The trials, each an array without a dimension for trials."""
        return Trials(self)

    @property
    def data(self) -> Any:
        """All trials one after the other along time."""
        is_whole = all(pick is None for pick in self._picks)
        if not self._is_cube and is_whole and self._definition is not None:
            return self._array
        if not self._is_cube and is_whole and int(self.lengths.sum()) == self._array.shape[0]:
            return self._array
        if self._is_cube and is_whole and isinstance(self._array, np.ndarray):
            trials, samples = self._array.shape[:2]
            everything = [[number, 0, samples] for number in range(trials)]
            if np.array_equal(self._rows, everything):
                return self._array.reshape(-1, *self._array.shape[2:])
        return Stacked(self)

    def read_trial(self, number: int) -> np.ndarray:
        """Return the values of a trial."""
        trial, start, length = self._rows[number].tolist()
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
            self._rows,
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
        for number in range(1, len(self._rows)):
            total = total + Total.of(self.read_trial(number)[None])
        made = self._like(total.mean().astype(self.dtype))
        made._offsets = self._offsets.mean(keepdims=True)
        return made

    def _copied(self) -> Self:
        made = self._like(list(self.trials))
        made._offsets = self._offsets
        return made

    def _like(self, values: Any, **changes: Any) -> Self:
        """Return an object with other values, and the same names and history."""
        made = type(self)(values, self.samplerate, **{**self._labels, **changes})
        made.cfg, made.info, made._log = self.cfg.copy(), dict(self.info), list(self._log)
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
        made = self._view()
        made._choose_trials(pick(trials, np.arange(len(self._rows)), "trials"))
        if latency is not None and not (isinstance(latency, str) and latency == "all"):
            made._choose_latency(latency)
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

    def _view(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._picks, made._labels = list(self._picks), dict(self._labels)
        made.cfg, made.info, made._log = self.cfg.copy(), dict(self.info), list(self._log)
        return made

    def _choose_trials(self, index: np.ndarray | None) -> None:
        if index is None:
            return
        self._rows, self._offsets = self._rows[index], self._offsets[index]
        if self._info_columns is not None:
            self._info_columns = self._info_columns[index]
        self._definition = None

    def _choose_latency(self, latency: Any) -> None:
        window = find_window(latency, self.trialintervals)
        first, length = cut_latency(window, self.lengths, self._offsets, self.samplerate)
        covers = (self.trialintervals[:, 0] <= window[0] + 1e-9) & (
            self.trialintervals[:, 1] >= window[1] - 1e-9
        )
        if not covers.any():
            raise InputError(f"latency={latency!r}: no trial covers all of it.")
        rows = self._rows.copy()
        rows[:, 1] += first
        rows[:, 2] = length
        self._rows, self._offsets = rows, self._offsets + first
        self._definition = None
        self._choose_trials(np.flatnonzero(covers))

    def show(self, squeeze: bool = True, **selection: Any) -> Any:
        """Return a selection as an array; a list of arrays for several trials."""
        chosen = self.selectdata(**selection) if selection else self
        found = [np.squeeze(trial) if squeeze else trial for trial in chosen.trials]
        return found[0] if len(found) == 1 else found

    # -- other forms

    def to_xarray(self) -> Any:
        """Return all trials as an xarray DataArray; NaN behind shorter ones."""
        import xarray

        cube = self.cube()
        if not self.is_equal:
            cube = cube.astype(np.result_type(cube.dtype, np.float32))
            for number, length in enumerate(self.lengths):
                cube[number, length:] = np.nan
        coords: dict[str, Any] = {"trial": np.arange(len(self._rows)), **self._labels}
        if len(self._offsets) and (self._offsets == self._offsets[0]).all():
            coords["time"] = (np.arange(cube.shape[1]) + self._offsets[0]) / self.samplerate
        attrs = {"samplerate": self.samplerate}
        return xarray.DataArray(cube, coords, ("trial", *self.dimord), attrs=attrs)

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

    # -- history

    @property
    def log(self) -> str:
        """What was done to these data, one line for each step."""
        return "\n".join(self._log)

    def note(self, text: str) -> None:
        """Add a line to the log."""
        stamp = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        self._log.append(f"{stamp} {text}")

    def inherit(self, other: "TrialData", call: str, settings: Mapping[str, Any]) -> None:
        """Take over the history of the data that this was made of, and add a step."""
        self.cfg = other.cfg.copy()
        self.cfg[call] = StructDict({key: plain(value) for key, value in settings.items()})
        self._log = list(other._log)
        said = ", ".join(f"{key}={value!r}" for key, value in self.cfg[call].items())
        self.note(f"{call}: {said}")

    def __repr__(self) -> str:
        shape = " × ".join(
            f"{dim} {length}" for dim, length in zip(self.dimord[1:], self.rest_shape, strict=True)
        )
        low, high = (int(self.lengths.min(initial=0)), int(self.lengths.max(initial=0)))
        samples = f"{high}" if self.is_equal else f"{low} to {high}"
        return (
            f"{type(self).__name__}: {len(self._rows)} trials of {samples} samples at "
            f"{self.samplerate:g} Hz, {shape}, {self.dtype}"
        )


class AnalogData(TrialData):
    """A recording: time × channel in each trial.

    Examples
    --------
    >>> rec = AnalogData(np.zeros((3, 500, 2), "f4"), samplerate=500, channel=["a", "b"])
    >>> rec
    AnalogData: 3 trials of 500 samples at 500 Hz, channel 2, float32
    >>> rec.data.shape, rec.trials[0].shape, rec.selectdata(channel=["b"]).trials[1].shape
    ((1500, 2), (500, 2), (500, 1))
    """

    dimord = ("time", "channel")
    channel: np.ndarray


class SpectralData(TrialData):
    """Spectra: time × taper × frequency × channel in each trial."""

    dimord = ("time", "taper", "freq", "channel")
    taper: np.ndarray
    freq: np.ndarray
    channel: np.ndarray


class CrossSpectralData(TrialData):
    """What pairs of channels share: time × frequency × channel × channel in each trial."""

    dimord = ("time", "freq", "channel_i", "channel_j")
    freq: np.ndarray
    channel_i: np.ndarray
    channel_j: np.ndarray


class TimeLockData(TrialData):
    """Trials cut to one window, with their average, variance and covariance."""

    dimord = ("time", "channel")
    channel: np.ndarray
    avg: np.ndarray
    """Mean over trials: time × channel."""
    var: np.ndarray
    """Variance over trials: time × channel."""
    cov: np.ndarray | None = None
    """Covariance of channels, averaged over trials or for each."""


class SpikeData:
    """Spikes: sample, channel and unit of each, in trials.

    Examples
    --------
    >>> spikes = SpikeData(np.array([[3, 0, 1], [12, 1, 0]]), 1000.0, [[0, 10, 0], [10, 20, 0]])
    >>> [len(trial) for trial in spikes.trials]
    [1, 1]
    """

    dimord: ClassVar[tuple[str, ...]] = ("sample", "channel", "unit")

    def __init__(self, data: np.ndarray, samplerate: float, trialdefinition: Any) -> None:
        self.data = np.asarray(data)
        self.samplerate = float(samplerate)
        self.trialdefinition = np.atleast_2d(np.array(trialdefinition, float))
        self.channel = np.unique(self.data[:, 1])
        self.unit = np.unique(self.data[:, 2])

    @property
    def trials(self) -> list[np.ndarray]:
        """The spikes of each trial."""
        samples = self.data[:, 0]
        bounds = np.searchsorted(samples, self.trialdefinition[:, :2])
        return [self.data[low:high] for low, high in bounds]

    @property
    def trialintervals(self) -> np.ndarray:
        """Time of the first and of the last sample of each trial."""
        starts, stops, offsets = self.trialdefinition[:, :3].T
        return np.column_stack([offsets, offsets + stops - starts - 1]) / self.samplerate

    def __repr__(self) -> str:
        return (
            f"SpikeData: {len(self.data)} spikes in {len(self.trialdefinition)} trials, "
            f"{len(self.channel)} channels, {len(self.unit)} units"
        )
