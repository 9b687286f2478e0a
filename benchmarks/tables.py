"""Read results of benchmarks into tables: whatever their scripts have written.

A result is JSON. All have a question, a date, a machine and versions; below that a script keeps
what it likes. Here any dictionary whose values are runs (a dictionary of numbers, or a list of
them for repeats) is a table: a row for each name, a column for each number. The rest are facts.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEADER = ("question", "date", "machine", "versions")
# The same thing under the names that scripts have for it.
SAME = {"wall_seconds": "wall", "cpu_seconds": "cpu", "peak_bytes": "peak", "CPU": "cpu"}
PLAIN = ("plain", "NumPy", "without")
TWICE = "without, once more"
SAFETY = {"safe": "barrow", "bare": "without any of it", "bare again": TWICE}
WATCHED = {"alone": "without", "watched": "barrow watch"}
SIMULATED = "10 million chunks on 10,000 workers, simulated"
NOT_SHOWN = ("exit_code", "output", "sha", "sums")


@dataclass(frozen=True)
class Row:
    """One way to do something, measured several times."""

    label: str
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By column, in the order of the repeats."""
    failure: str = ""

    @property
    def side(self) -> str:
        """Whose way it is: barrow's, the plain function's, or a peer's."""
        if "barrow" in self.label:
            return "barrow"
        return "plain" if self.label.startswith(PLAIN) else "peer"

    def least(self, column: str) -> float | None:
        """Return the best of the repeats: what the machine did meanwhile only ever adds."""
        return min(self.values[column], default=None) if column in self.values else None


@dataclass(frozen=True)
class Table:
    """Ways to do the same thing."""

    title: str
    rows: tuple[Row, ...]

    @property
    def columns(self) -> list[str]:
        """Names of all numbers, in the order of their first row."""
        return list(dict.fromkeys(name for row in self.rows for name in row.values))

    @property
    def ours(self) -> Row | None:
        """The row of barrow that others are compared with: as it decides by itself, if measured."""
        own = [row for row in self.rows if row.side == "barrow" and not row.failure]
        alone = [row for row in own if row.label == "barrow" or "left to itself" in row.label]
        return next(iter(alone or own), None)

    @property
    def others(self) -> list[Row]:
        """Ways that are not barrow's; nor the same way measured twice, to see how it scatters."""
        return [row for row in self.rows if row.side != "barrow" and row.label != TWICE]


@dataclass(frozen=True)
class Result:
    """What one benchmark has found."""

    name: str
    header: Mapping[str, Any]
    tables: tuple[Table, ...]
    facts: Mapping[str, Any]

    @property
    def is_busy(self) -> bool:
        """Whether the machine had other things to do: then CPU seconds tell more than the wall."""
        machine = self.header["machine"]
        has_cpu = any("cpu" in table.columns for table in self.tables)
        return has_cpu and bool(machine["load"][0] > 1.5 * machine["cores"])


def read_results(folder: Path) -> list[Result]:
    """Return all results of a folder, by name."""
    return [
        read_result(path.stem, json.loads(path.read_text()))
        for path in sorted(folder.glob("*.json"))
    ]


def read_result(name: str, content: Mapping[str, Any]) -> Result:
    """Return the tables and facts of one result.

    Examples
    --------
    >>> runs = {"plain": [{"wall": 2.0}], "barrow": {"wall": 1.0}}
    >>> [table] = read_result("speed", {"question": "Faster?", "runs": runs}).tables
    >>> [(row.label, row.side, row.values) for row in table.rows]
    [('plain', 'plain', {'wall': (2.0,)}), ('barrow', 'barrow', {'wall': (1.0,)})]
    """
    header = {key: content[key] for key in HEADER if key in content}
    rest = {key: value for key, value in content.items() if key not in HEADER}
    found = list(_walk((), ADAPTERS.get(name, dict)(rest)))
    tables = tuple(item for item in found if isinstance(item, Table))
    return Result(name, header, tables, dict(item for item in found if isinstance(item, tuple)))


def _walk(path: tuple[str, ...], node: Mapping[str, Any]) -> Iterator[Table | tuple[str, Any]]:
    runs = {name: value for name, value in node.items() if _is_run(value)}
    if runs:
        yield Table(" · ".join(path), tuple(_read_row(*item) for item in runs.items()))
    for name, value in node.items():
        if name in runs or name in NOT_SHOWN:
            continue
        if isinstance(value, Mapping):
            # "runs" and "results" say nothing that the page does not say already.
            yield from _walk(path if name in ("runs", "results", "rows") else (*path, name), value)
        elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            yield " · ".join((*path, name)), ", ".join(value)
        elif not isinstance(value, list):
            yield " · ".join((*path, name)), value


