"""Healthy programs of many kinds: none is warned of."""

import pytest

from soak.healthy import HEALTHY
from soak.illnesses import observe
from soak.sick import PAIR


def test_there_are_at_least_25_kinds():
    assert len(HEALTHY) >= 25


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_is_not_warned_of(name, client_for, tmp_path):
    client = client_for(dict(PAIR))
    with client.as_current():
        result = observe(HEALTHY[name], client, tmp_path / "run")
    assert [f"{f.code}: {f.claim}" for f in result.findings if f.is_trouble] == []
