"""Environments of their own for the peers: their requirements conflict with each other's.

    python -m benchmarks.peers.environments [NAME ...]

Each is made once, in build/peers/NAME, with the Python that the peer needs.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "peers"


@dataclass(frozen=True)
class Peer:
    """What to install, into which Python; and whether barrow is wanted beside it."""

    packages: tuple[str, ...]
    python: str = ""
    """Such as 3.11; empty for the one that runs this."""
    with_barrow: str = ""
    """The extra of barrow that is installed as well; empty for none."""
    then: tuple[str, ...] = ()
    """Other versions of what the packages have brought along."""


PEERS = {
    "syncopy": Peer(("esi-syncopy", "pytz", "scipy<1.16"), python="3.11"),
    "coffea": Peer(("coffea", "hist", "uproot", "numba", "psutil", "distributed")),
    "spatialdata": Peer(("spatialdata", "psutil"), python="3.12", with_barrow="spatial"),
    # With a newer xarray MiniAn fails at its first save.
    "minian": Peer(
        ("minian[test]", "minisim", "psutil"), python="3.12", then=("xarray==2026.4.0",)
    ),
}


def make_environment(name: str, is_wanted: bool = True) -> Path | None:
    """Return the folder of a peer's environment; None if it is not there and cannot be made."""
    folder = FOLDER / name
    done = folder / "complete"
    if done.exists():
        return folder
    peer = PEERS[name]
    python = find_python(peer.python) if peer.python else sys.executable
    if not is_wanted or python is None:
        print(f"{name} is left out: {'no environment' if python else f'no Python {peer.python}'}")
        return None
    packages = [*peer.packages, *([f"{ROOT}[{peer.with_barrow}]"] if peer.with_barrow else [])]
    pip = [str(folder / "bin" / "python"), "-m", "pip", "-q", "--disable-pip-version-check"]
    try:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        for wanted in (packages, peer.then):
            if wanted:
                subprocess.run([*pip, "install", *wanted], check=True)
    except subprocess.CalledProcessError as error:
        print(f"{name} is left out: it cannot be installed here ({error}).")
        return None
    done.touch()
    return folder


def find_python(version: str) -> str | None:
    """Return the first Python of a version that really starts; None if there is none."""
    for path in _list_pythons(f"python{version}"):
        try:
            # A shim of pyenv is there, and fails, for versions that are not switched on.
            subprocess.run([path, "--version"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return path
    return None


def _list_pythons(name: str) -> Iterator[str]:
    for folder in os.get_exec_path():
        yield os.path.join(folder, name)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted((pyenv / "versions").glob(f"*/bin/{name}")))


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PEERS:
        print(chosen, make_environment(chosen))
