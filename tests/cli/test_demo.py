"""``barrow demo``: what it shows is true."""

import json

import xarray


def test_the_demo_checks_itself_and_removes_all_it_made(run_barrow, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = run_barrow("demo", "--side", 300)
    assert "bit for bit" in done.stdout
    assert done.stdout.count("Checked:") == 2
    assert "NOT TRUE" not in done.stdout
    assert done.stderr == ""
    assert not list(tmp_path.glob("barrow-demo-*"))


def test_the_demo_keeps_what_it_made_when_asked(run_barrow, tmp_path):
    run_barrow("demo", "--side", 300, "--keep", tmp_path / "kept")
    result = xarray.open_zarr(tmp_path / "kept" / "enhanced.zarr", consolidated=False)
    assert result["image"].dims == ("c", "y", "x")
    folder = tmp_path / "kept" / "enhanced.zarr" / ".barrow"
    assert json.loads((folder / "metrics.json").read_text())["chunks"] > 0
    done = run_barrow("demo", "--side", 300, "--keep", tmp_path / "kept", status=1)
    assert "is not empty" in done.stderr


def test_the_filter_of_the_demo_looks_no_further_than_its_halo():
    import numpy as np

    from barrow.cli.specimen import HALO, enhance

    image = np.zeros((1, 40, 40), "u2")
    image[0, 20, 20] = 1000
    touched = np.nonzero(enhance(image)[0])
    assert max(np.abs(axis - 20).max() for axis in touched) == HALO
