"""raison train compatibility: models that behave on parts of a context; and what all trainings share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from raison.cli import options

DEFAULT_MODEL = "smollm2"

Data = Annotated[
    str,
    typer.Option(
        "-d",
        "--data",
        help="A text file or data set, or one+another; of an encoder-decoder: pairs, or sources.",
    ),
]
Keep = Annotated[
    str,
    typer.Option(
        "--keep", help="uniform_length, inverse_length, bernoulli(p=0.5), or none: the control."
    ),
]
Mix = Annotated[float, typer.Option("--mix", help="Share of the batches that have word dropout.")]
Coins = Annotated[
    str, typer.Option("--coins", help="Of an encoder-decoder: apart (a coin for each side) or one.")
]
Lora = Annotated[
    Optional[int],
    typer.Option("--lora", help="Train an adapter of this rank; default: all weights."),
]
Rate = Annotated[
    Optional[float], typer.Option("--lr", help="Peak rate; default: 5e-4 with --lora, else 5e-5.")
]
Steps = Annotated[int, typer.Option("--steps", help="Updates of the weights.")]
Length = Annotated[int, typer.Option("--length", help="Tokens of a block of text.")]
Rows = Annotated[int, typer.Option("--batch", help="Blocks (or pairs) in a batch.")]
Accumulate = Annotated[int, typer.Option("--accumulate", help="Batches in a step.")]
Schedule = Annotated[
    str, typer.Option("--schedule", help="linear (down to 0 at the end) or constant.")
]
OwnTargets = Annotated[
    bool, typer.Option("--own-targets", help="Of an encoder-decoder: learn what it writes itself.")
]
Split = Annotated[
    Optional[str],
    typer.Option("--split", help="Part of the data set; default: its train or dev part."),
]
Tokens = Annotated[
    Optional[int], typer.Option("--tokens", help="Only the first so many tokens of each data set.")
]
Held = Annotated[float, typer.Option("--held", help="Share of the data that is held out.")]
Every = Annotated[
    Optional[int],
    typer.Option("--every", help="Steps between two looks at it; default: a quarter of all."),
]


def compatibility(
    data: Data,
    out: options.TrainedFolder,
    model: options.Model = DEFAULT_MODEL,
    keep: Keep = "uniform_length",
    mix: Mix = 0.5,
    coins: Coins = "apart",
    lora: Lora = None,
    lr: Rate = None,
    steps: Steps = 300,
    length: Length = 128,
    batch: Rows = 8,
    accumulate: Accumulate = 1,
    schedule: Schedule = "linear",
    seed: options.Seed = 0,
    bfloat16: options.Bfloat16 = False,
    own_targets: OwnTargets = False,
    split: Split = None,
    limit: options.Limit = None,
    tokens: Tokens = None,
    held: Held = 0.05,
    every: Every = None,
    half: options.HalfAdapter = False,
    device: options.Device = None,
    data_dir: options.DataDir = None,
) -> None:
    """Train a model that writes to behave on partial contexts: word dropout, as rationales ask about them."""
    from raison.cli.progress import waiting

    settings: dict[str, Any] = dict(
        keep=keep, mix=mix, coins=coins, lora=lora, lr=lr, steps=steps, length=length, batch=batch,
        accumulate=accumulate, schedule=schedule, seed=seed, bfloat16=bfloat16, own_targets=own_targets, held=held,
    )  # fmt: skip
    with waiting("loading the libraries") as wait:
        from raison.models.load import load
        from raison.training import compatibility as training
        from raison.training.data_names import named

        training.Setup(**settings)  # misspelt rules are cheap to refuse now
        wait(f"opening {model}")
        opened = load(model, device=device)
        wait(f"training {opened.name}")
        chosen = {
            **settings,
            "split": split,
            "limit": limit,
            "tokens": tokens,
            "every": every,
            "half": half,
        }
        with heard():
            report = training.train_compatibility(
                opened, data, out=out, data_dir=data_dir, split=split, limit=limit, tokens=tokens, every=every,
                half=half, base=training.base_of(model, opened),
                command=command_line(compatibility, ["-m", opened.name, "--data", named(data)], chosen), **settings,
            )  # fmt: skip
    publish(report, out)


@contextmanager
def heard() -> Iterator[None]:
    """Where there is no terminal for a bar, progress becomes lines of a log."""
    if sys.stderr.isatty():
        yield
        return
    from raison.core import progress
    from raison.training.fit import lines

    with progress.listen(lines()):
        yield


def command_line(verb: Callable[..., None], subject: list[str], chosen: dict[str, Any]) -> str:
    """The command that makes this again, with generic paths."""
    from inspect import signature
    from typing import get_type_hints

    usual = {name: item.default for name, item in signature(verb).parameters.items()}
    hints = get_type_hints(verb, include_extras=True)
    words = ["raison", "train", verb.__name__, *subject, "--out", "FOLDER"]
    for name, value in chosen.items():
        if value == usual[name]:
            continue
        option = hints[name].__metadata__[0]  # typer takes the first name for a default at first
        spelled = next(
            word for word in (option.default, *option.param_decls) if str(word).startswith("--")
        )
        yes, _, no = spelled.partition("/")  # of a choice both are named: --freeze/--tune
        if isinstance(value, bool):
            words.append(yes if value else no)
        else:
            words += [yes, str(value)]
    return shlex.join(words)


def publish(report: dict[str, Any], out: Path) -> None:
    """What changed, on stdout; where it lies, on stderr."""
    for name, after in report["after"].items():
        if name.startswith("perplexity"):
            print(f"{name}: {report['before'][name]:.2f} before, {after:.2f} after")
    print(f"wrote {out}", file=sys.stderr)
