"""What the facts of a record say of the run: its plan, its name."""

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from barrow.errors import BarrowError
from barrow.model.plan import Plan


def read_plan(facts: Mapping[str, Any]) -> Plan | None:
    """Return the plan of the run; None for a program that was watched."""
    saved = facts.get("plan")
    if not saved:
        return None
    try:
        return Plan.from_json(saved if isinstance(saved, str) else json.dumps(saved))
    except BarrowError:
        return None  # of another version: all that was measured can still be told


def name_program(facts: Mapping[str, Any]) -> str:
    """Return what a watched program is called.

    Examples
    --------
    >>> name_program({"command": ["-m", "analysis.fit", "--fast"]})
    'analysis.fit'
    >>> name_program({"command": ["scripts/fit.py"]})
    'fit.py'
    """
    command = facts.get("command") or []
    words = command if isinstance(command, list) else str(command).split()
    named = [str(word) for word in words if not str(word).startswith("-")]
    return str(facts.get("name") or (PurePath(named[0]).name if named else "program"))
