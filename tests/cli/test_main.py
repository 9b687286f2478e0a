"""The command itself: quick to answer, clear when it refuses."""

import subprocess
import sys

import barrow
from barrow.cli.main import COMMANDS

SHOW_HELP = "import sys; from barrow.cli.main import main; sys.argv = ['barrow', '--help']; "


def test_help_names_every_command_and_imports_nothing_heavy():
    heavy = "{'numpy', 'dask', 'distributed', 'xarray', 'zarr', 'rich'}"
    code = f"{SHOW_HELP} main(standalone_mode=False); print({heavy} & set(sys.modules))"
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert all(f"  {name}  " in output for name in COMMANDS)
    assert output.splitlines()[-1] == "set()"


def test_help_takes_less_than_half_a_second_of_work():
    code = f"{SHOW_HELP} main(standalone_mode=False); import time; print(time.process_time())"
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert float(output.splitlines()[-1]) < 0.5


def test_the_console_script_is_installed_and_knows_its_version():
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="barrow")
    assert script.value == "barrow.cli.main:main"


def test_the_version_is_that_of_the_package(run_barrow):
    assert run_barrow("--version").stdout == f"barrow {barrow.__version__}\n"


def test_an_unknown_command_is_a_usage_error(run_barrow):
    assert "No such command 'fly'" in run_barrow("fly", status=2).stderr
