"""What can be opened, and what is said of the rest."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import barrow
from barrow.errors import InputError
from barrow.sources.opening import open_source


def test_importing_the_sources_imports_no_format():
    code = (
        f"import sys; sys.path.insert(0, {str(Path(barrow.__file__).parents[1])!r})\n"
        "import barrow.sources.opening, barrow.sources.memory, barrow.sources.mapped\n"
        "import barrow.sources.dask_arrays, barrow.sources.labelled, barrow.sources.zarr_arrays\n"
        "import barrow.sources.hdf5, barrow.sources.tiff\n"
        "print({'dask', 'xarray', 'zarr', 'h5py', 'tifffile', 'pandas'} & set(sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.strip() == "set()", answer.stderr


def test_a_source_is_returned_as_it_is():
    source = open_source(np.zeros((2, 3)), dims=("y", "x"))
    assert open_source(source) is source
    assert open_source(source, dims=("y", "x")) is source
    with pytest.raises(InputError, match="rename the data first"):
        open_source(source, dims=("a", "b"))


@pytest.mark.parametrize("data", [[1, 2], (1, 2), 3, 2.5, True, np.float32(1)])
def test_lists_and_numbers_are_told_to_become_arrays(data):
    with pytest.raises(InputError, match=r"is not an array. Convert it: np\.asarray\(data\)"):
        open_source(data)


@pytest.mark.parametrize("data", [None, {"a": 1}, object(), memoryview(b"abc"), range(3)])
def test_anything_else_is_told_what_can_be_opened(data):
    with pytest.raises(InputError, match=rf"{type(data).__name__}.* cannot be opened.*TIFF"):
        open_source(data)


def test_arraylike_objects_are_told_how_to_become_arrays():
    class Table:
        def __array__(self):
            return np.zeros(3)

    with pytest.raises(InputError, match=r"Table.*np\.asarray\(data\)"):
        open_source(Table())


def test_a_missing_file_is_named_with_its_neighbours(tmp_path):
    (tmp_path / "frames.npy").touch()
    with pytest.raises(InputError, match=r"frame\.npy' does not exist.* holds 'frames\.npy'"):
        open_source(tmp_path / "frame.npy")


def test_a_missing_folder_is_named_by_how_far_the_path_goes(tmp_path):
    with pytest.raises(InputError, match=f"last folder on the way that does is '{tmp_path}'"):
        open_source(str(tmp_path / "run" / "day" / "data.h5"))


def test_files_and_folders_of_other_formats_are_refused(tmp_path):
    (tmp_path / "table.npy").write_text("name,age\n")
    with pytest.raises(InputError, match=r"table\.npy' is of another format"):
        open_source(tmp_path / "table.npy")
    with pytest.raises(InputError, match="a folder that is no Zarr"):
        open_source(tmp_path)


def test_the_contents_decide_the_format_and_not_the_name(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    path = (tmp_path / "a.npy").rename(tmp_path / "a.tif")
    assert open_source(path).read(((1, 3),)).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        (("y",), r"has 1 names, but the data have 2 dimensions, of lengths \(2, 3\)"),
        ("y", "has 1 names"),
        (("y", "y"), "each dimension its own name"),
        (("y", 3), "use text"),
        (("y", ""), "use text"),
    ],
)
def test_wrong_names_of_dimensions_are_refused(dims, message):
    with pytest.raises(InputError, match=message):
        open_source(np.zeros((2, 3)), dims=dims)


def test_dimensions_without_names_are_numbered():
    source = open_source(np.zeros((2, 3)))
    assert source.dims == ("dim_0", "dim_1")
    assert not source.has_names
    assert open_source(np.zeros((2, 3)), dims=["y", "x"]).has_names


def test_a_single_array_is_called_by_the_name_it_is_given():
    assert open_source(np.zeros(3)).name == "array"
    assert open_source(np.zeros(3), name="speed").name == "speed"
