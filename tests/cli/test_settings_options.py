"""Options of a command that stand in the fields of a dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from raison.cli.settings_options import Chosen, FieldsOf, with_settings_options
from raison.cli.train_reports import training_command_line
from raison.core.from_settings import setting


@dataclass(frozen=True)
class Settings:
    """Some settings, of which one is no option."""

    words: int = setting(3, "How many words.")
    own_words: bool | None = setting(None, "Words of its own.", option="--own/--given")
    width: int = setting(300, "Follows from the words.", derived=True)
    share: tuple[float, ...] = setting((0.5,), "Shares.", option="--word-share", derived=True)
    hidden: float = 1.0


given: list[Chosen] = []


@with_settings_options
def settings_command(
    *,
    settings: Annotated[Chosen, FieldsOf(Settings)],
    name: Annotated[str, typer.Option("--name")] = "x",
) -> None:
    """A command."""
    given.append({"name": name, **settings})


def chosen_by(*words: str) -> Chosen:
    app = typer.Typer()
    app.command()(settings_command)
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return given.pop()


def test_fields_become_options_and_what_nobody_chose_is_left_out():
    assert chosen_by() == {"name": "x", "words": 3}
    assert chosen_by("--words", "5", "--given", "--width", "8") == {
        "name": "x",
        "words": 5,
        "own_words": False,
        "width": 8,
    }
    shares = chosen_by("--word-share", "0.1", "--word-share", "0.2", "--name", "y")
    assert shares == {"name": "y", "words": 3, "share": [0.1, 0.2]}


def test_help_tells_defaults_of_fields():
    app = typer.Typer(rich_markup_mode=None)
    app.command()(settings_command)
    told = CliRunner().invoke(app, ["--help"]).output
    assert "How many words.  [default: 3]" in told and "300" not in told and "hidden" not in told


def test_the_command_is_written_with_what_is_not_usual():
    chosen = {"settings": {"words": 3, "own_words": True, "width": 8}, "name": "y"}
    line = training_command_line(settings_command, "thing", ["-m", "a model"], chosen)
    assert line == "raison train thing -m 'a model' --out FOLDER --own --width 8 --name y"