def _is_run(value: Any) -> bool:
    repeats = value if isinstance(value, list) else [value]
    return (
        bool(repeats)
        and all(
            isinstance(one, Mapping) and ("failed" in one or any(map(_is_number, one.values())))
            for one in repeats
        )
        and not any(isinstance(inner, Mapping) for one in repeats for inner in one.values())
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_row(label: str, value: Any) -> Row:
    repeats = value if isinstance(value, list) else [value]
    for one in repeats:
        if "failed" in one or one.get("exit_code"):
            said = str(one.get("failed") or one.get("output") or "").strip().splitlines()
            return Row(label, failure=said[-1] if said else "no reason was given")
    values: dict[str, list[float]] = {}
    for one in repeats:
        for key, number in one.items():
            if _is_number(number) and key not in NOT_SHOWN:
                values.setdefault(SAME.get(key, key), []).append(number)
    return Row(label, {key: tuple(numbers) for key, numbers in values.items()})


def _adapt_raster(content: Mapping[str, Any]) -> dict[str, Any]:
    """Two questions in one list: all values, or only their sum."""
    runs: dict[str, dict[str, Any]] = {"all values": {}, "only the sum": {}}
    for label, found in content["runs"].items():
        runs["only the sum" if "sum" in label else "all values"][label] = found
    return {"runs": runs}


def _adapt_regret(content: Mapping[str, Any]) -> dict[str, Any]:
    """A row for each function: the plan, the best of the sweep, fixed sizes, the plain call."""
    rows: dict[str, dict[str, float]] = {}
    totals: dict[str, float] = {}
    for name, found in content["results"].items():
        best = found["best_seconds"]
        ways = {
            "barrow": found["plan_seconds"],
            "best of a sweep": best,
            **{f"always {rule}": times * best for rule, times in found["rules"].items()},
            "plain call": found["plain_call_seconds"],
        }
        totals = {way: totals.get(way, 0.0) + seconds for way, seconds in ways.items()}
        rows[name] = {
            "plan_seconds": ways["barrow"],
            "best of a sweep_seconds": best,
            "plan ÷ best": found["regret"],
            **{f"{rule} ÷ best": times for rule, times in found["rules"].items()},
            "plain call ÷ plan": ways["plain call"] / ways["barrow"],
            "measuring_seconds": found["probing_seconds"],
            "measuring again_seconds": found["planning_again_seconds"],
            "peaks measured": len(found["peak_measured"] or ()),
        }
    together = {way: {"wall": seconds} for way, seconds in totals.items()}
    summary = {name: said for name, said in content["summary"].items() if name != "rules_median"}
    return {"all functions together": together, "each function": rows, **summary}


def _adapt_safety(content: Mapping[str, Any]) -> dict[str, Any]:
    """Pairs of wall and CPU become runs."""
    return {
        engine: {
            SAFETY[way]: [{"wall": wall, "cpu": cpu} for wall, cpu in pairs]
            for way, pairs in found["runs"].items()
        }
        for engine, found in content["results"].items()
    }


def _adapt_starting(content: Mapping[str, Any]) -> dict[str, Any]:
    """The first cluster of a process, with imports, and the second."""
    return {
        f"the {turn} cluster of a process": {
            label: [
                {"wall": lap[f"{turn} ready"], "cpu": lap[f"{turn} CPU"],
                 "until it is gone_seconds": lap[f"{turn} gone"]}
                for lap in laps
            ]
            for label, laps in content["laps"].items()
        }
        for turn in ("first", "second")
    }  # fmt: skip


def _adapt_miniscope(content: Mapping[str, Any]) -> dict[str, Any]:
    """What MiniAn's steps took is a table of its own."""
    movies: dict[str, dict[str, Any]] = {}
    steps = {}
    for movie, found in content["rows"].items():
        peer = found.get("minian")
        movies[movie] = dict(found)
        if peer is not None:
            steps[movie] = peer.get("steps", {})
            numbers = {name: value for name, value in peer.items() if name != "steps"}
            movies[movie] = {"MiniAn": numbers, "barrow": found["barrow"]}
    return {**movies, "steps of MiniAn, seconds": steps}


def _adapt_watching(content: Mapping[str, Any]) -> dict[str, Any]:
    """Each program alone and watched, in turns; then what watching adds to one task."""
    programs = {name: found for name, found in content.items() if "overhead" in found}
    cost = ("overhead", "microseconds_per_task", "cpu_microseconds_per_task")
    memory = content.get("memory", {}).items()
    return {
        **{name: found for name, found in content.items() if name not in programs},
        "memory": {name.replace("_", " "): found for name, found in memory},
        **{
            f"{found['tasks']:,} tasks of {name}": {
                WATCHED[way]: [
                    {"wall": wall, "cpu": cpu}
                    for wall, cpu in zip(walls, found["cpu_seconds"][way], strict=True)
                ]
                for way, walls in found["wall_seconds"].items()
            }
            for name, found in programs.items()
        },
        "what watching adds": {
            name: {what: found[what] for what in cost} for name, found in programs.items()
        },
    }


def _adapt_what_if(content: Mapping[str, Any]) -> dict[str, Any]:
    """A row for each kind of work; the real time was measured several times."""
    tables: dict[str, dict[str, Any]] = {}
    for row in content["rows"]:
        title = f"from {row['from_workers']} to {row['to_workers']} workers"
        foreseen = {
            "tasks": row["tasks"],
            "before_seconds": row["before_seconds"],
            "foreseen_seconds": row["predicted_seconds"],
        }
        errors = {"error": row["error"], "error of halving": row["error_of_halving"]}
        tables.setdefault(title, {})[row["work"]] = [
            {**foreseen, "real_seconds": real, **errors} for real in row["real_seconds"]
        ]
    simulated = content["simulated_seconds"].items()
    return {
        **tables,
        SIMULATED: {name: {"wall": seconds} for name, seconds in simulated},
        **{name: content[name] for name in ("median_error", "worst_error")},
    }


ADAPTERS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "miniscope": _adapt_miniscope,
    "raster": _adapt_raster,
    "regret": _adapt_regret,
    "safety": _adapt_safety,
    "starting": _adapt_starting,
    "watching": _adapt_watching,
    "what_if": _adapt_what_if,
}
