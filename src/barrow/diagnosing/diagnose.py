"""Diagnose a record: all rules on its facts, what costs most first."""

import warnings
from collections.abc import Iterable

from barrow.diagnosing.facts import Facts, Tables
from barrow.diagnosing.rules import RULES
from barrow.model.finding import SEVERITIES, Finding

BYTES_PER_SECOND = 1e8
"""How memory and time are compared where findings are ordered."""


def diagnose(record: Tables, codes: Iterable[str] = RULES) -> list[Finding]:
    """Return what is wrong with a run; the gravest first, among these what costs most.

    Parameters
    ----------
    record
        Of a run of barrow's own or of a watched program, old or growing.
    codes
        Look for these only.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> run = barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0)))
    >>> diagnose(barrow.record(run.folder))
    []
    """
    facts = Facts(record)
    found: list[Finding] = []
    for code in codes:
        try:
            found += RULES[code](facts)
        except Exception as error:
            # One rule that stumbles over a strange record must not hide what the others see.
            warnings.warn(f"Rule {code} failed: {type(error).__name__}: {error}", stacklevel=2)
    return sorted(found, key=_rank)


def _rank(finding: Finding) -> tuple[int, float, str]:
    cost = finding.saves_seconds + finding.saves_bytes / BYTES_PER_SECOND
    return -SEVERITIES.index(finding.severity), -cost, finding.code
