"""raison train rationalizer: a classifier that selects its rationale and predicts from that alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from raison.cli import options
from raison.cli.settings_options import Chosen, FieldsOf, with_settings_options
from raison.cli.train_reports import log_progress, print_training_scores, training_command_line
from raison.rationalizers.config import LossWeights, RationalizerConfig, RationalizerTraining

Variant = Annotated[
    str,
    typer.Option(
        "--variant",
        help="plmr, whole, no_pruning, no_full_text, literal, all_layers, rnp, a2r, rnp_gru, a2r_gru.",
    ),
]
# what nobody chooses of a config is the variant's
Shares = Annotated[Chosen, FieldsOf(RationalizerConfig, only=("sparsity",), derived=True)]
Config = Annotated[Chosen, FieldsOf(RationalizerConfig, without=("sparsity",), derived=True)]
Regression = Annotated[
    bool, typer.Option("--regression", help="Labels are numbers to be told, not classes.")
]


@with_settings_options
def train_rationalizer_command(
    data: options.LabelledData,
    out: options.TrainedFolder,
    model: options.Model = "minilm",
    *,
    shares: Shares,
    variant: Variant = "whole",
    config: Config,
    weights: Annotated[Chosen, FieldsOf(LossWeights)],
    training: Annotated[Chosen, FieldsOf(RationalizerTraining)],
    regression: Regression = False,
    runs: options.Seeds = 1,
    limit: options.LimitOfParts = None,
    skip_broken: options.SkipBroken = False,
    seed: options.Seed = 0,
    device: options.Device = None,
    data_dir: options.DataDir = None,
) -> None:
    """Train a classifier that first selects its rationale and then predicts from that alone; from labels only."""
    from raison.cli.progress import waiting

    sparsity = tuple(shares.get("sparsity", ()))
    with waiting("loading the libraries") as wait:
        from raison.rationalizers.train import train_rationalizer
        from raison.training.data_names import name_of_data

        settings = RationalizerTraining.from_settings(
            {**training, "weights": LossWeights(**weights)}
        )
        wait("training")
        subject = ["-m", Path(model).name, "--data", name_of_data(data)]
        for share in sparsity:
            subject += ["--sparsity", f"{share:g}"]
        chosen = dict(
            variant=variant, config=config, weights=weights, training=training, regression=regression,
            runs=runs, limit=limit, seed=seed,
        )  # fmt: skip
        command = training_command_line(train_rationalizer_command, "rationalizer", subject, chosen)
        with log_progress():
            report = train_rationalizer(
                model,
                data,
                out=out,
                config={"sparsity": sparsity, **config} if sparsity else config,
                variant=variant,
                training=settings,
                seed=seed,
                runs=runs,
                data_dir=data_dir,
                limit=limit,
                skip_broken=skip_broken,
                regression=regression,
                device=device,
                command=command,
            )
    print_training_scores(report.to_dict())
    for trouble in report.troubles:
        print(f"raison: {trouble}.", file=sys.stderr)
    print(f"wrote {out}", file=sys.stderr)
