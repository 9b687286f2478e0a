import os
import resource
import subprocess
import sys

import pytest

from barrow.sites.cgroup import Bounds, MemoryBound
from barrow.sites.machine import (
    limit_memory,
    parse_meminfo,
    parse_slurm_cores,
    parse_slurm_memory,
    read_machine,
)

JOB = {"SLURM_JOB_ID": "7"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine of 8 cores and 1000 kB, of which 600 are free."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 600 kB\n")
    return tmp_path


def test_without_limits_the_machine_is_read_as_it_is(root):
    machine = read_machine(root, {})
    assert (machine.cores, machine.total_bytes, machine.available_bytes) == (8, 1024000, 614400)


def test_a_control_group_takes_from_total_and_from_available(root):
    (root / "proc/self/cgroup").write_text("0::/job\n")
    (root / "proc/self/mountinfo").write_text("1 2 0:3 / /cg rw - cgroup2 cgroup2 rw\n")
    folder = root / "cg/job"
    folder.mkdir(parents=True)
    (folder / "memory.max").write_text("500000")
    (folder / "memory.current").write_text("200000")
    (folder / "memory.stat").write_text("inactive_file 50000")
    (folder / "cpu.max").write_text("350000 100000")
    machine = read_machine(root, {})
    assert (machine.cores, machine.total_bytes, machine.available_bytes) == (3, 500000, 350000)


def test_a_slurm_job_gets_what_slurm_gave_it(root):
    given = {"SLURM_CPUS_PER_TASK": "2", "SLURM_CPUS_ON_NODE": "4", "SLURM_MEM_PER_CPU": "0"}
    assert read_machine(root, JOB | given).cores == 2


def test_a_resource_limit_counts(root, monkeypatch):
    limits = {resource.RLIMIT_AS: 300000, resource.RLIMIT_DATA: resource.RLIM_INFINITY}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits[kind], -1))
    machine = read_machine(root, {})
    assert (machine.total_bytes, machine.available_bytes) == (300000, 300000)


def test_where_there_is_no_proc_the_numbers_still_come(tmp_path):
    machine = read_machine(tmp_path, {})
    assert machine.cores >= 1
    assert 0 < machine.available_bytes <= machine.total_bytes


@pytest.mark.parametrize(
    ("given", "cores"),
    [
        ({"SLURM_CPUS_PER_TASK": "2", "SLURM_CPUS_ON_NODE": "8"}, [2]),
        ({"SLURM_CPUS_ON_NODE": "8"}, [8]),
        ({"SLURM_CPUS_PER_TASK": "two"}, []),
        ({}, []),
    ],
)
def test_slurm_says_how_many_cores_a_task_has(given, cores):
    assert parse_slurm_cores(JOB | given) == cores
    assert parse_slurm_cores(given) == []


@pytest.mark.parametrize(
    ("given", "mebibytes"),
    [
        ({"SLURM_MEM_PER_NODE": "100"}, [100]),
        ({"SLURM_MEM_PER_NODE": "0"}, []),
        ({"SLURM_MEM_PER_CPU": "50", "SLURM_CPUS_ON_NODE": "4"}, [200]),
        ({"SLURM_MEM_PER_CPU": "50"}, []),
    ],
)
def test_slurm_says_how_much_memory_a_task_has(given, mebibytes):
    assert parse_slurm_memory(JOB | given) == [count * 2**20 for count in mebibytes]
    assert parse_slurm_memory(given) == []


def test_an_overdrawn_group_has_nothing_left():
    bounds = Bounds(memory=(MemoryBound(100, 150),))
    assert limit_memory(1000, 900, bounds=bounds, ceilings=[]) == (100, 0)


def test_an_old_kernel_counts_its_cache_as_available():
    text = "MemTotal: 10 kB\nMemFree: 2 kB\nCached: 3 kB\n"
    assert parse_meminfo(text) == (10240, 5120)


def test_reading_a_machine_imports_nothing_heavy(python_environment):
    code = (
        "import sys, barrow.sites.machine; barrow.sites.machine.read_machine();"
        "print({'distributed', 'dask', 'psutil', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=python_environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == "set()", done.stderr
