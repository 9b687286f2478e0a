"""Pictures that people expect: traces, spectra, time-frequency images, coherence.

Needs matplotlib; loaded only when something is drawn.
"""

from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.kinds import CrossSpectralData, SpectralData
from barrow.fields.ephys.trial_data import TrialData

# Colours that can be told apart by everybody (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MOST_PANELS = 36
MOST_LINES = 12
# A trace needs so much room for its name; in the highest picture only some have one.
INCHES_EACH = 0.18
MOST_INCHES = 14.0


def plot_single(data: TrialData, logscale: bool = True, **selection: Any) -> Any:
    """Draw one trial in one panel, and return figure and axes.

    Parameters
    ----------
    data
        A recording, spectra or cross spectra.
    logscale
        Whether power is drawn in decibels.
    selection
        As for ``selectdata``; without ``trials`` the first is drawn.
    """
    chosen = _choose(data, selection)
    plt = _pyplot()
    height = 4.2
    if not isinstance(chosen, (CrossSpectralData, SpectralData)):
        height = min(max(height, INCHES_EACH * len(chosen.channel)), MOST_INCHES)
    figure, axes = plt.subplots(figsize=(6.4, height), layout="constrained")
    if isinstance(chosen, CrossSpectralData):
        _draw_pairs(axes, chosen)
    elif isinstance(chosen, SpectralData) and chosen.lengths[0] > 1:
        _draw_image(axes, chosen, 0, logscale, _limits(chosen, logscale))
        axes.set_title(str(chosen.channel[0]))
        _add_bar(figure, axes, chosen, logscale)
    elif isinstance(chosen, SpectralData):
        _draw_spectra(axes, chosen, logscale)
    else:
        _draw_traces(axes, chosen)
    _clean(axes)
    return figure, axes


