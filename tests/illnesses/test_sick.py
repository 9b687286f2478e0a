"""Each illness is named in a program that really has it, and nothing else is claimed."""

from contextlib import nullcontext

import pytest

from barrow.diagnosing.rules import RULES
from soak.illnesses import is_named, list_wrong, observe, observe_own, open_client
from soak.sick import ALONE, SICK

QUICK = (
    *("killed at its limit", "a crash", "small chunks", "uneven load", "a straggler"),
    *("waiting for others", "a heavy graph", "computed twice", "tried again", "a blocked loop"),
)
"""Some of each family that take a moment; ``python -m soak.illnesses`` runs them all, ten times."""
QUEUED = {"SLM01", "SLM02", "SLM03", "SLM04"}
"""What needs a queue is shown in the tests of SLURM."""


@pytest.mark.parametrize("name", QUICK)
def test_an_illness_is_named_with_its_step_or_worker_and_nothing_else_is_claimed(
    name, client_for, in_use, tmp_path
):
    sick = SICK[name]
    if sick.cluster is ALONE:
        result = observe_own(sick.work, tmp_path / "run")
    else:
        is_apart = sick.is_lethal or sick.environment
        where = (
            open_client(sick.cluster, sick.environment)
            if is_apart
            else nullcontext(client_for(dict(sick.cluster)))
        )
        with where as client, in_use(client):
            result = observe(sick.work, client, tmp_path / "run")
    assert is_named(sick, result), [f"{f.code}: {f.claim}" for f in result.findings]
    assert list_wrong(sick, result) == []


def test_every_rule_has_a_program_that_shows_it():
    assert {sick.code for sick in SICK.values()} | QUEUED == set(RULES)
