"""Healthy programs of many kinds: none is warned of."""

import pytest

from soak.healthy import HEALTHY
from soak.illnesses import list_wrong, observe
from soak.sick import PAIR

QUICK = (*("sums", "rechunk", "short", "submit_one_by_one", "kept", "bag", "local_threads"),)
"""One of each sort; ``python -m soak.illnesses`` runs them all."""


def test_there_are_at_least_25_kinds():
    assert len(HEALTHY) >= 25


@pytest.mark.parametrize("name", QUICK)
def test_a_healthy_program_is_not_warned_of(name, client_for, in_use, tmp_path):
    client = client_for(dict(PAIR))
    with in_use(client):
        result = observe(HEALTHY[name], client, tmp_path / "run")
    assert list_wrong(None, result) == []
