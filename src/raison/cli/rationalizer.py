"""raison train rationalizer: a classifier that selects its rationale and predicts from that alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from raison.cli import options
from raison.cli.classifier import print_scores
from raison.cli.train import command_line, heard

Sparsity = Annotated[
    Optional[list[float]],
    typer.Option(
        "--sparsity",
        help="Share of the tokens that is kept; of pairs, give it twice.  [default: 0.2]",
    ),
]
Variant = Annotated[
    str,
    typer.Option(
        "--variant",
        help="plmr, whole, no_pruning, no_full_text, literal, all_layers, rnp, a2r, rnp_gru, a2r_gru.",
    ),
]
Blocks = Annotated[
    Optional[int],
    typer.Option(
        "--blocks",
        help="Blocks that select; default: chosen by how alike token states are; 0: all.",
    ),
]
Pruning = Annotated[
    Optional[int], typer.Option("--pruning", help="The last so many of them drop tokens.")
]
Predictor = Annotated[
    Optional[str],
    typer.Option(
        "--predictor", help="What reads the rationale: rest (of the blocks), whole, apart."
    ),
]
Hide = Annotated[Optional[str], typer.Option("--hide", help="How: attention, or zero.")]
FullText = Annotated[
    Optional[str], typer.Option("--full-text", help="Also trained: mid_cls, predictor or none.")
]
Read = Annotated[
    Optional[str],
    typer.Option("--read", help="What is classified: mean state, or the first token's."),
]
SparsityWeight = Annotated[float, typer.Option("--sparsity-weight", help="λ_s.")]
Coherence = Annotated[float, typer.Option("--coherence", help="λ_c: neighbours are treated alike.")]
Human = Annotated[
    float, typer.Option("--human", help="Weight of human rationales, where the data has some.")
]
Lora = Annotated[
    int, typer.Option("--lora", help="Train an adapter of this rank; 0: all weights of the blocks.")
]
Rate = Annotated[
    Optional[float],
    typer.Option("--lr", help="Of the blocks; default: 2e-4 with --lora, else 5e-5."),
]
HeadRate = Annotated[float, typer.Option("--head-lr", help="Of the heads.")]
Patience = Annotated[
    int, typer.Option("--patience", help="Epochs without a better accuracy after which it stops.")
]
Warm = Annotated[
    float, typer.Option("--warm", help="Epochs in which the predictor reads random parts.")
]
Longest = Annotated[int, typer.Option("--longest", help="Tokens of a text; longer ones are cut.")]
Regression = Annotated[
    bool, typer.Option("--regression", help="Labels are numbers to be told, not classes.")
]


def rationalizer(
    data: options.LabelledData,
    out: options.TrainedFolder,
    model: options.Model = "minilm",
    sparsity: Sparsity = None,
    variant: Variant = "whole",
    blocks: Blocks = None,
    pruning: Pruning = None,
    predictor: Predictor = None,
    hide: Hide = None,
    full_text: FullText = None,
    read: Read = None,
    sparsity_weight: SparsityWeight = 5.0,
    coherence: Coherence = 0.1,
    human: Human = 0.0,
    lora: Lora = 0,
    lr: Rate = None,
    head_lr: HeadRate = 5e-4,
    batch: options.BatchOfTexts = 32,
    epochs: options.Epochs = 6,
    patience: Patience = 3,
    warm: Warm = 1.0,
    longest: Longest = 256,
    bfloat16: options.Bfloat16 = False,
    half: options.HalfAdapter = False,
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

    given: dict[str, Any] = dict(
        sparsity=tuple(sparsity) if sparsity else None, blocks=blocks, pruning=pruning, predictor=predictor, hide=hide,
        full_text=full_text, read=read,
    )  # fmt: skip
    config = {name: value for name, value in given.items() if value is not None}
    chosen: dict[str, Any] = dict(
        variant=variant, blocks=blocks, pruning=pruning, predictor=predictor, hide=hide, full_text=full_text, read=read,
        sparsity_weight=sparsity_weight, coherence=coherence, human=human, lora=lora, lr=lr, head_lr=head_lr,
        batch=batch, epochs=epochs, patience=patience, warm=warm, longest=longest, bfloat16=bfloat16, half=half,
        regression=regression, runs=runs, limit=limit, seed=seed,
    )  # fmt: skip
    with waiting("loading the libraries") as wait:
        from raison.rationalizers.train import train_rationalizer
        from raison.rationalizers.training_config import LossWeights, RationalizerTraining
        from raison.training.data_names import named

        if lr is None:  # adapters have few weights, which may take larger steps
            lr = 2e-4 if lora else 5e-5
        weights = LossWeights(sparsity=sparsity_weight, coherence=coherence, human=human)
        training = RationalizerTraining(
            weights=weights, lr=lr, head_lr=head_lr, lora=lora,
            batch=batch, epochs=epochs, patience=patience, warm=warm, longest=longest, bfloat16=bfloat16, half=half,
        )  # fmt: skip
        wait("training")
        called = ["-m", Path(model).name, "--data", named(data)]
        for share in sparsity or ():
            called += ["--sparsity", f"{share:g}"]
        with heard():
            report = train_rationalizer(
                model, data, out=out, config=config, variant=variant, training=training, seed=seed, runs=runs,
                data_dir=data_dir, limit=limit, skip_broken=skip_broken, regression=regression, device=device,
                command=command_line(rationalizer, called, chosen),
            )  # fmt: skip
    print_scores(report.to_dict())
    for trouble in report.troubles:
        print(f"raison: {trouble}.", file=sys.stderr)
    print(f"wrote {out}", file=sys.stderr)
