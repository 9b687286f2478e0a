"""``barrow miniscope``, as it is typed."""

import json

import numpy as np
from click.testing import CliRunner

from barrow.cli.main import main
from barrow.fields.miniscope import simulate, write_video


def test_a_folder_of_videos_becomes_cells_and_pictures(tmp_path):
    movie, _ = simulate(frames=200, height=64, width=64, cells=2, seed=1, motion=1.0)
    videos = tmp_path / "videos"
    videos.mkdir()
    write_video(movie, videos / "msCam1.avi")
    (tmp_path / "params.json").write_text(json.dumps({"denoise": {"ksize": 5}}))
    words = ["miniscope", "run", str(videos), "-o", str(tmp_path / "out"), "--pictures"]
    found = CliRunner().invoke(main, [*words, "--params", str(tmp_path / "params.json")])
    assert found.exit_code == 0, found.output
    assert "2 cells, 200 frames" in found.output
    page = (tmp_path / "out" / "summary.html").read_text()
    assert page.count("data:image/png;base64,") == 3


def test_a_folder_without_videos_is_one_sentence(tmp_path):
    found = CliRunner().invoke(main, ["miniscope", "run", str(tmp_path), "-o", str(tmp_path)])
    assert found.exit_code == 1
    assert "holds no video" in found.output
    assert "Traceback" not in found.output


def test_the_parameters_are_printed_as_they_are_read():
    found = CliRunner().invoke(main, ["miniscope", "params"])
    assert json.loads(found.output)["denoise"]["ksize"] == 7
    assert np.isclose(json.loads(found.output)["get_noise"]["noise_range"][0], 0.06)
