"""From and to what other libraries hold: xarray, NWB files, MNE and Neo."""

import os
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.kinds import AnalogData
from barrow.fields.ephys.trial_data import TrialData


def from_xarray(array: Any) -> AnalogData:
    """Return a DataArray with the dimensions time and channel, and maybe trial, as a recording.

    Examples
    --------
    >>> import xarray
    >>> times = {"time": np.arange(4) / 100}
    >>> made = from_xarray(xarray.DataArray(np.zeros((4, 2)), times, ("time", "channel")))
    >>> made.samplerate, made.channel.tolist()
    (100.0, ['channel1', 'channel2'])
    """
    if "time" not in array.dims or "channel" not in array.dims:
        raise InputError(f"The array has {array.dims}, but a recording needs 'time' and 'channel'.")
    dims = [dim for dim in ("trial", "time", "channel") if dim in array.dims]
    if set(dims) != set(array.dims):
        raise InputError(f"Of {array.dims} only trial, time and channel can be used.")
    array = array.transpose(*dims)
    rate, first = array.attrs.get("samplerate"), 0.0
    if "time" in array.coords and array.sizes["time"] > 1:
        times = np.asarray(array["time"], float)
        rate = rate or float(round(1 / np.diff(times).mean(), 6))
        first = float(times[0] * rate)
    if rate is None:
        raise InputError("The array has no times, and no attribute 'samplerate'.")
    names = np.asarray(array["channel"]).astype(str) if "channel" in array.coords else None
    values = array.data if isinstance(array.data, np.ndarray) else array
    count = array.sizes.get("trial", 1)
    return AnalogData(values, rate, channel=names, offsets=np.full(count, round(first)))


def to_xarray(data: TrialData) -> Any:
    """Return all trials as a DataArray; NaN behind shorter ones."""
    import xarray

    cube = data.cube()
    if not data.is_equal:
        cube = cube.astype(np.result_type(cube.dtype, np.float32))
        for number, length in enumerate(data.lengths):
            cube[number, length:] = np.nan
    coords: dict[str, Any] = {"trial": np.arange(len(data.lengths)), **data.labels}
    if len(data.offsets) and (data.offsets == data.offsets[0]).all():
        coords["time"] = (np.arange(cube.shape[1]) + data.offsets[0]) / data.samplerate
    dims = ("trial", *data.dimord)
    return xarray.DataArray(cube, coords, dims, attrs={"samplerate": data.samplerate})


def from_nwb(path: Any, name: str | None = None) -> AnalogData:
    """Open a time series of an NWB file; its values stay in the file until they are used.

    Parameters
    ----------
    name
        Which of the acquired series; by default the only one. Trials of the file are used
        as trials.
    """
    import pynwb

    with pynwb.NWBHDF5IO(os.fspath(path), "r") as io:
        file = io.read()
        found = {
            key: series
            for key, series in file.acquisition.items()
            if isinstance(series, pynwb.TimeSeries)
        }
        if name is None and len(found) == 1:
            name = next(iter(found))
        if name not in found:
            raise InputError(f"name={name!r}: {path} holds the series {', '.join(found) or '-'}.")
        series = found[name]
        rate, begin = _find_rate(series)
        dataset, count = series.data.name, series.data.shape[0]
        labels = _find_electrodes(series)
        spans = None
        if file.trials is not None:
            begins, ends = (np.asarray(file.trials[key][:]) for key in ("start_time", "stop_time"))
            has_offset = "offset" in file.trials.colnames
            offsets = np.asarray(file.trials["offset"][:]) if has_offset else np.zeros(len(begins))
            spans = np.column_stack([begins, ends, offsets])
        info = {"unit": series.unit, "conversion": series.conversion}
    table = None
    if spans is not None and len(spans):
        rows = np.rint((spans[:, :2] - begin) * rate)
        table = np.column_stack([rows, np.rint(spans[:, 2] * rate)])
        table = table[(rows[:, 0] >= 0) & (rows[:, 1] <= count)]
    made = AnalogData(path, rate, table, name=dataset, channel=labels)
    made.info |= info
    return made


def to_nwb(data: AnalogData, path: Any, name: str = "recording") -> None:
    """Write a recording as a time series of an NWB file, with its trials."""
    from datetime import UTC, datetime

    import pynwb

    file = pynwb.NWBFile(
        session_description="recording",
        identifier="barrow",
        session_start_time=datetime.now(UTC),
    )
    rate = data.samplerate
    unit = str(data.info.get("unit", "V"))
    series = pynwb.TimeSeries(name=name, data=np.asarray(data.data), unit=unit, rate=rate)
    file.add_acquisition(series)
    file.add_trial_column(name="offset", description="time of the first sample, in seconds")
    stops = np.cumsum(data.lengths) / rate
    starts = stops - data.lengths / rate
    for start, stop, offset in zip(starts, stops, data.offsets / rate, strict=True):
        file.add_trial(start_time=float(start), stop_time=float(stop), offset=float(offset))
    with pynwb.NWBHDF5IO(os.fspath(path), "w") as io:
        io.write(file)


