"""Print the page of a run that goes on: run by Dask's dashboard when somebody looks at it."""

import sys
import time
from collections.abc import Sequence

SHORTEST_SECONDS = 3.0
LARGEST_SHARE = 0.1
"""Of one core that a page may use while somebody looks at it: large ones are made less often."""


def main(arguments: Sequence[str]) -> None:
    """Print the page of a folder: all of it, or the part that changes."""
    from barrow.explaining import explain
    from barrow.reporting.html import Live, format_html

    folder, part = arguments
    content = explain(folder)
    refresh = max(SHORTEST_SECONDS, time.process_time() / LARGEST_SHARE)
    page = format_html(content, live=Live(refresh, has_scripts=part == "page"))
    sys.stdout.buffer.write(page.encode("utf-8", "replace"))
