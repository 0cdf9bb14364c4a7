"""raison compatibility: can rationales of this model be taken at face value?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from raison.cli import options
from raison.cli.inputs import check_input_at_least, input_files_of_data
from raison.core.outputs import check_outputs

Data = Annotated[
    str,
    typer.Option("-d", "--data", help="A text file, a data set (raison ls datasets) or hf:NAME."),
]
Limit = Annotated[int, typer.Option("--limit", help="Texts to measure on.")]
Length = Annotated[
    int, typer.Option("--length", help="Tokens of each text; shorter ones are left out.")
]
Targets = Annotated[
    int, typer.Option("--targets", help="Places in each text whose token is guessed.")
]
Truths = Annotated[
    int,
    typer.Option(
        "--truths", help="Contexts in which a missing token is marginalised out; 0: none."
    ),
]
Figure = Annotated[
    Optional[Path], typer.Option("--figure", help="Draw it: a .png, .svg or .pdf file.")
]


def compatibility_command(
    data: Data,
    model: options.Model = "smollm2",
    split: options.Split = None,
    limit: Limit = 40,
    length: Length = 64,
    targets: Targets = 3,
    truths: Truths = 12,
    data_dir: options.DataDir = None,
    seed: options.Seed = 0,
    json: options.OneJson = False,
    figure: Figure = None,
    force: options.Force = False,
    device: options.Device = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
) -> None:
    """Measure how a language model behaves where most of its context is missing, which rationales rest on."""
    check_input_at_least("--limit", limit, 1)
    check_input_at_least("--length", length, 8)
    check_input_at_least("--targets", targets, 1)
    check_input_at_least("--truths", truths, 0)
    check_outputs([figure], force=force, inputs=[model, *input_files_of_data(data, data_dir)])
    if figure is not None:
        from raison.show.figure.savefig import check_picture_ending

        check_picture_ending(figure)
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.models.load import load
        from raison.studies.check_compatibility import check_compatibility
        from raison.studies.context_blocks import read_block_texts

        wait(f"opening {model}")
        loaded = load(
            model, device=device, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
        )
        texts = read_block_texts(
            loaded, data, split=split, limit=limit, folder=data_dir, length=length
        )
        wait(f"asking {loaded.name} about parts of contexts")
        found = check_compatibility(
            loaded,
            texts,
            length=length,
            targets=targets,
            truths=truths,
            seed=seed,
            data=Path(data).name,
        )
    if json:
        print(found.to_json())
    else:
        from raison.show.terminal.compatibility import print_compatibility
        from raison.show.terminal.style import terminal_console

        print_compatibility(found, terminal_console(highlight=False))
    if figure is not None:
        from raison.show.figure.compatibility import draw_compatibility

        draw_compatibility(found, figure)
