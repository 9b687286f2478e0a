"""Movies of all kinds: the right frames, or one clear sentence."""

import numpy as np
import pytest
import tifffile
import zarr

from barrow import miniscope
from barrow.errors import InputError
from barrow.fields.miniscope.videos import write_frames

MOVIE = np.random.default_rng(0).integers(0, 255, (25, 32, 48), "u1")


def write(path, frames, codec="ffv1"):
    return write_frames(path, frames, fps=20, codec=codec)


def read(source):
    return source.read(source.everything)


@pytest.fixture
def folder(tmp_path):
    for number, start in enumerate(range(0, 25, 2), start=1):
        write(tmp_path / f"msCam{number}.avi", MOVIE[start : start + 2])
    return tmp_path


def test_videos_of_a_folder_come_in_the_order_in_which_people_count(folder):
    movie = miniscope.load_videos(folder)
    assert movie.lengths == {"frame": 25, "height": 32, "width": 48}
    np.testing.assert_array_equal(read(movie), MOVIE)


def test_any_range_of_frames_and_pixels_is_read(folder):
    movie = miniscope.load_videos(folder)
    for first, last in ((3, 11), (24, 25), (0, 1), (10, 20)):
        part = movie.read(((first, last), (5, 20), (7, 9)))
        np.testing.assert_array_equal(part, MOVIE[first:last, 5:20, 7:9])


def test_a_video_with_few_places_to_enter_is_read_from_anywhere(tmp_path):
    steady = np.repeat(np.arange(0, 250, 10, dtype="u1"), 32 * 48).reshape(25, 32, 48)
    movie = miniscope.load_videos(write(tmp_path / "one.mp4", steady, codec="mpeg4"))
    assert movie.shape == steady.shape
    part = movie.read(((13, 17), (0, 32), (0, 48)))
    np.testing.assert_allclose(part.mean(axis=(1, 2)), read(movie)[13:17].mean(axis=(1, 2)))
    assert (np.diff(part.mean(axis=(1, 2))) > 5).all()


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("a.avi", "ffv1"),
        ("a.avi", "mpeg4"),
        ("a.mkv", "ffv1"),
        ("a.mp4", "mpeg4"),
        ("a.mp4", "h264"),
    ],
)
def test_frames_may_be_wanted_in_any_order(tmp_path, name, codec):
    ramp = np.arange(0, 240, 8, dtype="u1")[:, None, None] + np.arange(8, dtype="u1")[:, None]
    movie = miniscope.load_videos(
        write(tmp_path / name, np.tile(ramp, (1, 4, 48))[:, :32], codec=codec)
    )
    whole = read(movie)
    assert len(np.unique(whole.mean(axis=(1, 2)).round())) == len(whole) == 30
    for first, last in ((20, 21), (3, 5), (3, 4), (29, 30), (0, 1), (1, 2), (28, 30), (0, 30)):
        found = movie.read(((first, last), (0, 32), (0, 48)))
        np.testing.assert_array_equal(found, whole[first:last])


def test_stacks_and_arrays_are_movies_too(tmp_path):
    (tmp_path / "tiffs").mkdir()
    tifffile.imwrite(tmp_path / "tiffs" / "m2.tif", MOVIE[:10])
    tifffile.imwrite(tmp_path / "tiffs" / "m10.tif", MOVIE[10:])
    np.save(tmp_path / "movie.npy", MOVIE)
    zarr.save_array(str(tmp_path / "movie.zarr"), MOVIE)
    for place in ("tiffs", "movie.npy", "movie.zarr"):
        np.testing.assert_array_equal(read(miniscope.load_videos(tmp_path / place)), MOVIE)


def test_a_part_and_every_second_of_it():
    part = {"frame": slice(4, 20), "height": slice(2, 30)}
    found = miniscope.load_videos(MOVIE, subset=part, downsample={"frame": 2, "width": 4})
    np.testing.assert_array_equal(read(found), MOVIE[4:20:2, 2:30, ::4])
    found = miniscope.load_videos(
        MOVIE, downsample={"height": 2, "width": 2}, downsample_strategy="mean"
    )
    wanted = MOVIE.reshape(25, 16, 2, 24, 2).mean(axis=(2, 4))
    np.testing.assert_allclose(read(found), wanted, atol=0.5)


def test_a_video_of_another_size_is_named(folder):
    write(folder / "msCam14.avi", MOVIE[:2, :16])
    with pytest.raises(InputError, match=r"msCam14\.avi has frames of 16 × 48"):
        miniscope.load_videos(folder)


def test_a_stack_of_another_dtype_is_named(tmp_path):
    tifffile.imwrite(tmp_path / "a1.tif", MOVIE[:4], photometric="minisblack")
    tifffile.imwrite(tmp_path / "a2.tif", MOVIE[:4].astype("u2"), photometric="minisblack")
    with pytest.raises(InputError, match=r"a2\.tif is 4 × 32 × 48 uint16"):
        miniscope.load_videos(tmp_path)


@pytest.mark.parametrize("kept", [0.6, 0.01])
def test_a_video_that_was_cut_off_is_named(tmp_path, kept):
    path = write(tmp_path / "cut.avi", MOVIE)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(InputError, match=r"cut\.avi"):
        miniscope.load_videos(path)


def test_a_folder_without_videos_says_what_was_looked_for(tmp_path):
    with pytest.raises(InputError, match=r"holds no video or TIFF stack.*\.avi"):
        miniscope.load_videos(tmp_path)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"denois": {}}, "no step"),
        ({"denoise": {"ksize": 4}}, "odd number"),
        ({"first_temporal": {"q": 1}}, "has no 'q'"),
        ({"pnr_refine": {"noise_freq": 3}}, "below 0.5"),
        ({"seeds_init": {"method": "random"}}, "Use 'rolling'"),
    ],
)
def test_a_wrong_parameter_is_named(params, message, tmp_path):
    with pytest.raises(InputError, match=message):
        miniscope.run(MOVIE, to=tmp_path, params=params, quiet=True, cluster=False)
