"""One small movie, its truth and its cells, shared by the tests of a module."""

import pytest

from barrow import miniscope

SMALL = {"frames": 400, "height": 96, "width": 80, "cells": 6, "seed": 3, "motion": 1.5}


@pytest.fixture(scope="session")
def simulated():
    source, truth = miniscope.simulate(**SMALL)
    return source.read(source.everything), truth


@pytest.fixture(scope="session")
def found(simulated, tmp_path_factory):
    movie, _ = simulated
    folder = tmp_path_factory.mktemp("cells")
    return miniscope.run(movie, to=folder, cluster=False, quiet=True)
