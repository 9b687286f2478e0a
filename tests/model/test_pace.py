"""A loop in Python is told from compiled code, from beside, on a machine that may be busy."""

import math
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from barrow.model.pace import Pace
from soak.pieces import wait_until


def add_up(is_over):
    total = 0.0
    while not is_over.is_set():
        for number in range(1000):
            total += math.hypot(number, 2.0)


def take_roots(is_over):
    numbers = np.ones(1_000_000)
    while not is_over.is_set():
        for _ in range(5):
            np.sqrt(numbers)


def wait_long(is_over):
    while not is_over.is_set():
        is_over.wait(0.01)


@contextmanager
def computing(work):
    """Yield the number of a thread that does something."""
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,))
    thread.start()
    try:
        yield thread.ident
    finally:
        is_over.set()
        thread.join()


def look_until(pace, thread, is_enough):
    """Look again and again until enough is known."""

    def look():
        pace.look([thread])
        return is_enough(pace.seen)

    wait_until(look)


def test_the_function_is_named_whose_loop_the_interpreter_runs():
    pace = Pace()
    with computing(add_up) as thread:
        look_until(pace, thread, lambda seen: seen["loops"])
    assert pace.seen["loops"] == {"add_up": 1}


@pytest.mark.parametrize("work", [take_roots, wait_long])
def test_a_loop_over_compiled_code_or_over_waiting_is_not_meant(work):
    pace = Pace()
    with computing(work) as thread:
        look_until(pace, thread, lambda seen: seen["looks"] >= 3)
    assert pace.seen["loops"] == {}
