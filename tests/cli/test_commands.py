"""The table of commands: what it says of each is what the command's own file says."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from raison.cli.app import app
from raison.cli.commands import MainCommands, StoreCommands, TrainCommands

ENTRIES = {
    f"{group}{name}": entry
    for group, commands in (
        ("", MainCommands),
        ("store ", StoreCommands),
        ("train ", TrainCommands),
    )
    for name, entry in commands.entries.items()
}


@pytest.mark.parametrize("name", ENTRIES)
def test_the_sentence_of_a_command_begins_its_docstring(name):
    entry = ENTRIES[name]
    paragraph = " ".join(inspect.getdoc(entry.callback).split("\n\n")[0].split())
    assert paragraph == entry.sentence


def test_every_command_is_listed_and_only_the_called_one_is_imported():
    code = (
        "import sys; from raison.cli.app import app; app(['--help'], standalone_mode=False); "
        "print([name for name in sys.modules if name.startswith('raison.cli.')])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    listed, _, imported = output.rpartition("[")
    for name in (*MainCommands.entries, *MainCommands.groups):
        assert f"  {name} " in listed
    assert "raison.cli.commands" in imported and "raison.cli.explain" not in imported


def test_a_name_that_is_no_command_gets_the_nearest_ones():
    for arguments, nearest in ((["explan"], "explain"), (["store", "verfy"], "verify")):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2 and nearest in result.output
