"""Examples at the end of the help of each command: lines that can be pasted.

They stand here together, so that one look shows whether commands are spelt alike.
"""

import click

EXAMPLES = {
    "demo": ("barrow demo", "barrow demo --keep demo"),
    "plan": (
        "barrow plan filters.py:denoise slide.zarr::image --halo y=16 --halo x=16",
        "barrow plan numpy:sqrt movie.npy --memory 4GB --json",
    ),
    "map": (
        "barrow map numpy:sqrt movie.npy --to root.zarr",
        "barrow map filters.py:denoise slide.zarr::image --halo y=16 --halo x=16 --to out.zarr",
        "barrow map filters.py:band session.h5::lfp --whole time --memory 4GB --to band.zarr",
        "barrow map filters.py:blur a.tif --kwargs '{\"sigma\": 2}' --workers 4 --to blur.zarr",
    ),
    "resume": ("barrow resume out.zarr", "barrow resume out.zarr --memory 2GB"),
    "watch": (
        "barrow watch script.py --its-own options",
        "barrow watch --folder run-7 -m package.module",
        "barrow watch --python ~/envs/coffea/bin/python analysis.py",
    ),
    "top": ("barrow top", "barrow top run-7 --once"),
    "report": ("barrow report out.zarr --open", "barrow report run-7 --json"),
    "compare": ("barrow compare one.zarr two.zarr --html differences.html",),
    "diagnose": ("barrow diagnose out.zarr", "barrow diagnose run-7 --json"),
    "doctor": ("barrow doctor",),
    "scaling": ("barrow scaling --workers 1,2,4,8 --save scaling.html analysis.py data.zarr",),
    "what-if": (
        "barrow what-if run-7 --workers 1,10,100 --memory 4GB",
        "barrow what-if out.zarr --disk 2 --times 100",
    ),
    "cluster": ("barrow cluster", "barrow cluster start --workers 4", "barrow cluster stop"),
    "cluster start": (
        "barrow cluster start --workers 4 --memory 4GB",
        "barrow cluster start slurm --jobs 10 --memory 4GB --walltime 2h",
    ),
    "cluster stop": ("barrow cluster stop", "barrow cluster stop --all"),
    "completion": (
        'eval "$(barrow completion bash)"',
        "barrow completion fish > ~/.config/fish/completions/barrow.fish",
    ),
    "ephys": ("barrow ephys spectra session.spy --foilim 2 100 --to power.zarr",),
    "ephys spectra": (
        "barrow ephys spectra session.spy --foilim 2 100 --tapsmofrq 4 --to power.zarr",
        "barrow ephys spectra session.spy --to power.zarr --plot power.png",
    ),
    "ephys filter": (
        "barrow ephys filter session.spy --freq 20 --freq 40 --to band.zarr",
        "barrow ephys filter session.h5::lfp --samplerate 1000 --trial-seconds 2 "
        "--filter-type hp --freq 1 --to high.zarr",
    ),
    "miniscope": ("barrow miniscope run videos -o cells",),
    "miniscope run": (
        "barrow miniscope run videos -o cells --pictures",
        "barrow miniscope run videos -o cells --params params.json --memory 4GB",
    ),
    "miniscope explore": ("barrow miniscope explore videos -o tried --frames 500",),
    "miniscope nwb": ("barrow miniscope nwb cells session.nwb --fps 20",),
    "miniscope film": ("barrow miniscope film cells videos -o film.mp4",),
    "miniscope params": ("barrow miniscope params > params.json",),
    "spatial": ("barrow spatial segment slide.ome.tif --to nuclei.ome.zarr",),
    "spatial map": ("barrow spatial map own.py:smooth slide.ome.tif --depth 8 --to out.ome.zarr",),
    "spatial segment": (
        "barrow spatial segment slide.ome.tif --channel DAPI --diameter 20 "
        "--to nuclei.ome.zarr --table nuclei.csv",
    ),
    "spatial pyramid": ("barrow spatial pyramid slide.ome.tif --to slide.ome.zarr",),
    "collider": ("barrow collider run dimuon.py:Dimuon fileset.json -o out.pkl",),
    "collider run": (
        "barrow collider run dimuon.py:Dimuon fileset.json -o out.pkl",
        "barrow collider run dimuon.py:Dimuon 'data/*.root' -o out.pkl --on-error skip",
    ),
    "collider make": ("barrow collider make events.root 100000",),
}
"""By command, without ``barrow``."""


def add_examples(command: click.Command, path: str) -> None:
    """Show examples below the help of a command, and of all commands below it."""
    if path in EXAMPLES:
        lines = "\n".join(f"  {example}" for example in EXAMPLES[path])
        # \b keeps click from joining the lines.
        command.epilog = f"\b\nExamples:\n{lines}"
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            add_examples(below, f"{path} {name}")