def _find_rate(series: Any) -> tuple[float, float]:
    if series.rate is not None:
        return float(series.rate), float(series.starting_time or 0.0)
    stamps = series.timestamps[: min(1000, len(series.timestamps))]
    steps = np.diff(stamps)
    if not steps.size or not np.allclose(steps, steps.mean(), rtol=1e-3):
        raise InputError(f"The series {series.name!r} is not sampled evenly.")
    return float(round(1 / steps.mean(), 6)), float(stamps[0])


def _find_electrodes(series: Any) -> list[str] | None:
    electrodes = getattr(series, "electrodes", None)
    if electrodes is None:
        return None
    table = electrodes.to_dataframe() if hasattr(electrodes, "to_dataframe") else electrodes[:]
    if "label" in table:
        return [str(label) for label in table["label"]]
    return [f"electrode{number}" for number in table.index]


def from_mne(found: Any) -> AnalogData:
    """Return MNE's Epochs or Raw as a recording."""
    import mne

    rate = float(found.info["sfreq"])
    if isinstance(found, mne.BaseEpochs):
        values = found.get_data(copy=False).transpose(0, 2, 1)
        offsets = np.full(len(values), round(found.tmin * rate))
        return AnalogData(
            np.ascontiguousarray(values), rate, channel=found.ch_names, offsets=offsets
        )
    if isinstance(found, mne.io.BaseRaw):
        values = np.ascontiguousarray(found.get_data().T)
        return AnalogData(
            values, rate, channel=found.ch_names, offsets=np.array([float(found.first_samp)])
        )
    raise InputError(f"A {type(found).__name__} is neither mne.Epochs nor mne.io.Raw.")


def to_mne(data: TrialData, ch_types: str = "misc") -> Any:
    """Return a recording as MNE's EpochsArray; a single trial as RawArray."""
    import mne

    if tuple(data.dimord) != ("time", "channel"):
        raise InputError(f"{type(data).__name__} is no recording.")
    info = mne.create_info([str(name) for name in data.channel], data.samplerate, ch_types)
    if len(data.trials) == 1:
        values = data.trials[0].T.astype(float)
        return mne.io.RawArray(values, info, first_samp=int(data.offsets[0]), verbose="error")
    if not data.is_equal or (data.offsets != data.offsets[0]).any():
        raise InputError("MNE's epochs share their times: selectdata(latency='minperiod') first.")
    values = data.cube().transpose(0, 2, 1).astype(float)
    begin = float(data.offsets[0] / data.samplerate)
    return mne.EpochsArray(values, info, tmin=begin, verbose="error")


def from_neo(found: Any, number: int = 0) -> AnalogData:
    """Return analog signals of Neo as a recording.

    Parameters
    ----------
    found
        An AnalogSignal; or a Block, whose segments are the trials; or a Segment.
    number
        Which of the signals of a segment.
    """
    segments = getattr(found, "segments", None)
    if segments is not None:
        signals = [segment.analogsignals[number] for segment in segments]
    elif hasattr(found, "analogsignals"):
        signals = [found.analogsignals[number]]
    else:
        signals = [found]
    rates = {float(signal.sampling_rate.rescale("Hz").magnitude) for signal in signals}
    if len(rates) != 1:
        raise InputError(f"The signals have different sample rates: {sorted(rates)}.")
    rate = rates.pop()
    offsets = [float(signal.t_start.rescale("s").magnitude) * rate for signal in signals]
    labels = signals[0].array_annotations.get("channel_names")
    made = AnalogData(
        [np.asarray(signal.magnitude) for signal in signals],
        rate,
        channel=None if labels is None else [str(label) for label in labels],
        offsets=np.rint(offsets),
    )
    made.info["unit"] = str(signals[0].units.dimensionality)
    return made


def to_neo(data: TrialData, units: str = "V") -> Any:
    """Return a recording as a Block of Neo: a segment for each trial."""
    import neo

    block = neo.Block(name="recording")
    for trial, offset in zip(data.trials, data.offsets, strict=True):
        segment = neo.Segment()
        segment.analogsignals.append(
            neo.AnalogSignal(
                trial,
                units=units,
                sampling_rate=data.samplerate * _hertz(),
                t_start=float(offset / data.samplerate) * _seconds(),
                array_annotations={"channel_names": [str(name) for name in data.channel]},
            )
        )
        block.segments.append(segment)
    return block


def _hertz() -> Any:
    import quantities

    return quantities.Hz


def _seconds() -> Any:
    import quantities

    return quantities.s
