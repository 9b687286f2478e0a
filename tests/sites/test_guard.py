"""A worker that takes more than its limit in ways the fence does not see is killed."""

import mmap
import os
import sys
import threading

import pytest
from distributed import KilledWorker

import barrow
from barrow.sites.guard import held_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
MIB = 2**20


def test_a_worker_that_holds_too_much_shared_memory_is_killed():
    def hold(size):
        with mmap.mmap(-1, size) as pages:
            for place in range(0, size, mmap.PAGESIZE):
                pages[place] = 1
            threading.Event().wait(60)

    with barrow.cluster("local", workers=1, threads=1, memory="300MB") as cluster:
        with cluster.hosting("held"), pytest.raises(KilledWorker):
            cluster.client.submit(hold, 400 * MIB, key=("held", 0)).result(timeout=60)
        cluster.wait(1)  # another took its place, so how it ended is known
        (ended,) = cluster.exits
    assert ended.code == -9
    assert "of its limit of 286 MiB" in ended.why


def test_shared_memory_counts_and_mapped_files_do_not(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(bytes(50 * MIB))
    before = held_bytes(os.getpid())
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        touched = sum(pages[place] for place in range(0, len(pages), mmap.PAGESIZE))
        assert held_bytes(os.getpid()) - before < 20 * MIB
    with mmap.mmap(-1, 50 * MIB) as pages:
        for place in range(0, len(pages), mmap.PAGESIZE):
            pages[place] = 1
        assert held_bytes(os.getpid()) - before > 40 * MIB
    assert touched == 0
