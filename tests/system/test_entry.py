"""The same line works wherever Python runs: script, -c, REPL, notebook, any Dask client."""

import subprocess
import sys

import nbclient
import nbformat
import numpy as np
import pytest

import barrow

# Nothing guards the main module, and the function is a closure defined in it.
BODY = """
import numpy as np, barrow
offset = 3
def slow(x):
    return np.array([[sum([v] * 3) + offset for v in row] for row in x.tolist()])
data = np.arange(12.0).reshape(3, 4)
with barrow.cluster("local", workers=2, threads=1, memory="500MB") as cluster:
    plan = barrow.plan(slow, data, quiet=True).with_chunks(dim_0=1)
    assert plan.engine == "dask", plan.engine
    out = barrow.run(plan).result
    twice = barrow.map(lambda x: slow(x) * 2, data, quiet=True)
assert (out == data * 3 + 3).all() and (twice == 2 * out).all()
print("fine")
"""


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, done.stderr
    return done


def test_a_script_without_a_main_guard(tmp_path):
    (tmp_path / "script.py").write_text(BODY)
    done = run([sys.executable, "script.py"], cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("fine\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_python_c():
    assert run([sys.executable, "-c", BODY]).stdout == "fine\n"


def test_a_repl():
    # The interactive interpreter wants an empty line after a block.
    lines = BODY.replace("\ndata =", "\n\ndata =").replace("\nassert (out", "\n\nassert (out")
    done = run([sys.executable, "-i", "-q"], input=lines)
    assert done.stdout == "fine\n"
    assert "Traceback" not in done.stderr


def test_a_notebook():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(BODY)])
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    texts = [output.get("text", "") for output in notebook.cells[0].outputs]
    assert "".join(texts) == "fine\n"


def test_a_module_beside_the_script_reaches_the_workers(tmp_path):
    (tmp_path / "mine.py").write_text("def double(x):\n    return x * 2\n")
    (tmp_path / "script.py").write_text(
        "import numpy as np, barrow, mine\n"
        "with barrow.cluster('local', workers=1, threads=1, memory='500MB'):\n"
        "    print(barrow.map(mine.double, np.arange(4)).tolist())\n"
    )
    assert run([sys.executable, tmp_path / "script.py"]).stdout == "[0, 2, 4, 6]\n"


SELF_CHOSEN = """
import numpy as np, barrow
def hold_the_lock(x):
    return np.array([v * 2 + 1 for v in x.ravel().tolist()]).reshape(x.shape)
data = np.zeros((64, 64, 800))
plan = barrow.plan(hold_the_lock, data, quiet=True)
run = barrow.run(plan)
assert (run.result == 1).all()
print(plan.engine)
"""


def test_without_a_client_python_code_gets_processes_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(
        "from barrow.planning import layout\nlayout.START_SECONDS['processes'] = 0\n" + SELF_CHOSEN
    )
    done = run([sys.executable, tmp_path / "script.py"])
    assert (done.stdout, done.stderr) == ("processes\n", "")


def test_importing_does_nothing_visible(tmp_path):
    code = (
        "import sys, threading, os; before = dict(os.environ); import barrow;"
        "assert threading.active_count() == 1; assert dict(os.environ) == before;"
        "print([m for m in ('numpy', 'dask', 'distributed', 'zarr', 'xarray') if m in sys.modules])"
    )
    done = run([sys.executable, "-c", code], cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("processes", [True, False])
def test_a_cluster_that_somebody_else_made_is_used(processes):
    from distributed import Client, LocalCluster

    data = np.random.default_rng(0).random((40, 50))
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=processes, dashboard_address=None
        ) as theirs,
        Client(theirs) as client,
    ):
        plan = barrow.plan(lambda x: x + 1, data, quiet=True).with_chunks(dim_0=7)
        assert plan.engine == "dask"
        np.testing.assert_array_equal(barrow.run(plan).result, data + 1)
        out = barrow.map(lambda x: x * 2, data, cluster=theirs.scheduler_address, quiet=True)
        np.testing.assert_array_equal(out, data * 2)
        assert barrow.plan(np.sqrt, data, cluster=False).engine == "inline"
        assert client.status == "running"
