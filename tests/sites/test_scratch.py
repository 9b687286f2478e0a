import os
import time

from barrow.sites import scratch
from barrow.sites.scratch import Scratch, remove_abandoned


def test_a_folder_in_use_stays_and_an_abandoned_one_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    used, left, young = Scratch.create(), Scratch.create(), Scratch.create()
    (left.path / "spilled").write_bytes(b"x")
    # What remains of a killed process: the folder without the lock.
    os.close(left._lock)
    os.close(young._lock)
    an_hour_ago = time.time() - 3600
    for folder in (used, left):
        os.utime(folder.path, (an_hour_ago, an_hour_ago))
    assert remove_abandoned(tmp_path) == [left.path]
    assert used.path.exists()
    assert young.path.exists()
    used.close()


def test_closing_twice_is_allowed():
    folder = Scratch.create()
    folder.close()
    folder.close()
    assert not folder.path.exists()
