"""A user's own file: JSON, CSV, TSV, Parquet, SQuAD, CoNLL-U, plain or parallel text, or a folder of ERASER."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from raison.core import limits
from raison.core.errors import InputError, MissingExtra
from raison.core.records import Example
from raison.core.registry import suggest
from raison.core.spec import Spec, one_of
from raison.datasets import eraser, parallel, table
from raison.datasets.base import Read, Source, gold_fault
from raison.datasets.jsonl import elements, objects
from raison.datasets.mapping import FIELDS, Columns
from raison.datasets.prose import prose
from raison.datasets.rows import Broken, Row, Rows, lines, unreadable
from raison.datasets.squad import questions
from raison.datasets.treebank import TAGS, trees
from raison.datasets.understanding import Account, read_records

__all__ = ["FORMATS", "SETTINGS", "chosen", "finished", "is_eraser", "source_of", "task_of"]

FORMATS = ("jsonl", "csv", "tsv", "parquet", "squad", "conllu", "txt", "eraser", "parallel")
SUFFIXES = ("jsonl", "csv", "tsv", "parquet", "conllu", "txt")
PARALLEL = "parallel"
# what a spec may say besides the columns (encoding: of lines that are no UTF-8, or `replace`; level and query: see
# eraser.py and prose.py; numbers, annotators and marked: see gold.py and marked.py; translation and base: parallel.py)
SETTINGS = (
    "format", "task", "labels", "segment", "encoding", "level", "query", "numbers", "annotators", "marked",
    "translation", "base",
)  # fmt: skip
MAPPED = ("task", "labels", "segment", "numbers", "annotators", "marked", "base")  # settings of the column mapping
TABLES = ("jsonl", "csv", "tsv", "parquet")


def source_of(path: Path, params: Mapping[str, Any], split: str | None = None) -> Source:
    """The examples of a file or an ERASER folder, not read yet."""
    settings, columns = chosen(str(path), params)
    form = settings.pop("format", "") or (PARALLEL if is_parallel(path, settings, columns) else format_of(path))
    one_of("format", form, FORMATS)
    if split is not None and form != "eraser":
        raise InputError(f"{str(path)!r} is a single file and has no splits: leave the split {split!r} away.")
    check(form, settings, columns)
    if form == "eraser":
        split = split or part_of(path)
    mapped = mapping_of(columns, settings, filled=form in ("csv", "tsv"))
    account = Account()
    rows = rows_of(path, form, split or "", settings, mapped, account)
    blank = Read(str(Spec(str(path), params)), split or "all", TASKS.get(form, ""), LABELS.get(form, mapped.labels), [])
    return Source(
        rows, lambda example: fault_of(example, form, mapped), blank, lambda read: finished(read, mapped, account)
    )


def mapping_of(columns: dict[str, Any], settings: Mapping[str, Any], filled: bool = False) -> Columns:
    """The column mapping of a spec."""
    chosen = {key: value for key, value in settings.items() if key in MAPPED}
    if "alignment" in columns:
        chosen.setdefault("task", "seq2seq")
    return Columns(columns, filled=filled, **chosen)


TASKS = {"squad": "qa", "conllu": "tagging", "txt": "text", "parallel": "seq2seq"}
LABELS = {"conllu": TAGS}


def rows_of(
    path: Path, form: str, split: str, settings: dict[str, Any], mapped: Columns, account: Account
) -> Rows[Example]:
    """The examples of a file in a format."""
    other = settings.get("encoding", "")
    if form in TABLES:
        return read_records(records_of(path, form, mapped, other), mapped, str(path), account)
    if form == "parallel":
        translation = beside(path, settings.get("translation"))
        alignment = beside(path, mapped.names.get("alignment"))
        return parallel.sentences(path, translation, alignment, base=mapped.base, other=other)
    if form == "squad":
        return questions(path)
    if form == "conllu":
        return trees(path)
    if form == "txt":
        return prose(path, settings.get("level", "line"))
    return eraser.records(path, split, level=settings.get("level", "span"), query=bool(settings.get("query", False)))


def records_of(path: Path, form: str, mapped: Columns, other: str) -> Rows[Any]:
    """The records of a table with their columns by name, or by number where the mapping has numbers."""
    if form == "jsonl":
        return elements(path, other=other) if first_sign(path) == "[" else objects(path, other=other)
    if form == "parquet":
        return parquet(path)
    delimiter = "," if form == "csv" else "\t"
    if numbers := mapped.numbers_of_columns():
        return table.numbered(path, numbers, delimiter, other=other)
    return table.named(path, delimiter, other=other)


def beside(path: Path, name: Any) -> Path | None:
    """A file that a spec names: as it is written, or beside the one that is read."""
    if name is None:
        return None
    for place in (Path(str(name)), path.parent / str(name)):
        if place.is_file():
            return place
    raise InputError(f"There is no file {str(name)!r}, also not beside {str(path)!r}: check the path.")


def chosen(name: str, params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and columns of a spec; bare words are text."""
    plain = {key: bare(value) for key, value in params.items()}
    known = (*FIELDS, *SETTINGS)
    for key in plain:
        if key not in known:
            raise InputError(
                f"{name!r} can't be read with {key!r}.{suggest(key, list(known))} "
                f"A column mapping takes {', '.join(FIELDS)}, and besides {', '.join(SETTINGS)}."
            )
    settings = {key: value for key, value in plain.items() if key in SETTINGS}
    if "labels" in settings:
        given = settings["labels"]
        settings["labels"] = tuple(map(str, given)) if isinstance(given, (list, tuple)) else (str(given),)
    return settings, {key: value for key, value in plain.items() if key in FIELDS}


