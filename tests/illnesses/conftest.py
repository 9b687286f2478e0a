"""Clusters for ill programs: one of each kind serves all that do not spoil it."""

import json
from contextlib import ExitStack

import pytest

from soak.illnesses import open_client


@pytest.fixture(scope="session")
def client_for():
    """Return a function that gives a client of a cluster with some options."""
    with ExitStack() as stack:
        clients = {}

        def find(options):
            kind = json.dumps(options, sort_keys=True)
            if kind not in clients:
                clients[kind] = stack.enter_context(open_client(options))
            return clients[kind]

        yield find
