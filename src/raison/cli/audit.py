"""raison audit: can the attention of this classifier be trusted?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from raison.cli import options
from raison.cli.inputs import check_input_at_least, input_files_of_data
from raison.core.outputs import check_outputs, replacing_output

Data = Annotated[
    str, typer.Option("-d", "--data", help="Labelled texts: a data set or a file(text=…, label=…).")
]
Deep = Annotated[
    Optional[int],
    typer.Option(
        "--deep",
        help="Texts for what costs most: importance, influence, single adversaries; default: all.",
    ),
]
Permutations = Annotated[
    int, typer.Option("--permutations", help="How often attention is shuffled.")
]
Show = Annotated[int, typer.Option("--show", help="Texts that are shown word by word.")]
Texts = Annotated[
    Optional[list[str]],
    typer.Option("--text", help="A text of your own to show as well; repeat it."),
]
Adversaries = Annotated[
    Optional[list[str]],
    typer.Option("--adversary", help="Train one: frozen or unfrozen; repeat it for both."),
]
Lambdas = Annotated[
    Optional[list[float]],
    typer.Option("--lambda", help="λ of the adversaries; repeat it to sweep; default: 1."),
]
Epochs = Annotated[int, typer.Option("--epochs", help="Of the adversaries' training.")]
Train = Annotated[
    Optional[str],
    typer.Option(
        "--train", help="Labelled texts that adversaries learn from; default: the train part."
    ),
]
Keep = Annotated[
    Optional[Path],
    typer.Option("--keep", help="Folder for what is done: the same command goes on from there."),
]
Html = Annotated[
    Optional[Path], typer.Option("--html", help="Write a page with plots and the verdict.")
]


def audit_command(
    model: options.Model,
    data: Data,
    split: options.Split = None,
    limit: options.Limit = None,
    deep: Deep = None,
    permutations: Permutations = 10,
    show: Show = 6,
    text: Texts = None,
    adversary: Adversaries = None,
    lambdas: Lambdas = None,
    epochs: Epochs = 15,
    train: Train = None,
    keep: Keep = None,
    data_dir: options.DataDir = None,
    skip_broken: options.SkipBroken = False,
    seed: options.Seed = 0,
    json: options.OneJson = False,
    html: Html = None,
    force: options.Force = False,
    device: options.Device = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
) -> None:
    """Run every test that decides whether the attention of a classifier explains anything."""
    check_input_at_least("--permutations", permutations, 1)
    check_input_at_least("--show", show, 0)
    check_input_at_least("--epochs", epochs, 1)
    inputs: list[str | Path | None] = [model]
    inputs += [*input_files_of_data(data, data_dir), *input_files_of_data(train, data_dir)]
    check_outputs([html], force=force, inputs=inputs)
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.models.load import load
        from raison.studies.audit.run_audit import audit as audited

        wait(f"opening {model}")
        loaded = load(
            model, device=device, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
        )
        wait(f"asking {loaded.name}")
        found = audited(
            loaded, data, split=split, limit=limit, deep=deep, data_dir=data_dir, permutations=permutations, show=show,
            texts=text or (), adversaries=adversary or (), lambdas=lambdas or (1.0,), epochs=epochs, seed=seed,
            skip_broken=skip_broken, train=train, keep=keep,
        )  # fmt: skip
    if html is not None:
        from raison.show.html.audit import audit_page

        with replacing_output(html) as half:
            half.write_text(audit_page(found), encoding="utf-8")
    if json:
        print(found.to_json())
        return
    from raison.show.terminal.audit import print_audit
    from raison.show.terminal.style import terminal_console

    print_audit(found, terminal_console(highlight=False))
