import signal
import threading

import pytest

from barrow.running import interrupts
from barrow.running.interrupts import interruptible, listening, shielded


@pytest.fixture(autouse=True)
def usual_handlers():
    """A shell that runs tests in the background has interrupts ignored."""
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def interrupt():
    signal.raise_signal(signal.SIGINT)


@listening()
@shielded()
def interrupted_in_between(seen):
    interrupt()
    seen.append("noted")
    with interruptible():
        seen.append("never")


def test_a_signal_waits_until_something_may_be_interrupted():
    seen = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_in_between(seen)
    assert seen == ["noted"]


@listening()
@shielded()
def interrupted_twice(seen):
    try:
        with interruptible():
            interrupt()
            seen.append("never")
    finally:
        interrupt()
        signal.raise_signal(signal.SIGTERM)
        seen.append("tidy")


def test_what_may_be_interrupted_is_at_once_and_then_further_signals_wait():
    seen = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_twice(seen)
    assert seen == ["tidy"]


def test_tidying_up_that_never_ends_can_be_interrupted(monkeypatch):
    monkeypatch.setattr(interrupts, "PATIENCE_SECONDS", 0.0)
    seen = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_twice(seen)
    assert seen == []


def test_a_signal_is_not_forgotten_at_the_end():
    with pytest.raises(KeyboardInterrupt), listening(), shielded():
        interrupt()


def swallow_the_interrupt():
    try:
        interrupt()
    except KeyboardInterrupt:
        return


def test_a_function_that_swallows_the_interrupt_does_not_keep_the_run_alive():
    with pytest.raises(KeyboardInterrupt), listening(), shielded(), interruptible():
        swallow_the_interrupt()


def test_sigterm_ends_the_program_with_the_code_that_a_shell_would_report():
    with pytest.raises(SystemExit) as caught, listening(), shielded(), interruptible():
        signal.raise_signal(signal.SIGTERM)
    assert caught.value.code == 143


def test_handlers_are_as_before_after_a_run_and_those_of_others_stay():
    with listening():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append("mine"))
    with listening(), shielded(), interruptible():
        signal.raise_signal(signal.SIGINT)
    assert heard == ["mine"]


def test_a_run_in_another_thread_listens_to_nothing():
    handlers = []

    def run():
        with listening(), shielded(), interruptible():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]
