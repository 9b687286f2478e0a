"""Numbers that pages quote: put into their text from the results, so that both always agree.

    python -m benchmarks.page    # writes the page of benchmarks, and these

In a page a quote stands between ``<!-- measured: NAME -->`` and ``<!-- end -->``. One that
begins a line of its own is a table, else it is part of a sentence.
"""

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from benchmarks.quoted import QUOTES, Results
from benchmarks.tables import Result

ROOT = Path(__file__).parents[1]
PAGES = tuple(
    ROOT / name
    for name in (
        "README.md",
        "docs/design/collider.md",
        "docs/design/fused-steps.md",
        "docs/design/local-workers.md",
        "docs/design/miniscope.md",
        "docs/design/probing-and-planning.md",
        "docs/design/recording.md",
        "docs/design/results.md",
        "docs/design/spatial.md",
        "docs/design/what-if.md",
    )
)
QUOTE = re.compile(
    r"(?P<indent>[ ]*)(?P<start><!-- measured: (?P<name>[a-z ]+) -->)(?P<said>.*?)<!-- end -->",
    re.DOTALL,
)


def rewrite(text: str, results: Results) -> str:
    """Return the text of a page with the numbers of these results.

    A quote whose benchmark has not been run, or not with its peer, stays as it is.
    """

    def put(found: re.Match[str]) -> str:
        try:
            said = QUOTES[found["name"]](results)
        except LookupError:
            return found[0]
        if found["said"].startswith("\n"):
            said = textwrap.indent(f"\n\n{said}\n\n", found["indent"]) + found["indent"]
        return f"{found['indent']}{found['start']}{said}<!-- end -->"

    return QUOTE.sub(put, text)


def write_quotes(results: Iterable[Result]) -> None:
    """Put the numbers of these results into all pages that quote them."""
    by_name = {result.name: result for result in results}
    for page in PAGES:
        page.write_text(rewrite(page.read_text(), by_name))
