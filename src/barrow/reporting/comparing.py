"""Two runs side by side: what differs, and by how much."""

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from barrow.reporting.content import Content, Row, StepRow
from barrow.reporting.text import align
from barrow.reporting.words import plain, shorten
from barrow.units import format_bytes, format_seconds

NAME_LENGTH = 40
MOST_STEPS = 40
UNKNOWN = "-"
COMMAND = "command"


@dataclass(frozen=True)
class Difference:
    """One thing of both runs."""

    section: str
    heading: str
    first: str
    second: str
    factor: float | None = None
    """The second divided by the first, for numbers."""

    @property
    def is_change(self) -> bool:
        """Whether it differs by more than runs of the same thing do."""
        if self.factor is None:
            return self.first != self.second
        return not 0.9 <= self.factor <= 1.1

    @property
    def change(self) -> str:
        """The difference in a word."""
        if self.factor is not None:
            if self.is_change:
                return f"× {self.factor:.2f}"
            return "same" if self.factor == 1 else "about the same"
        return "changed" if self.is_change else "same"


def compare(first: Content, second: Content) -> list[Difference]:
    """Return the two runs side by side, in the order in which they are told."""
    return [
        *_compare_run(first, second),
        *_compare_steps(first, second),
        *_compare_rows("plan", _plan_of(first), _plan_of(second)),
        *_compare_rows("versions", first.versions, second.versions),
        *_compare_rows("machine", _texts(first.machine), _texts(second.machine)),
        *_compare_rows("settings", first.settings, second.settings),
    ]


def summarise(differences: list[Difference]) -> str:
    """Return the change that matters most, in one sentence."""
    found = {d.heading: d for d in differences if d.section == "run"}
    said = []
    for heading, more, less in (
        ("time of the run", "slower", "faster"),
        ("largest process", "more memory", "less memory"),
    ):
        factor = found[heading].factor if heading in found else None
        if factor:
            times = f"{max(factor, 1 / factor):.2f} times"
            word = more if factor > 1 else less
            same = "in the same time" if heading.startswith("time") else "with the same memory"
            said.append(f"{times} {word}" if found[heading].is_change else same)
    changed = [
        d.heading
        for d in differences
        if d.is_change and (d.section not in ("run", "steps", "machine") or d.heading == COMMAND)
    ]
    what = ", ".join(dict.fromkeys(changed[:6])) or "neither command, plan, versions nor settings"
    return f"The second run is {' and '.join(said) or 'not comparable'}; what differs: {what}."


def format_comparison(differences: list[Difference], names: tuple[str, str]) -> str:
    """Return the comparison as lines for a terminal."""
    lines = [summarise(differences)]
    for section, rows in _sections(differences):
        shown = [row for row in rows if row.is_change or section in ("run", "steps")]
        if not shown:
            lines += ["", f"{section}: the same"]
            continue
        head = (section, *(shorten(plain(name), NAME_LENGTH) for name in names), "")
        cells = [
            tuple(
                shorten(plain(text), NAME_LENGTH)
                for text in (row.heading, row.first, row.second, row.change)
            )
            for row in shown
        ]
        lines += ["", *align([head, *cells])]
    return "\n".join(lines)


def format_comparison_html(differences: list[Difference], names: tuple[str, str], css: str) -> str:
    """Return the comparison as a page; it holds no script at all."""
    body = ""
    for section, rows in _sections(differences):
        cells = "".join(
            f"<tr><th scope='row'>{_escape(row.heading)}</th><td>{_escape(row.first)}</td>"
            f"<td>{_escape(row.second)}</td>"
            f"<td{' class=changed' if row.is_change else ''}>{_escape(row.change)}</td></tr>"
            for row in rows
        )
        head = "".join(f"<th>{_escape(name)}</th>" for name in ("", *names, ""))
        body += (
            f"<section><h2>{_escape(section.capitalize())}</h2>"
            f"<div class='wide'><table class='compared'><thead><tr>{head}</tr>"
            f"</thead><tbody>{cells}</tbody></table></div></section>"
        )
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        "<!doctype html><html lang='en' data-ready='true'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>Two runs</title><style>{css}</style></head><body><main><header>"
        f"<h1>Two runs</h1><p class='headline'>{_escape(summarise(differences))}</p></header>"
        f"{body}</main></body></html>\n"
    )


def _compare_run(first: Content, second: Content) -> Iterator[Difference]:
    yield Difference("run", "what ran", first.name, second.name)
    yield Difference("run", "status", first.status, second.status)
    one, other = (content.reproduce.rpartition("\n")[2] for content in (first, second))
    if first.kind == second.kind == "watch":
        yield Difference("run", COMMAND, one, other)
    here, there = ({row.heading: row for row in content.metrics} for content in (first, second))
    for heading in [*here, *(name for name in there if name not in here)]:
        a, b = here.get(heading), there.get(heading)
        yield Difference(
            "run", heading, a.text if a else UNKNOWN, b.text if b else UNKNOWN, _divide(a, b)
        )


def _compare_steps(first: Content, second: Content) -> Iterator[Difference]:
    one, other = ({step.name: step for step in content.steps} for content in (first, second))
    for name in [*one, *(name for name in other if name not in one)][:MOST_STEPS]:
        yield from _compare_step(name, one.get(name), other.get(name))


def _compare_step(name: str, a: StepRow | None, b: StepRow | None) -> Iterator[Difference]:
    for what, pick, show in _OF_STEPS:
        found = _compare_numbers(f"{name}: {what}", a, b, pick, show)
        if (found.first, found.second) != (UNKNOWN, UNKNOWN):
            yield found


_OF_STEPS: tuple[tuple[str, Callable[[StepRow], float | None], Callable[[float], str]], ...] = (
    ("tasks", lambda step: step.tasks, lambda number: f"{number:,.0f}"),
    ("median time", lambda step: step.seconds.median if step.seconds else None, format_seconds),
    ("largest peak", lambda step: step.peak_bytes.most if step.peak_bytes else None, format_bytes),
)


def _compare_numbers(
    heading: str,
    first: StepRow | None,
    second: StepRow | None,
    pick: Callable[[StepRow], float | None],
    show: Callable[[float], str],
) -> Difference:
    a, b = (pick(step) if step is not None else None for step in (first, second))
    factor = b / a if a and b else None
    one, other = (show(value) if value is not None else UNKNOWN for value in (a, b))
    return Difference("steps", heading, one, other, factor)


def _compare_rows(
    section: str, first: Mapping[str, str], second: Mapping[str, str]
) -> Iterator[Difference]:
    for name in [*first, *(name for name in second if name not in first)]:
        yield Difference(section, name, first.get(name, UNKNOWN), second.get(name, UNKNOWN))


def _plan_of(content: Content) -> dict[str, str]:
    """Return the rows of the last stage, those that continue others put together."""
    found: dict[str, str] = {}
    heading = ""
    for row in content.plan[-1][1] if content.plan else ():
        heading = row.heading or heading
        found[heading] = f"{found[heading]}; {row.text}" if heading in found else row.text
    return found


def _texts(rows: tuple[Row, ...]) -> dict[str, str]:
    return {row.heading: row.text for row in rows}


def _divide(first: Row | None, second: Row | None) -> float | None:
    if first is None or second is None or not first.value or not second.value:
        return None
    return second.value / first.value


def _sections(differences: list[Difference]) -> list[tuple[str, list[Difference]]]:
    names = dict.fromkeys(difference.section for difference in differences)
    return [(name, [d for d in differences if d.section == name]) for name in names]


def _escape(text: str) -> str:
    return f"<bdi>{html.escape(shorten(plain(text), 300))}</bdi>"
