"""How long does it take a newcomer of each science from a clone to a picture of a result?

A fresh clone, a fresh environment, the line that the tutorial gives for installing, and then the
code of the tutorial from top to bottom: nothing that does not stand there. Installing depends on
the network; what pip has downloaded before is used again, unless --no-cache.
"""

import argparse
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import describe_machine, write_json

ROOT = Path(__file__).parents[1]
MAKING = runpy.run_path(str(ROOT / "docs" / "notebooks" / "make.py"))
INSTALL = re.compile(r"`pip install (\"[^`]+\")`")
LIMIT_SECONDS = 600


def take(name: str, folder: Path, options: list[str]) -> dict[str, float]:
    """Return the seconds of each part of the way, and how many pictures stand at its end."""
    laps: dict[str, float] = {}

    def lap(what: str, command: list[str], where: Path) -> None:
        began = time.perf_counter()
        subprocess.run(command, cwd=where, check=True, stdout=subprocess.DEVNULL)
        laps[f"{what}_seconds"] = time.perf_counter() - began

    checkout, work = folder / "barrow", folder / "work"
    work.mkdir()
    lap("clone", ["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(checkout)], folder)
    page = (checkout / "docs" / "tutorial" / f"{name}.md").read_text()
    wanted = INSTALL.search(page)
    assert wanted is not None, f"The tutorial of {name} does not say how to install."
    python = folder / "env" / "bin" / "python"
    lap("environment", [sys.executable, "-m", "venv", str(folder / "env")], folder)
    pip = [str(python), "-m", "pip", "install", "--quiet", *options]
    lap("install", [*pip, wanted[1].strip('"')], checkout)
    (work / "tutorial.py").write_text("\n".join(list_code(page)))
    lap("tutorial", [str(python), "tutorial.py"], work)
    return {"wall": sum(laps.values()), **laps, "pictures": len(list(work.glob("*.png")))}


def list_code(page: str) -> list[str]:
    """Return the blocks of a page that are meant to be run."""
    found = MAKING["BLOCK"].findall(page)
    return [text for kind, text in found if kind == "python" and MAKING["NOT_RUN"] not in text]


def main() -> None:
    """Go all ways, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=MAKING["NAMES"], metavar="NAME")
    parser.add_argument("--no-cache", action="store_true", help="download everything anew")
    given = parser.parse_args()
    os.environ["MPLBACKEND"] = "Agg"
    rows = {}
    for name in given.names:
        with tempfile.TemporaryDirectory(prefix="barrow-newcomer-") as folder:
            options = ["--no-cache-dir"] if given.no_cache else []
            rows[name] = take(name, Path(folder), options)
        said = "within" if rows[name]["wall"] <= LIMIT_SECONDS else "NOT within"
        print(f"{name}: {rows[name]['wall']:.0f} s, {said} ten minutes: {rows[name]}", flush=True)
    if set(given.names) == set(MAKING["NAMES"]):
        write_json("newcomer", {"question": __doc__, **describe_machine(), "runs": rows})


if __name__ == "__main__":
    main()
