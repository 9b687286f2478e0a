"""A little of each trouble of ``make soak``: the result is the same, bit for bit."""

import pytest

from soak.faults import KINDS, N_RUNS, Case, Fault, Soak, make_case

FRAMES, SECONDS = 60, 0.03


@pytest.fixture(scope="module")
def soak(tmp_path_factory):
    soak = Soak(tmp_path_factory.mktemp("soak"))
    yield soak
    soak.close()


def fault(what, after, stop=0.0):
    return Fault(what, after, delay_seconds=0.01, stop_seconds=stop)


TROUBLES = {
    "nothing": ("memory", "none", ()),
    "a worker killed": ("memory", "none", (fault("kill", 4),)),
    "a worker killed, in a sum": ("reduce", "none", (fault("kill", 6),)),
    "a worker killed before anything began": ("memory", "none", (fault("kill", 0),)),
    "workers killed": ("store", "none", (fault("kill", 2), fault("kill", 3), fault("kill", 9))),
    "a worker stopped": ("store", "none", (fault("stop", 5, stop=0.4),)),
    "a worker sent away": ("store", "none", (fault("terminate", 3),)),
    "a worker retired": ("memory", "none", (fault("retire", 3),)),
    "a worker cut off": ("store", "none", (fault("disconnect", 3),)),
    "too much memory": ("store", "some", ()),
    "too much memory, a worker killed": ("memory", "some", (fault("kill", 5),)),
    "the client killed": ("store", "none", (fault("client", 7),)),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_run_with_trouble_gives_the_same_result_and_repeats_no_more_than_was_in_flight(
    soak, trouble
):
    sink, hunger, faults = TROUBLES[trouble]
    number = list(TROUBLES).index(trouble)
    case = Case(number, trouble, FRAMES, "zarr", sink, 0, SECONDS, hunger, faults)
    outcome = soak.carry_out(case)
    assert outcome.error == ""
    assert outcome.is_identical
    assert outcome.redone <= outcome.in_flight
    assert bool(outcome.split) == (hunger != "none")


def test_a_case_follows_from_its_number():
    cases = [make_case(number) for number in range(N_RUNS)]
    assert cases == [make_case(number) for number in range(N_RUNS)]
    assert N_RUNS == 200
    assert {case.kind for case in cases} == set(KINDS)
