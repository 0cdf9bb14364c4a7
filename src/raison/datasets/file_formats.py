"""The formats that a user's file may have, and finding out which one it has."""

from __future__ import annotations

import json
from pathlib import Path

from raison.core import limits
from raison.core.errors import InputError
from raison.datasets.dataset_rows import Broken
from raison.datasets.eraser_format import DOCUMENTS
from raison.datasets.text_files import read_lines

__all__ = [
    "FORMATS",
    "TABLES",
    "default_split_of_eraser_format",
    "first_sign_in_file",
    "format_of",
    "has_eraser_format",
    "suffix_of_file",
]

FORMATS = ("jsonl", "csv", "tsv", "parquet", "squad", "conllu", "txt", "eraser", "parallel")
TABLES = ("jsonl", "csv", "tsv", "parquet")  # formats whose columns are mapped
SUFFIXES = (*TABLES, "conllu", "txt")  # which are formats themselves
PACKED = ("", ".gz")


def format_of(path: Path) -> str:
    """The format that the name of a file tells, or the first line of a JSON file."""
    if path.is_dir():
        if has_eraser_format(path):
            return "eraser"
        raise InputError(
            f"The folder {str(path)!r} is not ERASER's (it has no docs): name a file in it."
        )

    suffix = suffix_of_file(path)
    if suffix in SUFFIXES:
        return suffix
    if suffix == "json":
        has_records = first_sign_in_file(path) == "[" or json_file_begins_with_record(path)
        return "jsonl" if has_records else "squad"
    known = ", ".join(FORMATS)
    raise InputError(
        f"The name of {str(path)!r} does not tell its format: add format=, one of {known}."
    )


def suffix_of_file(path: Path) -> str:
    """The end of a file's name, without .gz and its dot."""
    name = path.stem if path.suffix == ".gz" else path.name
    return Path(name).suffix.lower().removeprefix(".")


def json_file_begins_with_record(path: Path) -> bool:
    """Whether the first line of a JSON file is a record of its own."""
    for row in read_lines(path):
        if isinstance(row, Broken):
            return False
        if not row.value.strip():
            continue
        try:
            first = limits.read_json_text(row.value)
        except json.JSONDecodeError:
            return False
        return isinstance(first, dict) and "data" not in first
    return False


def first_sign_in_file(path: Path) -> str:
    """The first character of a file that is no white space."""
    for row in read_lines(path, longest=limits.FILE):
        if isinstance(row, Broken):
            return ""
        text = row.value.strip()
        if text:
            return text[0]
    return ""


def has_eraser_format(folder: Path) -> bool:
    """Whether a folder holds documents as ERASER has them."""
    return any(has_file_of_format(folder, name) for name in DOCUMENTS)


def default_split_of_eraser_format(folder: Path) -> str:
    """The split of an ERASER folder that is read by default."""
    for split in ("test", "val", "dev", "train"):
        if has_file_of_format(folder, f"{split}.jsonl"):
            return split
    raise InputError(
        f"There is no file 'test.jsonl' in {str(folder)!r}: an ERASER folder has one for each split."
    )


def has_file_of_format(folder: Path, name: str) -> bool:
    """Whether a file is there, plain or packed."""
    return any((folder / f"{name}{packed}").exists() for packed in PACKED)
