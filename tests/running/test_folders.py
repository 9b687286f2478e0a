"""Who may write where: one process at a time, and nothing of others is removed."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time

import pytest

from barrow.errors import OutputError
from barrow.running import folders, locks
from barrow.running.folders import find_result, open_result_folder, open_run_folder


@pytest.fixture
def no_locks(monkeypatch):
    """A file system that has no locks."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_a_place_can_be_had_once_and_again_after_it_was_released(tmp_path):
    first = open_result_folder(tmp_path / "out.zarr")
    with pytest.raises(OutputError, match="Another process is writing"):
        open_result_folder(tmp_path / "out.zarr")
    first.release()
    open_result_folder(tmp_path / "out.zarr").release()


def test_without_locks_a_file_keeps_others_out(tmp_path, no_locks):
    first = open_result_folder(tmp_path / "out.zarr")
    with pytest.raises(OutputError, match="Another process is writing"):
        open_result_folder(tmp_path / "out.zarr")
    first.release()
    second = open_result_folder(tmp_path / "out.zarr")
    assert (second.root / "owner").exists()
    second.remove()
    assert not list(tmp_path.iterdir())


def test_without_locks_a_process_that_is_gone_does_not_count(tmp_path, no_locks):
    folder = open_result_folder(tmp_path / "out.zarr")
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], stdout=-1)
    folder.release()
    (folder.root / "owner").write_text(f"{locks.host_name()} {int(gone.stdout)}")
    again = open_result_folder(tmp_path / "out.zarr")
    assert (again.root / "owner").read_text() == f"{locks.host_name()} {os.getpid()}"
    again.release()


def test_without_locks_nothing_is_taken_from_another_machine(tmp_path, no_locks):
    folder = open_result_folder(tmp_path / "out.zarr")
    folder.release()
    (folder.root / "owner").write_text("elsewhere 17")
    with pytest.raises(OutputError, match=r"'elsewhere' .* delete .*owner"):
        open_result_folder(tmp_path / "out.zarr")


def test_a_lock_on_a_folder_that_was_moved_away_meanwhile_is_not_enough(tmp_path, monkeypatch):
    lock, moved = locks.lock_folder, []

    def lock_late(root, place):
        got = lock(root, place)
        if not moved:
            # Just now, whoever had it has finished.
            moved.append(root.parent.rename(tmp_path / "out.zarr"))
        return got

    monkeypatch.setattr(locks, "lock_folder", lock_late)
    folder = open_result_folder(tmp_path / "out.zarr")
    assert folder.store.exists()
    assert moved == [tmp_path / "out.zarr"]
    folder.release()


def test_what_is_no_result_is_not_touched(tmp_path):
    (tmp_path / "out.zarr").mkdir()
    with pytest.raises(OutputError, match="was not written by barrow"):
        find_result(tmp_path / "out.zarr")
    (tmp_path / "out.zarr" / ".barrow").mkdir()
    with pytest.raises(OutputError, match="is damaged"):
        find_result(tmp_path / "out.zarr")


def test_a_finished_folder_does_not_replace_what_stands_there(tmp_path):
    folder = open_result_folder(tmp_path / "out.zarr")
    (tmp_path / "out.zarr").mkdir()
    (tmp_path / "out.zarr" / "precious").touch()
    with pytest.raises(OutputError, match=r"is whole but cannot be moved .* kept in"):
        folder.finish()
    assert (tmp_path / "out.zarr" / "precious").exists()
    folder.remove()


def test_only_folders_of_dead_processes_of_this_machine_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("BARROW_CACHE", str(tmp_path))
    mine = open_run_folder("f").root
    old = time.time() - 3 * 24 * 3600
    dead = mine.with_name(mine.name.replace(f"-{os.getpid()}-", "-999999999-"))
    elsewhere = dead.with_name(dead.name.replace(locks.host_name(), "elsewhere"))
    odd = mine.with_name("odd")
    for path in (dead, elsewhere, odd):
        shutil.copytree(mine, path)
    for path in (mine, dead, elsewhere, odd):
        os.utime(path, (old, old))
    open_run_folder("g")
    assert [path.exists() for path in (mine, dead, elsewhere, odd)] == [True, False, True, True]


def test_emptying_a_folder_leaves_what_a_link_in_it_leads_to(tmp_path):
    folder = open_result_folder(tmp_path / "out.zarr")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").touch()
    (folder.store / "link").symlink_to(precious)
    folders.empty(folder)
    assert (precious / "data").exists()
    assert not (folder.store / "link").is_symlink()
    folder.remove()
