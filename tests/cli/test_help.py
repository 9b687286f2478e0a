"""Help that can be pasted, and a shell that completes."""

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from barrow.cli.examples import EXAMPLES
from barrow.cli.main import COMMANDS, main


def find_command(path):
    context, command = click.Context(main, info_name="barrow"), main
    for name in path.split():
        command = command.get_command(context, name)
        assert command is not None, f"there is no command {name!r}"
        context = click.Context(command, info_name=name, parent=context)
    return command


def list_paths():
    found = []
    for name in COMMANDS:
        command = find_command(name)
        below = command.commands if isinstance(command, click.Group) else ()
        found += [name, *(f"{name} {inner}" for inner in below)]
    return found


def call(*arguments):
    done = CliRunner().invoke(main, arguments, prog_name="barrow")
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("path", list_paths())
def test_the_help_of_every_command_has_an_example(path):
    said = call(*path.split(), "--help").splitlines()
    shown = [line for line in said if f"barrow {path}" in line and "Usage:" not in line]
    assert shown, f"Add an example of {path!r} to cli/examples.py."


@pytest.mark.parametrize("path", list_paths())
def test_examples_use_options_that_there_are(path):
    for example in EXAMPLES.get(path, ()):
        words = shlex.split(re.sub(r".*\$\(|\).*", "", example))[1:]
        if "watch" in words:
            words = words[: words.index("script.py")] if "script.py" in words else words
        below = [name for name in (path, " ".join(words[:2])) if name in EXAMPLES][-1]
        known = {option for param in find_command(below).params for option in param.opts}
        asked = {word for word in words if re.match(r"--?[a-z]", word)} - {"-m"}
        assert asked <= known, f"{example}: {asked - known}"


def test_the_help_of_a_command_ends_with_its_examples():
    told = call("map", "--help")
    assert told.rstrip().splitlines()[-4].strip() == EXAMPLES["map"][0]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell):
    told = call("completion", shell)
    assert "_BARROW_COMPLETE" in told
    assert "barrow" in told


def test_commands_and_options_are_completed():
    from click.shell_completion import BashComplete

    complete = BashComplete(main, {}, "barrow", "_BARROW_COMPLETE")
    assert [item.value for item in complete.get_completions([], "rep")] == ["report"]
    assert "--memory" in [item.value for item in complete.get_completions(["map"], "--me")]
