"""What the `raison train` commands have in common: progress as log lines, the command to record, scores to print."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter
from typing import Any

from raison.cli.settings_options import options_of_command

__all__ = ["log_progress", "print_training_scores", "training_command_line"]


@contextmanager
def log_progress() -> Iterator[None]:
    """Where there is no terminal for a bar, progress becomes lines of a log."""
    if sys.stderr.isatty():
        yield
        return
    from raison.core import progress
    from raison.training.fit import progress_log_lines

    with progress.listen(progress_log_lines()):
        yield


def training_command_line(
    command: Callable[..., None], name: str, subject: list[str], chosen: Mapping[str, Any]
) -> str:
    """The command that trains this again, with generic paths; `chosen` are its parameters, settings by their fields."""
    words = ["raison", "train", name, *subject, "--out", "FOLDER"]
    for parameter_name, options in options_of_command(command).items():
        if parameter_name not in chosen:
            continue
        value = chosen[parameter_name]
        if isinstance(options, Parameter):
            words += command_words_of_option(options, value)
        else:
            for field_name, option in options.items():
                words += command_words_of_option(option, value.get(field_name))
    return shlex.join(words)


def command_words_of_option(option: Parameter, value: object) -> list[str]:
    """An option as it is typed; nothing where it has its default."""
    if value == option.default:
        return []
    told = option.annotation.__metadata__[0]
    names = [told.default, *told.param_decls]  # typer takes the first name for a default at first
    spelled = next(name for name in names if str(name).startswith("--"))
    yes, _, no = spelled.partition("/")  # of a choice both are named: --freeze/--tune
    if isinstance(value, bool):
        return [yes if value else no]
    return [yes, str(value)]


def print_training_scores(report: Mapping[str, Any]) -> None:
    """Print a line for each part of the data that was scored."""
    for part in ("dev", "test"):
        scores = report.get(part)
        if scores:
            cells = [
                f"{name.replace('_', ' ')} {format_training_score(scores[name])}" for name in scores
            ]
            print(f"{part}: {', '.join(cells)}")


def format_training_score(score: float | Mapping[str, float]) -> str:
    """A number, or mean and deviation over runs."""
    if isinstance(score, Mapping):
        return f"{score['mean']:.4f} ± {score['deviation']:.4f}"
    return f"{score:.4f}"
