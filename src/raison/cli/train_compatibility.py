"""raison train compatibility: models that behave on parts of a context."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from raison.cli import options
from raison.cli.settings_options import Chosen, FieldsOf, with_settings_options
from raison.cli.train_reports import log_progress, training_command_line
from raison.training.compatibility_settings import CompatibilityTraining

if TYPE_CHECKING:
    from raison.training.train_compatibility import CompatibilityReport

DEFAULT_MODEL = "smollm2"

Data = Annotated[
    str,
    typer.Option(
        "-d",
        "--data",
        help="A text file or data set, or one+another; of an encoder-decoder: pairs, or sources.",
    ),
]
Split = Annotated[
    Optional[str],
    typer.Option("--split", help="Part of the data set; default: its train or dev part."),
]
Tokens = Annotated[
    Optional[int], typer.Option("--tokens", help="Only the first so many tokens of each data set.")
]
Every = Annotated[
    Optional[int],
    typer.Option("--every", help="Steps between two looks at it; default: a quarter of all."),
]


@with_settings_options
def train_compatibility_command(
    data: Data,
    out: options.TrainedFolder,
    model: options.Model = DEFAULT_MODEL,
    *,
    training: Annotated[Chosen, FieldsOf(CompatibilityTraining, without=("held",))],
    split: Split = None,
    limit: options.Limit = None,
    tokens: Tokens = None,
    held_out: Annotated[Chosen, FieldsOf(CompatibilityTraining, only=("held",))],
    every: Every = None,
    half: options.HalfAdapter = False,
    device: options.Device = None,
    data_dir: options.DataDir = None,
) -> None:
    """Train a model that writes to behave on partial contexts: word dropout, as rationales ask about them."""
    from raison.cli.progress import waiting

    settings = {**training, **held_out}
    with waiting("loading the libraries") as wait:
        from raison.models.load import load
        from raison.training.data_names import name_of_data
        from raison.training.train_compatibility import (
            base_name_for_trained_adapter,
            compatibility_training_of,
            train_compatibility,
        )

        compatibility_training_of(settings)  # what is wrong is said before the model is opened
        wait(f"opening {model}")
        opened = load(model, device=device)
        wait(f"training {opened.name}")
        subject = ["-m", opened.name, "--data", name_of_data(data)]
        chosen = dict(
            training=training, split=split, limit=limit, tokens=tokens, held_out=held_out, every=every, half=half
        )  # fmt: skip
        command = training_command_line(
            train_compatibility_command, "compatibility", subject, chosen
        )
        with log_progress():
            report = train_compatibility(
                opened,
                data,
                out=out,
                data_dir=data_dir,
                split=split,
                limit=limit,
                tokens=tokens,
                every=every,
                half=half,
                base=base_name_for_trained_adapter(model, opened),
                command=command,
                **settings,
            )
    print_compatibility_perplexities(report)
    print(f"wrote {out}", file=sys.stderr)


def print_compatibility_perplexities(report: CompatibilityReport) -> None:
    """Print how surprised the model is by held-out text, before and after."""
    for name, after in report["after"].items():
        if name.startswith("perplexity"):
            print(f"{name}: {report['before'][name]:.2f} before, {after:.2f} after")
