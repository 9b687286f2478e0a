import io

from barrow.running import progress as module
from barrow.running.progress import Progress
from barrow.running.task import ChunkReport, TaskReport


class Screen(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


def report(number):
    return TaskReport("17/main", 2**30, [ChunkReport(number, 0, 0, 0, 0, 0, 0, 0)])


def show(monkeypatch, is_terminal, seconds_per_chunk, quiet=False):
    clock = iter(x * seconds_per_chunk for x in range(10_000))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    screen = Screen(is_terminal)
    progress = Progress("denoise", 40, quiet=quiet, file=screen)
    for number in range(40):
        progress.update(report(number))
    progress.close()
    return screen.getvalue()


def test_short_work_shows_nothing(monkeypatch):
    assert show(monkeypatch, False, 0.01) == ""


def test_quiet_work_shows_nothing(monkeypatch):
    assert show(monkeypatch, False, 10, quiet=True) == ""


def test_plain_lines_say_chunks_rate_time_left_and_memory(monkeypatch):
    text = show(monkeypatch, False, 0.5)
    assert "denoise: 2 of 40 chunks" in text
    assert "per second" in text
    assert "left, 1.00 GiB in memory" in text
    assert text.splitlines()[-1].startswith("denoise: 40 of 40 chunks done in")
    assert len(text.splitlines()) < 12


def test_a_terminal_gets_a_live_line(monkeypatch):
    text = show(monkeypatch, True, 0.5)
    assert "\r" in text or "\x1b[" in text
    assert "40 of 40 chunks done" in text
