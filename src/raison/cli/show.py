"""`raison show`: a saved result in the terminal, as a figure, a page or LaTeX."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from raison.cli import options
from raison.core.outputs import check_outputs

if TYPE_CHECKING:
    from raison.show.saved_results import SavedResult

Out = Optional[Path]


def show_command(
    file: Annotated[
        Path, typer.Argument(help="A file that raison wrote: explanations, an evaluation, heads.")
    ],
    svg: Annotated[Out, typer.Option("--svg", help="Draw it as SVG.")] = None,
    png: Annotated[Out, typer.Option("--png", help="Draw it as PNG.")] = None,
    pdf: Annotated[Out, typer.Option("--pdf", help="Draw it as PDF.")] = None,
    tex: Annotated[
        Out, typer.Option("--tex", help="Write it as LaTeX: coloured text, or a table.")
    ] = None,
    html: Annotated[
        Out, typer.Option("--html", help="Write it as one page that opens from disk.")
    ] = None,
    force: options.Force = False,
) -> None:
    """Show a saved result: on the screen, or as a figure for a paper."""
    from raison.core.errors import InputError
    from raison.show.saved_results import read_saved_result, write_saved_result

    wanted = {".svg": svg, ".png": png, ".pdf": pdf, ".tex": tex, ".html": html}
    for ending, path in wanted.items():
        if path is not None and path.suffix.lower() != ending:
            raise InputError(f"{str(path)!r} should end in {ending}: name it so.")
    check_outputs(wanted.values(), force=force, inputs=[file])
    saved = read_saved_result(file)
    paths = [path for path in wanted.values() if path is not None]
    for path in paths:
        write_saved_result(saved, path)
        print(f"wrote {path}", file=sys.stderr)
    if not paths:
        show_on_screen(saved)


def show_on_screen(saved: SavedResult) -> None:
    from raison.core.artifact import Artifact
    from raison.core.evaluation import Evaluation
    from raison.show import render_many
    from raison.show.saved_results import heads_above_usual_thresholds, refuse_malformed_result
    from raison.show.terminal.evaluation import print_evaluation
    from raison.show.terminal.heads import print_heads
    from raison.show.terminal.style import terminal_console

    with refuse_malformed_result():
        if isinstance(saved, Evaluation):
            print_evaluation(saved, terminal_console())
        elif isinstance(saved, Artifact):
            print_heads(heads_above_usual_thresholds(saved))
        else:
            render_many(saved)
