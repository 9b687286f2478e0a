"""Environments of their own for the peers: their requirements conflict with each other's.

    python -m benchmarks.peers.environments [NAME ...]

Each is made once, in build/peers/NAME, with the Python that the peer needs.
"""

import shutil
import subprocess
import sys
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
    python = shutil.which(f"python{peer.python}") if peer.python else sys.executable
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


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PEERS:
        print(chosen, make_environment(chosen))
