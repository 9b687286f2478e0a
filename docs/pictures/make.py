"""Make the pictures of the tutorials: run their code, and keep what it saves.

    python docs/pictures/make.py [NAME ...]

The picture ``images/ephys-power.png`` of a page is what the code of ``ephys.md`` saves as
``power.png``. So a picture shows what its code draws, and nothing is drawn by hand.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TUTORIALS = Path(__file__).parent.parent / "tutorial"
NAMES = ("collider", "ephys", "miniscope", "spatial")
CODE = re.compile(r"^```python\n(?!# not run\n)(.*?)^```\n", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[.*?\]\(images/(.*?)\)$", re.MULTILINE)


def draw(name: str) -> list[str]:
    """Run the code of a tutorial in an empty folder, and return the pictures that it made."""
    page = (TUTORIALS / f"{name}.md").read_text()
    pictures = PICTURE.findall(page)
    with tempfile.TemporaryDirectory(prefix="barrow-pictures-") as folder:
        script = Path(folder) / "tutorial.py"
        script.write_text("\n".join(CODE.findall(page)))
        subprocess.run(
            [sys.executable, script.name],
            cwd=folder,
            env={**os.environ, "MPLBACKEND": "Agg"},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        for picture in pictures:
            saved = Path(folder) / picture.removeprefix(f"{name}-")
            shutil.copyfile(saved, TUTORIALS / "images" / picture)
    return pictures


def main() -> None:
    """Draw the pictures of all tutorials, or of some."""
    for name in sys.argv[1:] or NAMES:
        print(f"{name}: {', '.join(draw(name))}")


if __name__ == "__main__":
    main()
