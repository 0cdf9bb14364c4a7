"""`raison show`: a saved result in the terminal, as a figure, a page or LaTeX."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from raison.cli import options
from raison.core.outputs import check_outputs

if TYPE_CHECKING:
    from raison.show.files import Saved

Out = Optional[Path]


def show(
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
    from raison.show.files import read_saved, write_saved

    wanted = {".svg": svg, ".png": png, ".pdf": pdf, ".tex": tex, ".html": html}
    for ending, path in wanted.items():
        if path is not None and path.suffix.lower() != ending:
            raise InputError(f"{str(path)!r} should end in {ending}: name it so.")
    check_outputs(wanted.values(), force=force, inputs=[file])
    saved = read_saved(file)
    paths = [path for path in wanted.values() if path is not None]
    for path in paths:
        write_saved(saved, path)
        print(f"wrote {path}", file=sys.stderr)
    if not paths:
        on_screen(saved)


def on_screen(saved: Saved) -> None:
    from raison.core.artifact import Artifact
    from raison.core.evaluation import Evaluation
    from raison.show import render_many
    from raison.show.files import heads_above_thresholds, refuse_malformed
    from raison.show.terminal.heads import render_heads
    from raison.show.terminal.scoreboard import render_evaluation
    from raison.show.terminal.style import screen

    with refuse_malformed():
        if isinstance(saved, Evaluation):
            render_evaluation(saved, screen())
        elif isinstance(saved, Artifact):
            render_heads(heads_above_thresholds(saved))
        else:
            render_many(saved)
