"""Somebody else on the same machine sees that something runs, and nothing more."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import barrow
from barrow.sites.announcing import announcing
from barrow.sites.scratch import PREFIX

LOOK = """
import os, sys

os.setgroups([])
os.setgid({gid})
os.setuid({uid})
for path in sys.stdin.read().split("\\n"):
    try:
        if os.path.isdir(path):
            os.listdir(path)
        else:
            open(path, "rb").close()
    except PermissionError:
        continue
    print(path)
"""

AS_NOBODY = pytest.mark.skipif(
    os.getuid() != 0, reason="Only root can look with the eyes of another user."
)


def list_readable(paths):
    """Return those of some paths that another user can read."""
    stranger = pwd.getpwnam("nobody")
    code = LOOK.format(uid=stranger.pw_uid, gid=stranger.pw_gid)
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        input="\n".join(map(str, paths)),
        capture_output=True,
        text=True,
        cwd="/",
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def open_place(monkeypatch):
    """A folder that everybody may enter, as a home folder may be, for what barrow keeps."""
    place = Path(tempfile.mkdtemp(prefix="open-to-all-"))
    place.chmod(0o755)
    monkeypatch.setenv("BARROW_CACHE", str(place / "cache"))
    yield place
    shutil.rmtree(place)


def list_below(folder):
    return [Path(folder), *Path(folder).rglob("*")]


@AS_NOBODY
def test_what_is_readable_by_all_is_seen_as_such(open_place):
    # Else the tests below would find nothing whatever was there.
    for name, mode in (("for all", 0o644), ("mine", 0o600)):
        (open_place / name).write_text("words")
        (open_place / name).chmod(mode)
    assert list_readable(open_place.iterdir()) == [str(open_place / "for all")]


@AS_NOBODY
def test_nothing_of_a_cluster_is_readable_by_others(local_cluster, open_place):
    places = local_cluster.client.run(lambda dask_worker: dask_worker.local_directory)
    place = Path(next(iter(places.values())))
    scratch = next(p for p in (place, *place.parents) if p.name.startswith(PREFIX))
    with announcing(local_cluster, "local") as announced:
        below = [*list_below(scratch), *list_below(announced.folder)]
        assert sum(path.suffix == ".pem" for path in below) == 4
        assert list_readable(below) == []


@AS_NOBODY
def test_nothing_that_a_run_keeps_for_itself_is_readable_by_others(open_place):
    run = barrow.run(barrow.plan(np.sqrt, np.full((40, 50), 9.0), quiet=True, cluster=False))
    assert run.folder.is_relative_to(open_place)
    assert list_readable(list_below(run.folder)) == []
