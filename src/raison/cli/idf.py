"""raison idf: in how many texts each word occurs, for the control `idf`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from raison.cli import options
from raison.cli.texts import read_text_file
from raison.core import limits
from raison.core.errors import InputError
from raison.core.outputs import check_outputs

TABLES = (".csv", ".tsv", ".json", ".parquet", ".gz")

Data = Annotated[
    Path,
    typer.Option(
        "--data", help="Texts: one in each line, or .jsonl with the field text in each line."
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Write the table here, for idf(table=…).")]
Words = Annotated[
    Optional[int], typer.Option("--words", help="Keep only so many words, those of most texts.")
]
Corpus = Annotated[
    Optional[str],
    typer.Option("--corpus", help="What to call the texts; default: the file's name."),
]


def idf_command(
    data: Data, out: Out, words: Words = None, corpus: Corpus = None, force: options.Force = False
) -> None:
    """Count in how many texts each word occurs: the table of the control idf."""
    check_outputs([out], force=force, inputs=[data])
    if words is not None and words < 1:
        raise InputError(f"The number of words is a whole number from 1 up, not {words}.")
    texts = texts_for_idf(data)
    from raison.studies.document_frequencies import fit_idf

    table = fit_idf(texts, largest=words, corpus=corpus or data.name)
    table.save(out)
    documents, counted = table.data["documents"], len(table.data["counts"])
    print(f"{counted} words of {documents} text{'s' if documents > 1 else ''}")
    print(f"wrote {out}", file=sys.stderr)


def texts_for_idf(path: Path) -> list[str]:
    """The texts of a file; blank lines are none."""
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder: name a file in it.")
    if path.suffix.lower() in TABLES:  # its header and labels would be counted as words
        raise InputError(
            f"{path.name!r} is no list of texts: write one in each line of a .txt, or use .jsonl."
        )
    every_line = read_text_file(path, limits.FILE).split("\n")
    lines = [(number, line) for number, line in enumerate(every_line, 1) if line.strip()]
    if not lines:
        raise InputError(f"{str(path)!r} is empty: give at least one text.")
    if path.suffix != ".jsonl":
        return [line for _, line in lines]
    import json

    texts = []
    for number, line in lines:
        try:
            found = limits.read_json_text(line)
        except json.JSONDecodeError:
            raise InputError(
                f"Line {number} of {str(path)!r} is not JSON: write one object in each line."
            ) from None
        if not isinstance(found, dict) or not isinstance(found.get("text"), str):
            raise InputError(
                f"Line {number} of {str(path)!r} has no text: give each object a field 'text'."
            )
        texts.append(found["text"])
    return texts
