"""raison train classifier: a text classifier whose attention is its explanation."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from raison.cli import options
from raison.cli.train import command_line, heard

Encoder = Annotated[str, typer.Option("--encoder", help="bilstm or transformer.")]
Attention = Annotated[str, typer.Option("--attention", help="additive or dot.")]
Normalizer = Annotated[
    str,
    typer.Option(
        "--normalizer", help="softmax, sparsemax, sparsegen(lam=0.6) or entmax(alpha=1.5)."
    ),
]
Combine = Annotated[
    str,
    typer.Option(
        "--combine", help="What is attended to: none (hidden states), concat or residual."
    ),
]
Width = Annotated[
    Optional[int],
    typer.Option("--width", help="Of embeddings and hidden states; default: the vectors', or 300."),
]
Layers = Annotated[int, typer.Option("--layers", help="Of the encoder.")]
Heads = Annotated[int, typer.Option("--heads", help="Of a transformer.")]
Dropout = Annotated[float, typer.Option("--dropout", help="Of embeddings and of what is decoded.")]
Embeddings = Annotated[
    str,
    typer.Option(
        "--embeddings", help="random, a GloVe file, or a pretrained encoder such as minilm."
    ),
]
Freeze = Annotated[
    Optional[bool],
    typer.Option(
        "--freeze/--tune", help="Embeddings stay as they are; default: where they were read."
    ),
]
Tying = Annotated[
    float, typer.Option("--tying", help="δ: hidden states are kept near the embeddings.")
]
Mlm = Annotated[float, typer.Option("--mlm", help="η: hidden states must tell their words.")]
Rate = Annotated[float, typer.Option("--lr", help="Rate of training.")]
Patience = Annotated[
    int, typer.Option("--patience", help="Epochs without a better F1 after which it stops.")
]
Least = Annotated[
    int,
    typer.Option("--least", help="How often a word stands in the training texts to have a vector."),
]
Longest = Annotated[
    Optional[int], typer.Option("--longest", help="Tokens of a text; longer ones are cut.")
]


def classifier(
    data: options.LabelledData,
    out: options.TrainedFolder,
    encoder: Encoder = "bilstm",
    attention: Attention = "additive",
    normalizer: Normalizer = "softmax",
    combine: Combine = "none",
    width: Width = None,
    layers: Layers = 1,
    heads: Heads = 1,
    dropout: Dropout = 0.0,
    embeddings: Embeddings = "random",
    freeze: Freeze = None,
    tying: Tying = 0.0,
    mlm: Mlm = 0.0,
    lr: Rate = 1e-3,
    batch: options.BatchOfTexts = 32,
    epochs: options.Epochs = 20,
    patience: Patience = 4,
    least: Least = 1,
    longest: Longest = None,
    runs: options.Seeds = 1,
    limit: options.LimitOfParts = None,
    skip_broken: options.SkipBroken = False,
    seed: options.Seed = 0,
    device: options.Device = None,
    data_dir: options.DataDir = None,
) -> None:
    """Train a text classifier with one attention over its words, sparse or tied to them, that explains itself."""
    from raison.cli.progress import waiting

    config: dict[str, Any] = dict(
        encoder=encoder, attention=attention, normalizer=normalizer, combine=combine, layers=layers, heads=heads,
        dropout=dropout,
    )  # fmt: skip
    settings: dict[str, Any] = dict(
        embeddings=embeddings, freeze=freeze, tying=tying, mlm=mlm, lr=lr, batch=batch, epochs=epochs,
        patience=patience, least=least, longest=longest,
    )  # fmt: skip
    with waiting("loading the libraries") as wait:
        from raison.attention_models.train import train_classifier
        from raison.training.data_names import named

        wait("training")
        chosen = {**config, "width": width, **settings, "runs": runs, "limit": limit, "seed": seed}
        chosen["embeddings"] = Path(embeddings).name
        if width is not None:
            config["width"] = width
        with heard():
            report = train_classifier(
                data, out=out, config=config, training=settings, seed=seed, runs=runs, data_dir=data_dir, limit=limit,
                skip_broken=skip_broken, device=device,
                command=command_line(classifier, ["--data", named(data)], chosen),
            )  # fmt: skip
    print_scores(report.to_dict())
    print(f"wrote {out}", file=sys.stderr)


def print_scores(report: Mapping[str, Any]) -> None:
    """Print a line for each part of the data that was scored."""
    for part in ("dev", "test"):
        scores = report.get(part)
        if scores:
            cells = [
                f"{name.replace('_', ' ')} {format_score(score)}" for name, score in scores.items()
            ]
            print(f"{part}: {', '.join(cells)}")


def format_score(score: float | Mapping[str, float]) -> str:
    """A number, or mean and deviation over runs."""
    if isinstance(score, Mapping):
        return f"{score['mean']:.4f} ± {score['deviation']:.4f}"
    return f"{score:.4f}"