def plot_panels(data: TrialData, logscale: bool = True, **selection: Any) -> Any:
    """Draw one trial with a panel for each channel, and return figure and axes."""
    chosen = _choose(data, selection)
    if isinstance(chosen, CrossSpectralData):
        raise InputError("Pairs of channels are drawn in a single panel: singlepanelplot().")
    names = chosen.channel
    if len(names) > MOST_PANELS:
        raise InputError(
            f"{len(names)} panels are too many to be seen. Choose at most {MOST_PANELS} channels: "
            "multipanelplot(channel=range(9))."
        )
    plt = _pyplot()
    columns = int(np.ceil(np.sqrt(len(names))))
    rows = -(-len(names) // columns)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(1.5 + 2.3 * columns, 0.8 + 1.9 * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    is_image = isinstance(chosen, SpectralData) and chosen.lengths[0] > 1
    limits = _limits(chosen, logscale) if is_image else (0.0, 1.0)
    for number, axes in enumerate(grid.ravel()):
        if number >= len(names):
            axes.set_visible(False)
            continue
        one = chosen.selectdata(channel=[number])
        if is_image:
            assert isinstance(one, SpectralData)
            _draw_image(axes, one, 0, logscale, limits)
        elif isinstance(one, SpectralData):
            _draw_spectra(axes, one, logscale, legend=False)
        else:
            axes.plot(one.time[0], one.trials[0][:, 0], color=COLOURS[0], lw=0.8)
            axes.set_xlabel("time (s)")
            axes.set_ylabel("signal")
        axes.set_title(str(names[number]), fontsize=9)
        if number + columns < len(names):
            axes.set_xlabel("")
        else:
            axes.tick_params(labelbottom=True)  # also above a place that stays empty
        if number % columns:
            axes.set_ylabel("")
        _clean(axes)
    if is_image:
        _add_bar(figure, grid, chosen, logscale)
    return figure, grid


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise InputError('Pictures need matplotlib: pip install "barrow[ephys]".') from error
    return plt


def _choose(data: TrialData, selection: dict[str, Any]) -> Any:
    selection.setdefault("trials", 0)
    chosen = data.selectdata(**selection)
    if len(chosen.trials) != 1:
        raise InputError(f"trials={selection['trials']!r}: one trial is drawn at a time.")
    return chosen


def _clean(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def _draw_traces(axes: Any, data: Any) -> None:
    """Draw channels above each other, with their names at the side."""
    trial, times = data.trials[0], data.time[0]
    if trial.dtype.kind == "c":
        raise InputError("Complex signals cannot be drawn. Choose hilbert='abs' or 'angle'.")
    axes.set_xlabel("time (s)")
    if trial.shape[1] == 1:
        axes.plot(times, trial[:, 0], color=COLOURS[0], lw=0.9)
        axes.set_ylabel(str(data.channel[0]))
        return
    centred = trial - np.nanmean(trial, axis=0)
    # The range of most samples: a single spike must not flatten all other traces.
    spread = np.nanpercentile(centred, [0.5, 99.5], axis=0)
    shift = 1.2 * float(np.nanmax(spread[1] - spread[0])) or 1.0
    places = -shift * np.arange(trial.shape[1])
    axes.plot(times, centred + places, color="#333333", lw=0.7)
    skip = int(np.ceil(trial.shape[1] * INCHES_EACH / MOST_INCHES))
    axes.set_yticks(places[::skip], [str(name) for name in data.channel[::skip]])
    axes.set_ylim(places[-1] - 0.8 * shift, 0.8 * shift)
    axes.set_xlim(times[0], times[-1])
    _draw_scale(axes, shift)


def _draw_scale(axes: Any, shift: float) -> None:
    """Draw a bar of a round length at the right: what the traces mean."""
    length = float(f"{shift / 2:.0e}")
    place = axes.get_yaxis_transform()
    style = {"color": "#333333", "lw": 2, "clip_on": False}
    axes.vlines(1.02, -length / 2, length / 2, transform=place, **style)
    axes.text(1.035, 0, f"{length:g}", transform=place, va="center", fontsize=8)


def _draw_spectra(axes: Any, data: SpectralData, logscale: bool, legend: bool = True) -> None:
    values, label = _scale(data, data.trials[0][0].mean(axis=0), logscale)
    count = values.shape[1]
    for number in range(count):
        colour = COLOURS[number % len(COLOURS)] if count <= MOST_LINES else "#0072B2"
        alpha = 0.9 if count <= MOST_LINES else 0.3
        name = str(data.channel[number])
        axes.plot(data.freq, values[:, number], color=colour, alpha=alpha, lw=1.2, label=name)
    if legend and 1 < count <= MOST_LINES:
        axes.legend(frameon=False, fontsize=8, ncols=2)
    axes.set_xlabel("frequency (Hz)")
    axes.set_ylabel(label)


def _scale(data: SpectralData, values: np.ndarray, logscale: bool) -> tuple[np.ndarray, str]:
    output = data.cfg.get("freqanalysis", {}).get("output", "pow")
    if values.dtype.kind == "c":
        raise InputError("Complex spectra cannot be drawn. Choose output='abs' or 'angle'.")
    if output == "pow" and logscale:
        with np.errstate(divide="ignore"):
            found = 10 * np.log10(values)
        # A mean that was taken out leaves nothing at 0 Hz: it would set the scale.
        return np.where(np.isfinite(found), found, np.nan), "power (dB)"
    return values, {"pow": "power", "abs": "amplitude", "angle": "phase (rad)"}.get(output, output)


def _limits(data: SpectralData, logscale: bool) -> tuple[float, float]:
    values, _ = _scale(data, data.trials[0].mean(axis=1), logscale)
    low, high = np.nanpercentile(values, [1, 99.5])
    return float(low), float(high)


def _add_bar(figure: Any, axes: Any, data: SpectralData, logscale: bool) -> None:
    """Say once which colour means what: all panels share their limits."""
    _, label = _scale(data, data.trials[0][:1, 0], logscale)
    first = axes.flat[0] if isinstance(axes, np.ndarray) else axes
    figure.colorbar(first.collections[0], ax=axes, label=label)


def _draw_image(
    axes: Any, data: SpectralData, channel: int, logscale: bool, limits: tuple[float, float]
) -> None:
    if len(data.channel) > 1:
        raise InputError(
            f"An image shows one channel, but {len(data.channel)} are selected. Choose one, or use "
            "multipanelplot()."
        )
    values, _ = _scale(data, data.trials[0].mean(axis=1)[..., channel], logscale)
    low, high = limits
    times = data.time[0]
    image = axes.pcolormesh(
        times, data.freq, values.T, vmin=low, vmax=high, cmap="viridis", shading="nearest"
    )
    image.set_rasterized(True)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("frequency (Hz)")


def _draw_pairs(axes: Any, data: CrossSpectralData) -> None:
    settings = data.cfg.get("connectivityanalysis", {})
    method = settings.get("method", "")
    trial = data.trials[0]
    if trial.dtype.kind == "c":
        raise InputError("Complex values cannot be drawn. Choose output='abs' or 'angle'.")
    is_lag = method == "corr"
    x = np.arange(len(trial)) / data.samplerate if is_lag else data.freq
    values = trial[:, 0] if is_lag else trial[0]
    number = 0
    for i, sender in enumerate(data.channel_i):
        for j, receiver in enumerate(data.channel_j):
            is_twice = (
                method != "granger"
                and not is_lag
                and str(receiver) in map(str, data.channel_i[: i + 1])
            )
            if str(sender) == str(receiver) or is_twice:
                continue
            if number == MOST_LINES:
                raise InputError(
                    f"More than {MOST_LINES} pairs cannot be told apart. Choose some: "
                    "singlepanelplot(channel_i=0, channel_j=[1, 2])."
                )
            arrow = "→" if method == "granger" else "–"
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(
                x, values[:, i, j], color=colour, lw=1.2, label=f"{sender} {arrow} {receiver}"
            )
            number += 1
    axes.set_xlabel("lag (s)" if is_lag else "frequency (Hz)")
    names = {"coh": "coherence", "ppc": "phase consistency", "corr": "correlation"}
    axes.set_ylabel({**names, "granger": "Granger causality"}.get(method, method))
    if number:
        axes.legend(frameon=False, fontsize=8)
