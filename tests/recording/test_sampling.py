"""Samples: few are kept, and no peak is lost."""

import os
import subprocess
import sys

import pytest

from barrow.recording.processes import PortableTree, Use, follow
from barrow.recording.sampling import Sampler


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


class Tree:
    """Processes whose memory the test decides."""

    def __init__(self):
        self.held = {}
        self.peaks = {}

    def find(self):
        pass

    def read_memory(self):
        return dict(self.held)

    def read_use(self, pid):
        return Use(1.0, 0, 0, self.peaks.get(pid))


@pytest.fixture
def tree():
    return Tree()


@pytest.fixture
def sampler(tree):
    return Sampler(tree, clock=Clock())


def feed(sampler, tree, *moments):
    for held in moments:
        sampler._clock.now += 0.02
        tree.held = held
        sampler.tick()


def test_a_plain_is_kept_as_one_sample_for_each_process(sampler, tree):
    feed(sampler, tree, *[{1: 100, 2: 50}] * 20)
    assert [(pid, rss) for _, pid, rss, _ in sampler.take()] == [(1, 100), (2, 50)]


def test_the_moment_of_the_joint_peak_is_kept_whole(sampler, tree):
    feed(sampler, tree, {1: 100, 2: 50}, {1: 300, 2: 300}, {1: 100, 2: 50})
    rows = sampler.take()
    times = {when for when, _, rss, _ in rows if rss == 300}
    assert len(times) == 1
    assert sampler.peak_bytes == 600


def test_the_peak_of_each_process_is_kept(sampler, tree):
    feed(sampler, tree, {1: 500, 2: 10}, {1: 10, 2: 600}, {1: 10, 2: 10})
    kept = [(pid, rss) for _, pid, rss, _ in sampler.take()]
    assert (1, 500) in kept
    assert (2, 600) in kept


def test_what_came_and_went_between_two_looks_is_kept(sampler, tree):
    tree.peaks = {1: 100}
    feed(sampler, tree, {1: 100})
    sampler.take()
    tree.peaks = {1: 900}
    feed(sampler, tree, {1: 100})
    assert max(rss for _, pid, rss, _ in sampler.take()) == 900


def test_a_peak_from_before_the_run_is_not_of_the_run(sampler, tree):
    tree.peaks = {1: 900}
    feed(sampler, tree, {1: 100}, {1: 110})
    assert max(rss for _, pid, rss, _ in sampler.take()) == 110


def test_a_process_that_ended_is_noticed(sampler, tree):
    feed(sampler, tree, {1: 100, 2: 50}, {1: 100})
    assert set(sampler.gone) == {2}
    assert set(sampler.seen) == {1, 2}


@pytest.mark.parametrize("make", [follow, PortableTree])
def test_a_real_tree_has_children_and_their_memory(make):
    child = subprocess.Popen(
        [sys.executable, "-c", "x = bytearray(50_000_000); print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        child.stdout.readline()
        tree = make(os.getpid())
        tree.find()
        assert tree.read_memory()[child.pid] > 50_000_000
        assert tree.read_use(child.pid).cpu_seconds >= 0
        child.communicate(b"\n")
    assert child.pid not in tree.read_memory()
