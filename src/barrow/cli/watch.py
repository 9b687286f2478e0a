"""``barrow watch``: run any Dask program and keep a record of what happened."""

import os
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

import click


@click.command(
    "watch",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--folder", type=click.Path(), help="Where to keep the record; a new folder.")
@click.option(
    "--python",
    metavar="PATH",
    help="Interpreter of another environment, in which the program runs; barrow need not be there.",
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def command(folder: str | None, python: str | None, program: tuple[str, ...]) -> None:
    """Run a Dask program as it is and record what happens.

    PROGRAM is a Python script and its arguments, or -m, a module and its arguments. Its output
    and its exit status are its own; what cannot wait and what is said at the end goes to standard
    error.
    """
    from barrow.explaining import write_safely
    from barrow.observing import attend
    from barrow.recording.watching import Watched, summarise, watch_command

    if not program or program == ("-m",):
        raise click.UsageError("Name a script, or a module with -m.")
    if program[0] != "-m" and not Path(program[0]).exists():
        raise click.UsageError(f"There is no file {program[0]!r}.")
    if folder is None:
        name = program[1].replace(".", "-") if program[0] == "-m" else Path(program[0]).stem
        folder = f"barrow-{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    interpreter = sys.executable if python is None else shutil.which(python)
    if interpreter is None:
        raise click.UsageError(f"There is no program {python!r} that could be run.")
    doctor = partial(attend, Path(folder))
    code = watch_command(program, folder, write_safely, python=interpreter, attend=doctor)
    click.echo(summarise(Watched(Path(folder))), err=True)
    if code < 0:
        # Whoever started us sees the signal that the program saw.
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    raise SystemExit(code if code >= 0 else 128 - code)
