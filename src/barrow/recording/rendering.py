"""How the live page is made: by a process of its own, which is no part of the program."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import barrow
from barrow.recording.processes import NOT_OURS
from barrow.recording.sending import PAGE_FILE


def tell_command(folder: Path) -> list[str]:
    """Return the command that prints the page of a record; "page" or "part" is to be added.

    It needs neither this environment's variables nor this working folder.
    """
    source = str(Path(barrow.__file__).parent.parent)
    begin = f"import sys; sys.path.insert(0, {source!r})"
    program = f"{begin}; from barrow.live import main; main(sys.argv[2:])"
    return [sys.executable, "-I", "-c", program, NOT_OURS.decode(), str(folder.absolute())]


def write_command(place: str, command: Sequence[str]) -> None:
    """Keep it where every process of a watched program finds it."""
    (Path(place) / PAGE_FILE).write_text(json.dumps(list(command)))
