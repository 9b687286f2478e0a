"""Every Python block of the README and the docs, and every example, runs."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import xarray

import barrow

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = "# not run\n"


def find_blocks(page):
    """Return the blocks of a page, each on the lines on which it stands there."""
    text = page.read_text()
    return [
        "\n" * text.count("\n", 0, found.start(1)) + found[1]
        for found in BLOCK.finditer(text)
        if not found[1].startswith(NOT_RUN)
    ]


def denoise(image):
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(image, sigma=(0, 4, 4))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the small image that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(0).integers(0, 4095, (3, 96, 128), "u2")
    image = xarray.DataArray(values, dims=("c", "y", "x"), attrs={"unit": "photons"})
    image.to_dataset(name="image").to_zarr("slide.zarr", zarr_format=2)
    return tmp_path


@pytest.mark.parametrize(
    "page", [page for page in PAGES if find_blocks(page)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_the_examples_of_a_page_run(page, folder):
    # As at a prompt: names last to the end of the page.
    names = {"__name__": "__main__", "barrow": barrow, "np": np, "xarray": xarray}
    if page.name == "README.md":
        names["denoise"] = denoise
    for block in find_blocks(page):
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(example, folder):
    runpy.run_path(str(example), run_name="__main__")


def test_every_link_to_a_file_leads_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page} links to {link}"
