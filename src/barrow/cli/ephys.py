"""``barrow ephys``: spectra and filters of recordings in files."""

from pathlib import Path
from typing import Any

import click

from barrow.cli.options import memory_option


@click.group("ephys")
def command() -> None:
    """Spectra and filters of recordings: trials × time × channel.

    FILE is a .spy container or a file of one, an NWB file, a Zarr store made by
    barrow.ephys, or path::dataset of an HDF5 file, .npy or Zarr array.
    """


def _shared(function: Any) -> Any:
    for add in reversed(
        (
            click.argument("file", metavar="FILE"),
            click.option(
                "--to", type=click.Path(), required=True, help="Zarr store for the result."
            ),
            click.option("--samplerate", type=float, help="In Hz, if the file does not say."),
            click.option("--trial-seconds", type=float, help="Cut samples into trials so long."),
            click.option("--channel", multiple=True, help="A channel by its name; repeat."),
            memory_option,
            click.option("--quiet", is_flag=True, help="Print nothing."),
        )
    ):
        function = add(function)
    return function


@command.command("spectra")
@_shared
@click.option("--method", default="mtmfft", show_default=True)
@click.option("--output", default="pow", show_default=True)
@click.option("--foilim", type=(float, float), help="Lowest and highest frequency in Hz.")
@click.option("--tapsmofrq", type=float, help="Half the bandwidth of multitapering, in Hz.")
@click.option("--t-ftimwin", type=float, help="Length of a sliding window, in seconds.")
@click.option("--toi", type=float, help="Overlap of sliding windows, from 0 to 1.")
@click.option("--plot", type=click.Path(), help="Draw the average over trials into this file.")
def spectra(plot: str | None, **options: Any) -> None:
    """Compute spectra of all trials and channels."""
    from barrow.fields.ephys.calls.freqanalysis import freqanalysis

    found = _run(freqanalysis, options)
    if plot is not None:
        figure, _ = found.average().singlepanelplot()
        figure.savefig(plot, dpi=150)
        click.echo(f"Picture in {plot}")


@command.command("filter")
@_shared
@click.option("--filter-class", default="but", type=click.Choice(("but", "firws")))
@click.option("--filter-type", default="bp", type=click.Choice(("lp", "hp", "bp", "bs")))
@click.option("--freq", type=float, multiple=True, required=True, help="In Hz; twice for a band.")
@click.option("--order", type=int, help="Order of the filter.")
@click.option("--direction", help="twopass, onepass or onepass-minphase.")
def filter_(**options: Any) -> None:
    """Filter all trials and channels."""
    from barrow.fields.ephys.calls.preprocessing import preprocessing

    options["freq"] = list(options["freq"]) if len(options["freq"]) > 1 else options["freq"][0]
    _run(preprocessing, options)


def _run(call: Any, options: dict[str, Any]) -> Any:
    names = ("file", "samplerate", "trial_seconds", "channel")
    file, samplerate, seconds, channel = (options.pop(name) for name in names)
    data = open_recording(file, samplerate, seconds)
    if channel:
        data = data.selectdata(channel=list(channel))
    given = {key: value for key, value in options.items() if value is not None}
    found = call(data, **given)
    if not given["quiet"]:
        click.echo(f"{data}\n{found}\nResult in {given['to']}")
    return found


def open_recording(file: str, samplerate: float | None, seconds: float | None) -> Any:
    """Return a file of any kind as a recording."""
    from barrow.errors import InputError
    from barrow.fields.ephys.exchanging import from_nwb
    from barrow.fields.ephys.files import SUFFIXES, load
    from barrow.fields.ephys.kinds import AnalogData

    path, _, name = file.partition("::")
    suffix = Path(path).suffix
    if suffix == ".nwb":
        data = from_nwb(path, name or None)
    elif samplerate is None or suffix == ".spy" or suffix in SUFFIXES:
        data = load(path, tag=name or None)
        if isinstance(data, dict):
            raise InputError(f"{path} holds {', '.join(data)}. Choose one: {path}::tag.")
    else:
        data = AnalogData(path, samplerate, name=name or None)
    if not isinstance(data, AnalogData):
        raise InputError(f"{path} holds {type(data).__name__}, not a recording.")
    if seconds is not None:
        length = int(seconds * data.samplerate)
        total = int(data.lengths.sum())
        if not 0 < length <= total:
            raise InputError(f"--trial-seconds {seconds:g}: there are {total} samples.")
        rows = range(0, total - length + 1, length)
        data.trialdefinition = [[row, row + length, 0] for row in rows]
    return data
