"""A run goes on while there is room, waits when there is none, and says so once."""

import errno

import numpy as np
import pytest
import zarr

from barrow.errors import OutputError
from barrow.model.grid import Grid
from barrow.recording.record import RecordWriter
from barrow.running import watch as watching
from barrow.running.disk import Room, is_writable, measure_room
from barrow.running.folders import open_result_folder
from barrow.running.sinks import Trouble, ZarrSink
from barrow.running.task import ChunkReport, TaskReport
from barrow.running.watch import Watch

MIB = 2**20
DATA = np.random.default_rng(0).random((100, 2**13))  # chunks of 64 KiB


def done(number):
    return TaskReport("1/a", 0, [ChunkReport(number, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 2**16)])


def failed(code):
    return TaskReport("1/a", 0, [], left=[range(1)], trouble=Trouble(code, "It says why"))


class Disk:
    """A file system of 10 GiB that says it has so much left."""

    def __init__(self):
        self.free_bytes = 10 * 2**30

    def measure(self, path):
        return Room(self.free_bytes, 10 * 2**30, path)


@pytest.fixture
def disk(monkeypatch):
    disk = Disk()
    monkeypatch.setattr(watching, "measure_room", disk.measure)
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.0)
    return disk


@pytest.fixture
def watch(tmp_path, disk):
    folder = open_result_folder(tmp_path / "out.zarr")
    array = zarr.create_array(folder.store, shape=DATA.shape, chunks=(1, 2**13), dtype="f8")
    array[...] = DATA
    RecordWriter(folder.record_path).close()
    said = []
    made = Watch(
        folder,
        ZarrSink(str(folder.store)),
        Grid({"y": 100, "x": 2**13}, {"y": 1}),
        cells_left=100,
        cell_bytes=2**16,
        slots=2,
        is_ready=lambda: True,
        say=lambda kind, message, _: said.append((kind, message)),
    )
    made.said = said
    yield made
    folder.remove()


def kinds(watch):
    return [kind for kind, _ in watch.said]


def test_a_run_that_has_room_is_left_alone(watch):
    for number in range(100):
        watch.see(done(number))
    assert watch.is_open
    assert not watch.said
    assert watch.left_bytes == 0


def test_what_is_left_is_predicted_from_what_is_stored(watch):
    assert watch.left_bytes == 100 * 2**16
    for number in range(10):
        watch.see(done(number))
    # Random numbers between 0 and 1 are hardly compressed.
    assert 0.85 < watch.left_bytes / (90 * 2**16) < 1


def test_a_disk_that_will_be_full_is_said_once_and_the_run_goes_on(watch, disk, monkeypatch):
    monkeypatch.setattr(watching, "RESERVE_BYTES", MIB)
    disk.free_bytes = 2 * MIB
    for number in range(10):
        watch.see(done(number))
    assert watch.is_open
    assert kinds(watch) == ["space"]
    assert "about" in watch.said[0][1]
    assert "2.00 MiB is free" in watch.said[0][1]


def test_below_the_reserve_nothing_more_is_begun_if_the_rest_would_not_fit(watch, disk):
    disk.free_bytes = 5 * MIB
    watch.see(done(0))
    assert not watch.is_open
    assert kinds(watch) == ["paused"]


def test_what_fits_may_use_the_reserve(watch, disk):
    disk.free_bytes = 7 * MIB
    for number in range(100):
        disk.free_bytes -= 2**16
        watch.see(done(number))
    assert watch.is_open


def test_it_opens_again_when_there_is_room(watch, disk):
    disk.free_bytes = 0
    watch.see(failed(errno.ENOSPC))
    assert not watch.is_open
    disk.free_bytes = 2**30
    watch.wait()
    assert watch.is_open
    assert kinds(watch) == ["paused", "resumed"]


def test_waiting_in_vain_is_one_error_that_says_how_to_go_on(watch, disk, monkeypatch):
    monkeypatch.setenv("BARROW_DISK_WAIT", "0")
    disk.free_bytes = MIB
    watch.see(failed(errno.EDQUOT))
    with pytest.raises(OutputError) as caught:
        watch.wait()
    message = str(caught.value)
    assert "Up to 6.25 MiB more is needed, 1.00 MiB is free" in message
    assert "0 chunks of 100" in message
    assert "start the same call again" in message


def test_trying_again_in_vain_does_not_begin_the_wait_anew(watch, disk):
    for _ in range(3):
        watch.see(failed(errno.ENOSPC))
        watch.wait()
    first = watch._stuck_since
    watch.see(failed(errno.ENOSPC))
    assert watch._stuck_since == first
    assert watch.n_paused == 1
    watch.see(done(0))
    watch.wait()
    watch.see(failed(errno.ENOSPC))
    assert watch.n_paused == 1  # it was still closed when the chunk came in
    assert watch._stuck_since != first


def test_a_server_that_does_not_answer_is_waited_for(watch):
    watch.see(failed(errno.EIO))
    assert not watch.is_open
    assert "It says why" in watch.said[0][1]


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, 0])
def test_what_will_not_pass_is_an_error_at_once(code, watch):
    with pytest.raises(OutputError, match="cannot be written any more: It says why"):
        watch.see(failed(code))


def test_a_folder_that_was_replaced_is_noticed(watch, tmp_path):
    watch.look()
    watch.folder.store.rename(tmp_path / "elsewhere")
    watch.folder.store.mkdir()
    with pytest.raises(OutputError, match="was removed or replaced"):
        watch.look()


def test_an_odd_patience_is_not_used(monkeypatch):
    monkeypatch.setenv("BARROW_DISK_WAIT", "for ever")
    assert watching.find_patience() == watching.PATIENCE_SECONDS


def test_a_file_that_can_be_written_leaves_nothing_behind(tmp_path):
    assert is_writable(tmp_path, MIB)
    assert not is_writable(tmp_path / "missing", MIB)
    assert not list(tmp_path.iterdir())


def test_the_room_of_a_place_that_is_not_there_yet_is_that_of_its_parent(tmp_path):
    assert measure_room(tmp_path / "a" / "b").path == tmp_path
