"""A task that asks for too much is told so, and nobody dies."""

import sys
import threading

import numpy as np
import pytest

from barrow.running.fence import Fence

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of Linux")
MIB = 2**20


def allocate(size):
    return np.ones(size, "u1")


def limit():
    import resource

    return resource.getrlimit(resource.RLIMIT_DATA)


def test_what_is_within_the_budget_is_allowed():
    with Fence(headroom_bytes=16 * MIB).around(300 * MIB):
        assert allocate(200 * MIB).size == 200 * MIB


@pytest.mark.parametrize(
    "ask",
    [
        lambda: allocate(400 * MIB),
        lambda: np.zeros((20, 20 * MIB), "u1") + np.uint8(1),
        lambda: bytearray(400 * MIB),
        lambda: [object() for _ in range(30 * MIB)],
    ],
    ids=["array", "expression", "bytes", "objects"],
)
def test_what_is_beyond_is_refused(ask):
    with Fence(headroom_bytes=16 * MIB).around(100 * MIB), pytest.raises(MemoryError):
        ask()


def test_libraries_that_allocate_for_themselves_are_refused_too():
    from scipy import fft, linalg

    matrix = np.random.default_rng(0).random((2000, 2000))
    for ask in (lambda: linalg.svd(matrix), lambda: fft.fft2(np.tile(matrix, (2, 2)))):
        with Fence(headroom_bytes=16 * MIB).around(MIB), pytest.raises(MemoryError):
            ask()


def test_a_compiled_loop_is_refused_too():
    import numba

    @numba.njit
    def ones(n):
        return np.ones(n).sum()

    ones(10)
    with Fence(headroom_bytes=16 * MIB).around(MIB), pytest.raises(MemoryError):
        ones(50 * MIB)


def test_the_limit_is_as_before_afterwards():
    before = limit()
    fence = Fence(headroom_bytes=16 * MIB)
    with pytest.raises(MemoryError), fence.around(MIB):
        allocate(400 * MIB)
    assert limit() == before
    assert allocate(400 * MIB).size


def test_tasks_side_by_side_have_what_both_may_use():
    fence, first_is_in, second_is_out = (
        Fence(headroom_bytes=16 * MIB),
        threading.Event(),
        threading.Event(),
    )
    before = limit()

    def other():
        with fence.around(300 * MIB):
            first_is_in.set()
            second_is_out.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    first_is_in.wait(10)
    with fence.around(100 * MIB):
        assert allocate(350 * MIB).size
        with pytest.raises(MemoryError):
            allocate(600 * MIB)
    second_is_out.set()
    thread.join()
    assert limit() == before


def test_without_a_budget_there_is_no_fence():
    before = limit()
    with Fence(headroom_bytes=16 * MIB).around(0):
        assert limit() == before


def test_a_fence_can_be_lifted_from_a_task_that_is_given_up():
    before, fence = limit(), Fence(headroom_bytes=16 * MIB)
    with fence.around(64 * MIB):
        fence.lift()
        assert limit() == before
        with fence.around(32 * MIB):
            assert limit() != before
    assert limit() == before
