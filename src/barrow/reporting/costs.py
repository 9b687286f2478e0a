"""What a report may cost a run that did not ask for it: plain arithmetic."""

# Measured: see docs/design/reports.md. The first report of a process loads the template.
BASE_SECONDS = 0.15
SECONDS_PER_CHUNK = 20e-6
MOST_SHARE = 0.02


def is_worth_its_time(run_seconds: float, chunks: int) -> bool:
    """Tell whether a report, written unasked, takes no more than two percent of its run.

    Examples
    --------
    >>> is_worth_its_time(0.01, 4), is_worth_its_time(10, 256), is_worth_its_time(10, 10**6)
    (False, True, False)
    """
    return BASE_SECONDS + SECONDS_PER_CHUNK * chunks <= MOST_SHARE * run_seconds