def bare(value: Any) -> Any:
    if isinstance(value, Spec) and not value.params:
        return value.name
    return tuple(map(bare, value)) if isinstance(value, (list, tuple)) else value


def check(form: str, settings: dict[str, Any], columns: dict[str, Any]) -> None:
    """Refuse what a format can't use, rather than passing over it."""
    useful = {
        "encoding": ("jsonl", "csv", "tsv", "parallel"), "level": ("eraser", "txt"), "query": ("eraser",),
        "translation": ("parallel",), "base": (*TABLES, "parallel"),
    }  # fmt: skip
    for key in settings:
        if form not in useful.get(key, TABLES):
            raise InputError(f"{key} means nothing for {form}: leave it away.")
    encoding = settings.get("encoding", "replace")
    try:
        known = encoding == "replace" or codecs.lookup(encoding)
    except (LookupError, TypeError):
        known = False
    if not known:
        raise InputError(f"There is no encoding {encoding!r}: name one such as latin-1, or replace.")
    useless = [] if form in TABLES else [name for name in columns if (form, name) != ("parallel", "alignment")]
    if useless:
        raise InputError(f"{form} has no columns to map: leave {', '.join(useless)} away.")


def fault_of(example: Example, form: str, mapped: Columns) -> str:
    return gold_fault(TASKS.get(form, "") or mapped.task or task_of([example]), example)


def finished(read: Read, mapped: Columns, account: Account) -> Read:
    """The account with the task that the examples show, where nobody has named it, and with what was understood."""
    task = read.task or mapped.task or task_of(read.examples)
    return replace(read, task=task, understood=account.sentence, doubts=tuple(account.doubts))


def task_of(examples: list[Example]) -> str:
    """pair where there are two texts, tagging where a label is a list, classification where there is one, else text."""
    if any(example.pair is not None for example in examples):
        return "pair"
    if any(isinstance(example.label, (list, tuple)) for example in examples):
        return "tagging"
    return "classification" if any(example.label is not None for example in examples) else "text"


def is_parallel(path: Path, settings: Mapping[str, Any], columns: Mapping[str, Any]) -> bool:
    """Whether a spec names the other files of a parallel text; in a table the alignment is a column."""
    return "translation" in settings or ("alignment" in columns and suffix_of(path) not in (*TABLES, "json"))


def suffix_of(path: Path) -> str:
    """The end of a file's name, without .gz and its dot."""
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    return suffix.lower().removeprefix(".")


def format_of(path: Path) -> str:
    """The format that the name of a file tells, or the first line of a JSON file."""
    if path.is_dir():
        if is_eraser(path):
            return "eraser"
        raise InputError(f"The folder {str(path)!r} is not ERASER's (it has no docs): name a file in it.")
    suffix = suffix_of(path)
    if suffix in SUFFIXES:
        return suffix
    if suffix == "json":
        return "jsonl" if first_sign(path) == "[" or begins_with_object(path) else "squad"
    known = ", ".join(FORMATS)
    raise InputError(f"The name of {str(path)!r} does not tell its format: add format=, one of {known}.")


def begins_with_object(path: Path) -> bool:
    """Whether the first line of a JSON file is a record of its own."""
    for row in lines(path):
        if isinstance(row, Broken):
            return False
        if row.value.strip():
            try:
                first = limits.from_json(row.value)
            except json.JSONDecodeError:
                return False
            return isinstance(first, dict) and "data" not in first
    return False


def first_sign(path: Path) -> str:
    """The first character of a file that is no white space."""
    for row in lines(path, longest=limits.FILE):
        if isinstance(row, Broken):
            return ""
        if row.value.strip():
            return row.value.strip()[0]
    return ""


def is_eraser(folder: Path) -> bool:
    return any((folder / f"{name}{packed}").exists() for name in eraser.DOCUMENTS for packed in ("", ".gz"))


def part_of(folder: Path) -> str:
    """The split that is read by default."""
    for split in ("test", "val", "dev", "train"):
        if any((folder / f"{split}.jsonl{packed}").exists() for packed in ("", ".gz")):
            return split
    raise InputError(f"There is no file 'test.jsonl' in {str(folder)!r}: an ERASER folder has one for each split.")


def parquet(path: Path) -> Rows[dict[str, Any]]:
    """The rows of a Parquet file; `line` counts them."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtra("pyarrow", "data", "Reading Parquet files") from None
    number = 0
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                for record in batch.to_pylist():
                    number += 1
                    yield Row(str(path), number, record)
    except ArrowException as error:
        yield Broken(str(path), number + 1, f"it is not Parquet or damaged here ({str(error).splitlines()[0]})")
    except OSError as error:
        raise unreadable(path, error) from None
