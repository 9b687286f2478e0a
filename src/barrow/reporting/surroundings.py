"""What a run stood on: its plan, the machine, versions, settings, and how to do it again."""

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from barrow.model.plan import Plan
from barrow.reporting.content import Row
from barrow.reporting.words import plain
from barrow.units import format_bytes

# Reports are passed on: what opens a door does not belong into them.
SECRETS = ("password", "secret", "token", "credential")


def list_plan(plan: Plan) -> tuple[tuple[str, tuple[Row, ...]], ...]:
    """Return the plan stage by stage, as it is printed."""
    return tuple(
        (
            " → ".join(stage.steps) if plan.before else "",
            tuple(Row(row.heading, row.text) for row in stage.rows()),
        )
        for stage in plan.stages
    )


def list_machine(facts: Mapping[str, Any]) -> tuple[Row, ...]:
    """Return the machine in rows."""
    found = [
        Row(heading, str(facts[name]))
        for name, heading in (("host", "host"), ("platform", "system"), ("python", "Python"))
        if facts.get(name)
    ]
    machine = facts.get("machine")
    if isinstance(machine, Mapping):
        found += [Row(name, text) for name, text in flatten(machine)]
    elif machine:
        found.append(Row("machine", str(machine)))
    return tuple(found)


def flatten(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested settings one by one, in words.

    Examples
    --------
    >>> list(flatten({"memory_bytes": 2**31, "dask": {"cores": 4, "api-token": "abc"}}))
    [('memory', '2.00 GiB'), ('dask.cores', '4'), ('dask.api-token', 'not shown')]
    """
    for name, value in values.items():
        name = f"{before}{name}"
        if isinstance(value, Mapping):
            yield from flatten(value, f"{name}.")
        elif value and any(word in name.lower() for word in SECRETS):
            yield name.replace("_", " "), "not shown"
        elif name.endswith("_bytes") and isinstance(value, (int, float)):
            yield name.removesuffix("_bytes").replace("_", " "), format_bytes(value)
        else:
            yield name.replace("_", " "), value if isinstance(value, str) else json.dumps(value)


def tell_how_to_repeat(facts: Mapping[str, Any], plan: Plan | None) -> str:
    """Return lines that start the same work again, as far as they are known."""
    lines = []
    command, folder = facts.get("command"), facts.get("folder")
    if folder:
        lines.append(f"cd {shlex.quote(plain(str(folder)))}")
    if command:
        words = command if isinstance(command, list) else [str(command)]
        lines.append(plain(shlex.join(["python", *map(str, words)])))
    if plan is not None:
        steps = plain(", ".join(plan.steps))
        if lines:
            lines.append("")
        lines += [
            "# in Python, with the same chunks and workers, without measuring again:",
            f"# {steps} on {plain(plan.source)}",
            'plan = barrow.plan(func, data, like="plan.json")',
            "run = barrow.run(plan)",
        ]
    return "\n".join(lines)
