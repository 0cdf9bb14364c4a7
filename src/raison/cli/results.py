"""Publishes the explanations of a command: to stdout first, then to JSON, HTML and figure files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from raison.core.errors import InputError
from raison.core.outputs import replacing_output

if TYPE_CHECKING:
    from raison.core.records import Explanation

__all__ = [
    "check_figure_ending",
    "print_results_as_json",
    "print_written_result_files",
    "publish_explanations",
]

PICTURES = (".png", ".svg", ".pdf")


def check_figure_ending(path: Path | None) -> None:
    """Refuse a figure whose ending tells no form of a picture."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise InputError(f"A figure is a .png, .svg or .pdf file, not {path.name!r}.")


def print_results_as_json(text: str) -> None:
    """JSON on stdout in UTF-8, whatever the terminal is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()


def print_written_result_files(paths: Iterable[Path | None]) -> None:
    """Say on stderr which files were written."""
    for path in paths:
        if path is not None:
            print(f"wrote {path}", file=sys.stderr)


def publish_explanations(
    explanations: Sequence[Explanation],
    *,
    json: bool,
    html: Path | None,
    out: Path | None,
    figure: Path | None,
    difference: bool = False,
) -> None:
    """Show explanations or print them as JSON, and write them to files."""
    from raison.show import render_many, to_figure, to_html

    lines = "".join(explanation.to_json() + "\n" for explanation in explanations)
    if json:
        print_results_as_json(lines)
    else:
        render_many(explanations, difference=difference)
    if out is not None:
        with replacing_output(out) as half:
            half.write_text(lines, encoding="utf-8")
    if html is not None:
        with replacing_output(html) as half:
            half.write_text(to_html(explanations), encoding="utf-8")
        print_written_result_files([html])
    if figure is not None:
        to_figure(explanations, figure, difference=difference)
        print_written_result_files([figure])
