import pytest

from barrow.sites.cgroup import (
    Bounds,
    MemoryBound,
    Mount,
    list_folders,
    parse_membership,
    parse_mounts,
    read_bounds,
)

V1 = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:7 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
"""
V2 = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = V1 + "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"


@pytest.fixture
def make_tree(tmp_path):
    """Write a fake ``proc`` and ``sys`` from the text of each file."""

    def make(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return make


def test_version_2_limits_of_the_own_group_and_its_ancestors_are_read(make_tree):
    root = make_tree(
        {
            "proc/self/cgroup": "0::/user/job\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/user/job/memory.max": "max\n",
            "sys/fs/cgroup/user/job/memory.high": "4000\n",
            "sys/fs/cgroup/user/job/memory.current": "1000\n",
            "sys/fs/cgroup/user/job/memory.stat": "anon 700\ninactive_file 300\n",
            "sys/fs/cgroup/user/memory.max": "9000\n",
            "sys/fs/cgroup/user/memory.current": "2000\n",
            "sys/fs/cgroup/user/job/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user/cpu.max": "250000 100000\n",
        }
    )
    bounds = read_bounds(root)
    assert bounds == Bounds((MemoryBound(4000, 700), MemoryBound(9000, 2000)), (2.5,))


def test_version_1_limits_are_read_from_each_controller(make_tree):
    root = make_tree(
        {
            "proc/self/cgroup": "4:memory:/job\n2:cpu,cpuacct:/other\n1:name=systemd:/x\n",
            "proc/self/mountinfo": V1,
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "5000\n",
            "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "900\n",
            "sys/fs/cgroup/memory/job/memory.stat": "inactive_file 1\ntotal_inactive_file 400\n",
            "sys/fs/cgroup/cpu,cpuacct/other/cpu.cfs_quota_us": "300000\n",
            "sys/fs/cgroup/cpu,cpuacct/other/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        }
    )
    assert read_bounds(root) == Bounds((MemoryBound(5000, 500),), (3.0,))


def test_a_hybrid_machine_is_read_in_both_trees(make_tree):
    root = make_tree(
        {
            "proc/self/cgroup": "4:memory:/job/7\n0::/slice\n",
            "proc/self/mountinfo": HYBRID,
            "sys/fs/cgroup/memory/job/7/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "6000\n",
            "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "10\n",
            "sys/fs/cgroup/unified/slice/cpu.max": "50000 100000\n",
        }
    )
    bounds = read_bounds(root)
    assert min(bound.limit_bytes for bound in bounds.memory) == 6000
    assert bounds.cores == (0.5,)


def test_a_machine_without_control_groups_has_no_limits(tmp_path):
    assert read_bounds(tmp_path) == Bounds()


def test_a_controller_that_this_process_is_not_in_is_passed_over(make_tree):
    root = make_tree({"proc/self/cgroup": "2:cpu:/\n", "proc/self/mountinfo": V1})
    assert read_bounds(root) == Bounds()


def test_a_group_above_the_mount_is_seen_at_the_mount_point():
    mount = Mount("/sys/fs/cgroup", "/", 2, ("",))
    assert list_folders(mount, "/../../outside") == ["/sys/fs/cgroup"]
    inner = Mount("/sys/fs/cgroup", "/docker/a", 1, ("memory",))
    assert list_folders(inner, "/elsewhere") == ["/sys/fs/cgroup"]


def test_spaces_in_a_mount_point_are_read():
    (mount,) = parse_mounts(r"1 2 0:3 / /my\040groups rw - cgroup2 cgroup2 rw")
    assert mount.point == "/my groups"


def test_lines_that_are_not_understood_are_passed_over():
    assert parse_membership("nonsense\n\n0::/a:b") == {"": "/a:b"}
    assert parse_mounts("nonsense\n\n1 2 - \n") == []
