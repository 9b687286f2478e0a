"""A run on one screen of a terminal, while it goes on."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from barrow.model.glance import Glance, ProcessGlance
from barrow.reporting.words import plain, shorten
from barrow.units import format_bytes, format_count, format_seconds

BAR = 24
NAME_LENGTH = 28
MOST_PROCESSES = 16
HIGH, FULL = 0.6, 0.8
"""Of its limit: from where on Dask moves results to disk, and where it pauses a worker."""
_ENDED = {"done": "green", "running": "green"}


def draw_top(glance: Glance, findings: Sequence[str] = ()) -> RenderableType:
    """Return the screen; texts from users are shown as they are, never as commands.

    Parameters
    ----------
    findings
        What the doctor says, a sentence for each.
    """
    parts: list[RenderableType] = [_say_what(glance), _say_how_far(glance), Text()]
    if glance.processes:
        parts += [_list_memory(glance.processes), _say_memory(glance)]
    notes = [(f"{format_seconds(when)} ", "dim", text) for when, text in glance.notes]
    told = [("! ", "bold red", finding) for finding in findings]
    if told or notes:
        parts += [Text(), *_list_lines([*told, *notes])]
    return Group(*parts)


def _say_what(glance: Glance) -> Text:
    line = Text(shorten(plain(glance.name), 60), "bold", no_wrap=True, overflow="ellipsis")
    word = "running for" if glance.status == "running" else f"{glance.status} after"
    line.append(f"  {word} ", _ENDED.get(glance.status, "red"))
    line.append(format_seconds(glance.seconds), _ENDED.get(glance.status, "red"))
    return line


def _say_how_far(glance: Glance) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    if glance.planned:
        share = min(1.0, glance.done / glance.planned)
        line.append_text(_bar(share, "cyan"))
        line.append(f" {share:4.0%}  {glance.done:,} of ")
        line.append(format_count(glance.planned, glance.noun))
    else:
        line.append(format_count(glance.done, glance.noun))
    if glance.status == "running":
        line.append(f"  {glance.rate:,.1f}/s" if glance.rate < 100 else f"  {glance.rate:,.0f}/s")
    if (left := glance.left_seconds) is not None:
        line.append(f"  about {format_seconds(left)} left")
    if glance.failed:
        line.append(f"  {glance.failed:,} failed", "bold red")
    return line


def _list_memory(processes: Sequence[ProcessGlance]) -> Table:
    table = Table.grid(padding=(0, 2))
    for column in range(5):
        table.add_column(justify="left" if column < 2 else "right", no_wrap=True)
    # Where there are many, those that are closest to their limit matter.
    shown = processes
    if len(processes) > MOST_PROCESSES:
        shown = sorted(processes, key=_fullness, reverse=True)[:MOST_PROCESSES]
    scale = max(process.limit_bytes or process.held_bytes for process in processes)
    for process in shown:
        share = process.held_bytes / (process.limit_bytes or scale or 1)
        limit = f" of {format_bytes(process.limit_bytes)}" if process.limit_bytes else ""
        table.add_row(
            Text(shorten(plain(process.name), NAME_LENGTH)),
            _bar(min(1.0, share), _colour(share) if process.limit_bytes else "blue"),
            Text(f"{format_bytes(process.held_bytes)}{limit}"),
            Text("" if process.cores is None else f"{process.cores:.1f} cores"),
            Text(
                f"{format_bytes(process.spilled_bytes)} on disk" if process.spilled_bytes else "",
                "yellow",
            ),
        )
    if len(shown) < len(processes):
        table.add_row(Text(f"… and {len(processes) - len(shown)} more", "dim"))
    return table


def _say_memory(glance: Glance) -> Text:
    now = sum(process.held_bytes for process in glance.processes)
    text = f"all together {format_bytes(now)}"
    return Text(f"{text}, at most {format_bytes(max(now, glance.peak_bytes))}", "dim")


def _list_lines(lines: Iterable[tuple[str, str, str]]) -> Iterable[Text]:
    for before, style, text in lines:
        line = Text(before, style, no_wrap=True, overflow="ellipsis")
        line.append(plain(text), "default")
        yield line


def _fullness(process: ProcessGlance) -> float:
    return process.held_bytes / process.limit_bytes if process.limit_bytes else 0.0


def _colour(share: float) -> str:
    return "red" if share >= FULL else "yellow" if share >= HIGH else "green"


def _bar(share: float, colour: str) -> Text:
    """Return a bar that is so full.

    Examples
    --------
    >>> _bar(0.5, "green").plain
    '████████████············'
    """
    full = round(BAR * share)
    return Text.assemble(("█" * full, colour), ("·" * (BAR - full), "dim"))
