"""Each illness is named in a program that really has it, and nothing else is claimed."""

from contextlib import nullcontext

import pytest

from barrow.diagnosing.rules import RULES
from soak.illnesses import is_named, list_wrong, observe, open_client
from soak.sick import SICK

# Longer than a test should be; ``python -m soak.illnesses`` runs them all, ten times.
LONG = {
    *("fragmented", "killed and retried", "spare workers", "to and fro", "a large graph"),
    *("paused for ever", "nobody offers it", "a slow machine", "too many threads"),
}
ELSEWHERE = {"CHK05", "WRK07", "DAT06", "SLM01", "SLM02", "SLM03", "SLM04"}
"""Rules that are shown in tests of their own."""


@pytest.mark.parametrize("name", [name for name in SICK if name not in LONG])
def test_an_illness_is_named_with_its_step_or_worker_and_nothing_else_is_claimed(
    name, client_for, tmp_path
):
    sick = SICK[name]
    is_alone = sick.is_lethal or sick.environment
    where = (
        open_client(sick.cluster, sick.environment)
        if is_alone
        else nullcontext(client_for(dict(sick.cluster)))
    )
    with where as client, client.as_current():
        result = observe(sick.work, client, tmp_path / "run")
    assert is_named(sick, result), [f"{f.code}: {f.claim}" for f in result.findings]
    assert list_wrong(sick, result) == []


def test_every_rule_has_a_program_that_shows_it():
    assert {sick.code for sick in SICK.values()} | ELSEWHERE == set(RULES)
