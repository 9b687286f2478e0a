"""Put what was measured into the pages of findings: ``python -m soak.pages``.

Each page ends with a real example and with numbers before and after its cure, from the results of
``python -m soak.illnesses`` and ``python -m soak.illnesses --cures``.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from soak.illnesses import RESULTS

PAGES = Path(__file__).parents[1] / "docs" / "findings"
HEADING = "\n## A real example\n"
TABLE = """\
Before and after, with `python -m soak.illnesses --cures` on {cores} cores{others}:

| program | time, ill | time, cured | memory, ill | memory, cured |
|---|---|---|---|---|
"""
UNMEASURED = {
    "WRK07": "There is nothing to measure before and after: one waits, or looks into the code.",
}
"""Why there is no table, where no cure can be followed by a program."""


def main() -> None:
    """Write the end of each page anew of which something is known."""
    found, cures = (_read(name) for name in ("illnesses", "cures"))
    codes = {row["code"] for row in found["programs"] if row.get("example")}
    for code in sorted(codes):
        path = PAGES / f"{code}.md"
        text = path.read_text().partition(HEADING)[0].rstrip()
        examples = [row for row in found["programs"] if row["code"] == code and row["example"]]
        measured = [row for row in cures["programs"] if row["code"] == code]
        parts = [text, HEADING.strip(), *map(_show, examples)]
        if measured:
            table = TABLE.format(**_describe(cures["machine"]))
            parts.append(table + "\n".join(map(_compare, measured)))
        elif code in UNMEASURED:
            parts.append(UNMEASURED[code])
        path.write_text("\n\n".join(parts) + "\n")


def _read(name: str) -> dict[str, Any]:
    path = RESULTS / f"{name}.json"
    empty: dict[str, Any] = {"programs": [], "machine": {"cores": 0}}
    return json.loads(path.read_text()) if path.exists() else empty


def _describe(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the numbers depend on: the cores, and whether others used them meanwhile."""
    cores, load = machine["cores"], machine.get("load", [0.0])[0]
    others = f" that others used as well (a load of {load:.0f})" if load > 3 * cores else ""
    return {"cores": cores, "others": others}


def _show(row: Mapping[str, Any]) -> str:
    place = f'The program "{row["name"]}" of `soak/sick.py`:'
    return f"{place}\n\n```text\n{row['example']}\n```"


def _compare(row: Mapping[str, Any]) -> str:
    seconds = " | ".join(f"{value:.1f} s" for value in row["seconds"])
    memory = " | ".join(f"{value:.0f} MB" for value in row["megabytes"])
    return f"| {row['name']} | {seconds} | {memory} |"


if __name__ == "__main__":
    main()
