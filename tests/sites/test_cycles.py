from soak.cycles import run_cycles


def test_clusters_that_come_and_go_leave_nothing_behind(tmp_path):
    run_cycles(3, tmp_path)
