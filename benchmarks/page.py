"""Render all results of benchmarks into one page: wins and losses alike.

    python -m benchmarks.page

The page, ``docs/benchmarks.md``, is made from ``benchmarks/results/*.json`` and nothing else; so
are the numbers that other pages quote.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.quotes import write_quotes
from benchmarks.tables import Result, Row, Table, read_results

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"

# Less than this, either way, is a draw.
EVEN = 1.05
COMPARED = {"wall": "time", "cpu": "CPU", "peak": "memory"}

INTRODUCTION = """\
# Benchmarks

Made by `python -m benchmarks.page` from `benchmarks/results/*.json`. `make bench` measures all of
them anew, `make bench-quick` a small set in ten minutes. Times are seconds: the least of the
repeats, and the most in brackets. The least counts, because whatever else a machine does only ever
adds. Memory is that of all processes together.

## Wins and losses

How many times as much the other way takes: above 1 barrow is better, below 1 it is worse. Where
the machine was busy, the verdict is by CPU seconds, else by time.
"""


def render(results: list[Result]) -> str:
    """Return the page as Markdown."""
    parts = [INTRODUCTION, *_render_overview(results)]
    for result in results:
        parts += ["", *_render_result(result)]
    return "\n".join(parts) + "\n"


def _render_overview(results: list[Result]) -> Iterator[str]:
    yield "| benchmark | case | against | time | CPU | memory | |"
    yield "|---|---|---|--:|--:|--:|---|"
    for result in results:
        for table in result.tables:
            for other in table.others if table.ours is not None else ():
                yield _compare(result, table, table.ours, other)


def _compare(result: Result, table: Table, ours: Row | None, other: Row) -> str:
    start = f"| [{result.name}](#{result.name}) | {table.title} | {other.label} |"
    if other.failure or ours is None:
        return f"{start} | | | win: it failed |"
    ratios = {name: _ratio(ours, other, name) for name in COMPARED}
    decisive = ratios["cpu"] if result.is_busy and ratios["cpu"] else ratios["wall"]
    cells = " | ".join("" if value is None else _format(value) for value in ratios.values())
    return f"{start} {cells} | {_judge(decisive)} |"


def _ratio(ours: Row, other: Row, column: str) -> float | None:
    own, their = ours.least(column), other.least(column)
    return their / own if own and their is not None else None


def _judge(value: float | None) -> str:
    if value is None:
        return ""
    if 1 / EVEN <= value <= EVEN:
        return "even"
    return "win" if value > 1 else "**loss**"


def _render_result(result: Result) -> Iterator[str]:
    question, _, more = str(result.header["question"]).strip().partition("\n")
    yield f"## {result.name}"
    yield ""
    yield f"**{question}** {' '.join(more.split())}".strip()
    yield ""
    yield _describe_machine(result)
    for table in result.tables:
        yield ""
        if table.title:
            yield f"*{table.title}*"
            yield ""
        yield from _render_table(table)
    if result.facts:
        yield ""
        yield "| | |"
        yield "|---|---|"
        for name, value in result.facts.items():
            yield f"| {_say(name)} | {_format_fact(name, value)} |"


def _describe_machine(result: Result) -> str:
    machine, versions = result.header["machine"], result.header["versions"]
    packages = ", ".join(f"{name} {number}" for name, number in versions.items())
    memory, load = machine["memory_bytes"] / 2**30, machine["load"][0]
    busy = "; the machine was busy, so trust CPU seconds" if result.is_busy else ""
    return (
        f"{result.header['date'][:10]}, {machine['cores']} cores, {memory:.0f} GiB, "
        f"load {load:.1f}{busy}. {packages}."
    )


def _render_table(table: Table) -> Iterator[str]:
    columns = table.columns
    yield "| | " + " | ".join(_head(column) for column in columns) + " |"
    yield "|---|" + "--:|" * len(columns)
    for row in table.rows:
        if row.failure:
            yield f"| {row.label} | failed: {row.failure} |" + " |" * (len(columns) - 1)
            continue
        cells = (_format_cell(column, row.values.get(column, ())) for column in columns)
        yield f"| {row.label} | " + " | ".join(cells) + " |"


def _head(column: str) -> str:
    known = {"wall": "time, s", "cpu": "CPU, s", "peak": "peak, GiB"}
    if column in known:
        return known[column]
    if column.endswith("_seconds"):
        return _say(column.removesuffix("_seconds")) + ", s"
    if column.endswith("_bytes"):
        return _say(column.removesuffix("_bytes")) + ", GiB"
    return _say(column)


def _format_cell(column: str, values: tuple[float, ...]) -> str:
    if not values:
        return ""
    scale = 2**30 if column == "peak" or column.endswith("_bytes") else 1
    least, most = (_format(value / scale) for value in (min(values), max(values)))
    return least if least == most else f"{least} ({most})"


def _format_fact(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _format_cell(name, (float(value),))
    return str(value)


def _format(value: float) -> str:
    """Return a number with three digits that count.

    Examples
    --------
    >>> _format(1234.5), _format(12.345), _format(0.012345), _format(4.0)
    ('1,234', '12.3', '0.0123', '4')
    """
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _say(name: str) -> str:
    return name.replace("_", " ")


def write_page(results: Path = RESULTS, page: Path = PAGE) -> Path:
    """Write the page of a folder of results; of those that are kept, also what pages quote."""
    found = read_results(results)
    page.write_text(render(found))
    if results == RESULTS:
        write_quotes(found)
    return page


def main() -> None:
    """Write the page."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of JSON files")
    parser.add_argument("--to", type=Path, default=PAGE, help="the page")
    options = parser.parse_args()
    print("written to", write_page(options.results, options.to))


if __name__ == "__main__":
    main()
