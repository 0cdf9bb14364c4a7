"""raison train classifier: a text classifier whose attention is its explanation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from raison.attention_models.config import ClassifierConfig, ClassifierTraining
from raison.cli import options
from raison.cli.settings_options import Chosen, FieldsOf, with_settings_options
from raison.cli.train_reports import log_progress, print_training_scores, training_command_line


@with_settings_options
def train_classifier_command(
    data: options.LabelledData,
    out: options.TrainedFolder,
    *,
    config: Annotated[Chosen, FieldsOf(ClassifierConfig)],
    training: Annotated[Chosen, FieldsOf(ClassifierTraining)],
    runs: options.Seeds = 1,
    limit: options.LimitOfParts = None,
    skip_broken: options.SkipBroken = False,
    seed: options.Seed = 0,
    device: options.Device = None,
    data_dir: options.DataDir = None,
) -> None:
    """Train a text classifier with one attention over its words, sparse or tied to them, that explains itself."""
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.attention_models.train import train_classifier
        from raison.training.data_names import name_of_data

        wait("training")
        # no folder of anybody's machine
        told = {**training, "embeddings": Path(training["embeddings"]).name}
        chosen = dict(config=config, training=told, runs=runs, limit=limit, seed=seed)
        subject = ["--data", name_of_data(data)]
        command = training_command_line(train_classifier_command, "classifier", subject, chosen)
        with log_progress():
            report = train_classifier(
                data,
                out=out,
                config=config,
                training=training,
                seed=seed,
                runs=runs,
                data_dir=data_dir,
                limit=limit,
                skip_broken=skip_broken,
                device=device,
                command=command,
            )
    print_training_scores(report.to_dict())
    print(f"wrote {out}", file=sys.stderr)
