"""What is installed is whole: templates and types are in the wheel, tests are not."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import barrow

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the source distribution, made without a network by the build backend itself."""
    folder = tmp_path_factory.mktemp("dist")
    code = (
        "import sys; from hatchling import build; "
        "build.build_wheel(sys.argv[1]); build.build_sdist(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, check=True)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    package = ROOT / "src"
    ours = {
        str(path.relative_to(package))
        for path in (package / "barrow").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours <= names
    assert {"barrow/py.typed", "barrow/reporting/page.html", "barrow/reporting/page.css"} <= ours
    info = f"barrow-{barrow.__version__}.dist-info/"
    assert not [name for name in names - ours if not name.startswith(info)]
    assert f"{info}licenses/LICENSE" in names


def test_the_source_distribution_can_be_tested_and_documented(built):
    with tarfile.open(built[1]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    for name in ("LICENSE", "CITATION.cff", "Makefile", "docs/index.md", "tests/test_map.py"):
        assert name in names


def test_the_versions_agree():
    assert barrow.__version__ == PROJECT["version"] == version("barrow")
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {barrow.__version__}" in citation


def test_each_science_has_an_extra_and_the_command_an_entry():
    assert {"collider", "ephys", "miniscope", "slurm", "spatial"} <= set(
        PROJECT["optional-dependencies"]
    )
    assert PROJECT["scripts"] == {"barrow": "barrow.cli.main:main"}
