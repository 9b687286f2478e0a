"""What a report may cost a run that did not ask for it: plain arithmetic."""

# CPU measured on 10 to 100,000 chunks: see docs/design/reports.md.
BASE_SECONDS = 0.2
"""The first report of a process; half of it is the import and the template."""
SECONDS_PER_CHUNK = 13e-6
SECONDS_PER_BAR = 160e-6
"""Of the timeline, and of the curve of more workers."""
MOST_BARS = 3000
MOST_SHARE = 0.02


def is_worth_its_time(run_seconds: float, chunks: int) -> bool:
    """Tell whether a report, written unasked, takes no more than two percent of its run.

    Examples
    --------
    >>> is_worth_its_time(0.01, 4), is_worth_its_time(15, 256), is_worth_its_time(15, 10**6)
    (False, True, False)
    """
    cost = BASE_SECONDS + SECONDS_PER_CHUNK * chunks + SECONDS_PER_BAR * min(chunks, MOST_BARS)
    return cost <= MOST_SHARE * run_seconds
