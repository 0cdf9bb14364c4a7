"""raison heads: which attention heads look at syntax or at fixed positions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from raison.cli import options
from raison.cli.results import (
    check_figure_ending,
    print_results_as_json,
    print_written_result_files,
)
from raison.core.errors import InputError
from raison.core.outputs import check_outputs

if TYPE_CHECKING:
    from raison.core.artifact import Artifact
    from raison.datasets.conllu import Sentence
    from raison.show.head_selection import HeadSelection

DEFAULT_MODEL = "sentiment"

Data = Annotated[
    Optional[Path],
    typer.Option("--data", help="A treebank in CoNLL-U (.conllu, .gz), or with --parse any text."),
]
Parse = Annotated[
    bool,
    typer.Option(
        "--parse", help="The file is plain text, one text in each line: parse it (spaCy)."
    ),
]
Parser = Annotated[
    Optional[str], typer.Option("--parser", help="The spaCy model; default: en_core_web_sm.")
]
Made = Annotated[
    Optional[Path],
    typer.Option("--heads", help="Show this file, made before, instead of counting anew."),
]
Limit = Annotated[
    int, typer.Option("--limit", help="Read only the first so many sentences; 0: all.")
]
Corpus = Annotated[
    Optional[str],
    typer.Option("--corpus", help="What to call the corpus; default: the file's name."),
]
Kinds = Annotated[str, typer.Option("--kinds", help="Heads to show: synt, pos or both.")]
Top = Annotated[
    int, typer.Option("--top", help="Show at least so many heads of each kind in every block.")
]
Syntactic = Annotated[
    float,
    typer.Option("--syntactic", help="A syntactic head exceeds the best fixed position by this."),
]
Positional = Annotated[
    float,
    typer.Option("--positional", help="A positional head looks at one position in such a share."),
]
Subtypes = Annotated[
    bool, typer.Option("--subtypes/--no-subtypes", help="Count nsubj:pass as nsubj.")
]
Specials = Annotated[
    bool,
    typer.Option(
        "--specials",
        help="Count special tokens and the token itself as positions, as P4's code does.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the file of heads instead of tables.")]
Out = Annotated[
    Optional[Path],
    typer.Option("--out", help="Write the statistics here, for masked_lrp(heads=…)."),
]
Figure = Annotated[
    Optional[Path],
    typer.Option("--figure", help="Draw blocks and heads: a .png, .svg or .pdf file."),
]
Positions = Annotated[
    Optional[Path],
    typer.Option("--positions", help="Draw the relative positions of the relations."),
]


def heads_command(
    model: options.Model = DEFAULT_MODEL,
    data: Data = None,
    parse: Parse = False,
    parser: Parser = None,
    heads: Made = None,
    limit: Limit = 1000,
    corpus: Corpus = None,
    kinds: Kinds = "both",
    top: Top = 0,
    syntactic: Syntactic = 0.1,
    positional: Positional = 0.8,
    subtypes: Subtypes = True,
    specials: Specials = False,
    json: Json = False,
    out: Out = None,
    figure: Figure = None,
    positions: Positions = None,
    force: options.Force = False,
    device: options.Device = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
) -> None:
    """Count which attention heads look at a syntactic relation or at a fixed relative position.

    The file that --out writes holds the statistics; thresholds, kinds and top are choices at use.
    """
    if (data is None) == (heads is None):
        raise InputError(
            "Name a treebank or a text with --data, or a file made before with --heads."
        )
    if parser is not None and not parse:
        raise InputError("--parser is for plain text: add --parse.")
    if limit < 0:
        raise InputError(f"A limit is a whole number from 0 up, not {limit}.")
    # FOLDER/heads.json beside the model is made by this command, and no part of what it reads
    beside = out is not None and out.resolve() == Path(model).expanduser().resolve() / "heads.json"
    check_outputs(
        (out, figure, positions), force=force, inputs=[data, heads, None if beside else model]
    )
    for path in (figure, positions):
        check_figure_ending(path)
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.methods.head_masks import check_head_choice, head_masks

        check_head_choice(kinds, top, syntactic, positional)
        if heads is not None:
            artifact = open_heads(heads)
        elif data is not None:
            wait(f"reading {data.name}")
            sentences = read_sentences_of_heads_command(
                data, parse=parse, parser=parser, limit=limit or None
            )
            from raison.models.load import load
            from raison.studies.head_statistics import head_statistics

            wait(f"opening {model}")
            loaded = load(
                model, device=device, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
            )
            wait(f"watching the heads of {loaded.name}")
            named = corpus or data.name.removesuffix(".gz").removesuffix(".conllu")
            artifact = head_statistics(
                loaded, sentences, subtypes=subtypes, specials=specials, corpus=named
            )
        masks = head_masks(artifact, kinds, top, syntactic, positional)
    if out is not None:
        artifact.save(out)
    from raison.show.head_selection import HeadSelection, HeadStatistics

    statistics = HeadStatistics.of(artifact)
    selection = HeadSelection(
        statistics, *masks, syntactic_margin=syntactic, positional_share=positional, top=top
    )
    if json:
        print_results_as_json(artifact.to_json() + "\n")
    draw_selection_of_heads(selection, on_screen=not json, figure=figure, positions=positions)
    print_written_result_files([out, figure, positions])


def open_heads(path: Path) -> Artifact:
    """A file that this command wrote before."""
    from raison.core.artifact import Artifact

    return Artifact.open(path, "heads")


def read_sentences_of_heads_command(
    data: Path, *, parse: bool, parser: str | None, limit: int | None
) -> list[Sentence]:
    """Sentences with trees, from a treebank or by parsing."""
    if not parse:
        from raison.datasets.conllu import read_conllu

        return read_conllu(data, limit)
    from raison.datasets.spacy_trees import parse_file_with_spacy

    return parse_file_with_spacy(data, limit, parser=parser)


def draw_selection_of_heads(
    selection: HeadSelection, *, on_screen: bool, figure: Path | None, positions: Path | None
) -> None:
    """Print tables, and draw the pictures that were asked for."""
    from raison.show.figure.head_positions import draw_head_positions
    from raison.show.figure.heads import draw_heads
    from raison.show.terminal.heads import print_heads

    if on_screen:
        print_heads(selection)
    if figure is not None:
        draw_heads(selection, figure)
    if positions is not None:
        draw_head_positions(selection, positions)
