"""An identity changes when the data do, and only then."""

import os

import numpy as np
import pytest

from barrow.sources.identity import identify_array, identify_file, identify_folder


def test_an_array_is_known_by_every_value(make_array, dtype):
    array = make_array((30, 20), dtype)
    other = array.copy()
    other[17, 3] = make_array((30, 20), dtype, seed=1)[0, 0]
    assert identify_array(array) == identify_array(array.copy())
    if other.tobytes() != array.tobytes():
        assert identify_array(array) != identify_array(other)


def test_an_array_is_known_by_shape_and_dtype():
    array = np.zeros(6, "i4")
    others = [array.reshape(2, 3), array.astype("u4"), array.astype(">i4"), array[:5]]
    assert identify_array(array) not in map(identify_array, others)


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[::-1, 3:], np.s_[:, 4], np.s_[:0]])
def test_views_have_the_identity_of_their_copies(view):
    array = np.arange(200_000).reshape(400, 500)[view]
    assert identify_array(array) == identify_array(array.copy())
    assert identify_array(array.T) == identify_array(array.T.copy())


def test_an_array_without_dimensions_has_an_identity():
    assert identify_array(np.array(1.0)) != identify_array(np.array(2.0))


def test_python_objects_have_no_identity():
    assert identify_array(np.array([{}], object)) is None


def test_a_file_is_known_by_size_and_time(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    first = identify_file(str(path))
    assert identify_file(str(path)) == first
    os.utime(path, ns=(1, 1))
    assert identify_file(str(path)) != first
    assert identify_file(str(tmp_path / "b")) is None


def test_a_folder_is_known_by_its_files(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "0").write_bytes(b"abc")
    first = identify_folder(str(tmp_path))
    assert identify_folder(str(tmp_path)) == first
    (tmp_path / "deep" / "1").write_bytes(b"")
    second = identify_folder(str(tmp_path))
    assert second != first
    os.utime(tmp_path / "deep" / "0", ns=(2**62, 2**62))
    assert identify_folder(str(tmp_path)) != second


def test_a_folder_of_too_many_files_has_no_identity(tmp_path):
    for number in range(4):
        (tmp_path / str(number)).touch()
    assert identify_folder(str(tmp_path), most_files=4) is not None
    assert identify_folder(str(tmp_path), most_files=3) is None
