"""The commands of `raison` by name: the file of a command is imported when it is called, not for `raison --help`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
import typer.core
import typer.main

from raison.cli.guard import guarded

__all__ = ["CommandEntry", "CommandGroup", "MainCommands", "StoreCommands", "TrainCommands"]


@dataclass(frozen=True)
class CommandEntry:
    """Where a command is, and the first sentence of its docstring, which a list of commands shows."""

    file: str  # in raison.cli
    function: str
    sentence: str

    @property
    def callback(self) -> Callable[..., None]:
        """The function behind the command; its file is imported."""
        module = import_module(f"raison.cli.{self.file}")
        function: Callable[..., None] = getattr(module, self.function)
        return function


class CommandGroup(typer.core.TyperGroup):
    """Commands that are imported when they are called."""

    entries: ClassVar[Mapping[str, CommandEntry]]
    groups: ClassVar[Mapping[str, tuple[type[CommandGroup], str]]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in self.entries.items():
            self.commands[name] = typer.core.TyperCommand(name, help=entry.sentence)
        for name, (group, sentence) in self.groups.items():
            self.commands[name] = named_command(name, app_of_command_group(group, sentence))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, with its options."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else self.whole_command(name), rest

    def whole_command(self, name: str) -> Any:
        """A command with its options: its file is imported."""
        if name in self.entries:
            return named_command(name, app_of_command(self.entries[name]))
        return self.commands[name]


def app_of_command(entry: CommandEntry) -> typer.Typer:
    """An app of one command."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(guarded(entry.callback))
    return app


def app_of_command_group(group: type[CommandGroup], sentence: str) -> typer.Typer:
    """An app of the commands of a group."""
    app = typer.Typer(
        cls=group, help=sentence, no_args_is_help=True, rich_markup_mode=None, add_completion=False
    )

    @app.callback()
    def no_options() -> None: ...

    return app


def named_command(name: str, app: typer.Typer) -> Any:
    """The click command of an app, under the name by which it is called."""
    command = typer.main.get_command(app)
    command.name = name
    return command


class StoreCommands(CommandGroup):
    """The commands of `raison store`."""

    entries: ClassVar = {
        "verify": CommandEntry(
            "run", "verify_command", "Read every byte of a run: checksums, counts and keys."
        ),
        "repair": CommandEntry(
            "run",
            "repair_command",
            "Put damaged files aside, so that --resume makes their shards again.",
        ),
        "compact": CommandEntry("run", "compact_command", "Put many shards into few files."),
        "export": CommandEntry(
            "run", "export_command", "Write all explanations of a run as one table."
        ),
        "query": CommandEntry("run", "query_command", "Ask a run in SQL."),
    }


class TrainCommands(CommandGroup):
    """The commands of `raison train`."""

    entries: ClassVar = {
        "compatibility": CommandEntry(
            "train_compatibility",
            "train_compatibility_command",
            "Train a model that writes to behave on partial contexts: word dropout, as rationales ask about them.",
        ),
        "classifier": CommandEntry(
            "train_classifier",
            "train_classifier_command",
            "Train a text classifier with one attention over its words, sparse or tied to them, that explains itself.",
        ),
        "rationalizer": CommandEntry(
            "train_rationalizer",
            "train_rationalizer_command",
            "Train a classifier that first selects its rationale and then predicts from that alone; from labels only.",
        ),
    }


class MainCommands(CommandGroup):
    """The commands of `raison`."""

    entries: ClassVar = {
        "explain": CommandEntry(
            "explain",
            "explain_command",
            "Score the parts of a text by how much they made the model say what it says.",
        ),
        "rationalize": CommandEntry(
            "rationalize",
            "rationalize_command",
            "Find the smallest part of a text that alone makes the model say what it says, with a certificate.",
        ),
        "evaluate": CommandEntry(
            "evaluate",
            "evaluate_command",
            "Measure explanations on a data set: methods x metrics, with intervals, curves and cost.",
        ),
        "compare": CommandEntry(
            "evaluate",
            "compare_command",
            "Test whether one method is better than another on the same texts: differences, p-values, effect sizes.",
        ),
        "heads": CommandEntry(
            "heads",
            "heads_command",
            "Count which attention heads look at a syntactic relation or at a fixed relative position.",
        ),
        "idf": CommandEntry(
            "idf",
            "idf_command",
            "Count in how many texts each word occurs: the table of the control idf.",
        ),
        "reproduce": CommandEntry(
            "reproduce",
            "reproduce_command",
            "Run what a paper reports, and say which of its claims hold here.",
        ),
        "compatibility": CommandEntry(
            "compatibility",
            "compatibility_command",
            "Measure how a language model behaves where most of its context is missing, which rationales rest on.",
        ),
        "audit": CommandEntry(
            "audit",
            "audit_command",
            "Run every test that decides whether the attention of a classifier explains anything.",
        ),
        "ls": CommandEntry(
            "ls",
            "ls_command",
            "List what can be named: methods, searches, rules, models, metrics or data sets.",
        ),
        "show": CommandEntry(
            "show",
            "show_command",
            "Show a saved result: on the screen, or as a figure for a paper.",
        ),
        "serve": CommandEntry(
            "serve",
            "serve_command",
            "Serve a page on which texts are explained, at http://127.0.0.1:8765.",
        ),
        "run": CommandEntry(
            "run",
            "run_command",
            "Explain a corpus: killed at any moment, it goes on with --resume and gives the same bytes.",
        ),
        "status": CommandEntry("run", "status_command", "Say how far a run is."),
        "report": CommandEntry(
            "run", "report_command", "Turn a run into the tables of an evaluation, and its page."
        ),
    }
    groups: ClassVar = {
        "store": (StoreCommands, "Look into the results of a run."),
        "train": (TrainCommands, "Train models that can be explained better."),
    }
