"""Say what is waited for while workers are not there yet."""

import sys
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TextIO

from barrow.units import format_count, format_seconds

FIRST_SECONDS = 1.0
"""What takes less is not worth a word."""


class JobState(NamedTuple):
    """State and reason of a job, in SLURM's words."""

    state: str
    reason: str


def describe_queue(jobs: Iterable[JobState]) -> str:
    """Return what the queue says about jobs that are not running, in a few words.

    Examples
    --------
    >>> describe_queue([JobState("PENDING", "Resources")] * 3 + [JobState("RUNNING", "None")])
    '3 jobs pending: Resources; 1 job running'
    """
    parts = []
    for (state, reason), count in Counter(jobs).items():
        why = f": {reason}" if reason not in ("", "None") else ""
        parts.append(f"{format_count(count, 'job')} {state.lower()}{why}")
    return "; ".join(parts)


def describe_waiting(came: int, wanted: int, seconds: float, queue: str = "") -> str:
    """Return the line that is shown while workers are waited for.

    Examples
    --------
    >>> describe_waiting(0, 8, 4.2, "3 jobs pending: Resources")
    '0/8 workers, waiting … 4 s (3 jobs pending: Resources)'
    """
    line = f"{came}/{wanted} workers, waiting … {seconds:.0f} s"
    return f"{line} ({queue})" if queue else line


def describe_wait(
    address: str,
    wanted: int,
    came: int,
    waited_seconds: float,
    *,
    failures: list[str],
    queue: str = "",
) -> str:
    """Return what was waited for in vain, and what to try.

    Examples
    --------
    >>> print(describe_wait("tcp://10.0.0.1:8786", 4, 1, 360, failures=[]))
    Waited 6 min 0 s for 4 workers at tcp://10.0.0.1:8786; 1 came.
    See whether more can start, wait longer with timeout=..., or ask for fewer.
    """
    lines = [
        f"Waited {format_seconds(waited_seconds)} for {format_count(wanted, 'worker')} "
        f"at {address}; {came} came."
    ]
    if failures:
        lines += [*failures, "Mend what the worker complains about, then open a new cluster."]
    elif queue:
        lines += [
            f"The queue says: {queue}.",
            "Wait longer with timeout=..., choose another partition=, or ask for less memory=, "
            "cores= or walltime=.",
        ]
    else:
        lines.append("See whether more can start, wait longer with timeout=..., or ask for fewer.")
    return "\n".join(lines)


class WaitingLine:
    """A line on the terminal that is written anew; elsewhere a line now and then."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_quiet = quiet
        self._is_terminal = self._stream.isatty()
        self._next_seconds = FIRST_SECONDS
        self._width = 0

    def update(self, seconds: float, line: str) -> None:
        """Show a line, if it is time for one."""
        if self._is_quiet or seconds < self._next_seconds:
            return
        # In a log file: after 1 s, 4 s, 16 s, and then every minute.
        grown = min(4 * self._next_seconds, self._next_seconds + 60)
        self._next_seconds = seconds + 0.2 if self._is_terminal else grown
        if self._is_terminal:
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Clear the line."""
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
