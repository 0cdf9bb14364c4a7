"""A user's own file: JSON, CSV, TSV, Parquet, SQuAD, CoNLL-U, plain or parallel text, or a folder of ERASER."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from raison.core.errors import InputError
from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.core.spec import Spec, SpecValue
from raison.datasets.column_mapping import ColumnMapping
from raison.datasets.dataset_rows import Broken, Row, Rows
from raison.datasets.eraser_format import read_eraser
from raison.datasets.faults import gold_fault
from raison.datasets.file_formats import (
    FORMATS,
    TABLES,
    default_split_of_eraser_format,
    first_sign_in_file,
    format_of,
    suffix_of_file,
)
from raison.datasets.file_settings import FileSettings, check_settings, parse_file_settings
from raison.datasets.json_files import read_json_lines, read_json_list
from raison.datasets.loading import ExampleSource, LoadedData
from raison.datasets.nested_columns import RawRecord
from raison.datasets.parallel import read_parallel_text
from raison.datasets.prose import read_plain_text
from raison.datasets.squad import read_squad
from raison.datasets.table import read_numbered_table, read_parquet, read_table_rows
from raison.datasets.treebank import TAGS, read_treebank
from raison.datasets.user_records import ColumnReport, read_records

__all__ = ["finish_account_of_user_file", "open_user_file", "task_of_user_examples"]

TASKS = {"squad": "qa", "conllu": "tagging", "txt": "text", "parallel": "seq2seq"}
LABELS = {"conllu": TAGS}


@dataclass(frozen=True)
class UserFile:
    """A file, and how it is read."""

    path: Path
    form: str  # one of FORMATS
    split: str  # of an ERASER folder
    settings: FileSettings
    columns: ColumnMapping

    @property
    def task(self) -> str:
        """What the format or the user says; empty: what the examples show."""
        return TASKS.get(self.form, "") or self.columns.task

    def rows(self, report: ColumnReport) -> Rows[Example]:
        """The examples of the file; what is understood of a table goes to the report."""
        if self.form in TABLES:
            return read_records(
                self.records(),
                self.columns,
                file=str(self.path),
                report=report,
            )
        if self.form == "parallel":
            return self.parallel_rows()
        if self.form == "squad":
            return read_squad(self.path)
        if self.form == "conllu":
            return read_treebank(self.path)
        if self.form == "txt":
            return read_plain_text(self.path, self.settings.level or "line")
        return read_eraser(
            self.path,
            self.split,
            level=self.settings.level or "span",
            query=self.settings.query,
        )

    def records(self) -> Iterator[Row[RawRecord] | Broken]:
        """The records of a table with their columns by name, or by number where the mapping has numbers."""
        other = self.settings.encoding
        if self.form == "parquet":
            return read_parquet(self.path)
        if self.form == "jsonl":
            is_list = first_sign_in_file(self.path) == "["
            read_json = read_json_list if is_list else read_json_lines
            return read_json(self.path, other=other)

        delimiter = "," if self.form == "csv" else "\t"
        numbers = self.columns.numbers_of_columns()
        if numbers:
            return read_numbered_table(
                self.path,
                numbers,
                delimiter,
                other=other,
            )
        return read_table_rows(self.path, delimiter, other=other)

    def parallel_rows(self) -> Rows[Example]:
        """The examples of a parallel text, with the other files that the spec names."""
        translation = user_file_beside(self.path, self.settings.translation)
        alignment = user_file_beside(self.path, self.columns.names.get("alignment"))
        return read_parallel_text(
            self.path, translation, alignment, base=self.columns.base, other=self.settings.encoding
        )

    def blank(self, name: str) -> LoadedData:
        """The account of the file, before anything is read."""
        return LoadedData(
            name,
            split=self.split or "all",
            task=TASKS.get(self.form, ""),
            labels=LABELS.get(self.form, self.columns.labels),
            examples=[],
        )

    def fault(self, example: Example) -> str:
        """What is wrong with an example; nothing, mostly."""
        return gold_fault(self.task or task_of_user_examples([example]), example)


def open_user_file(
    path: Path, params: Mapping[str, SpecValue], split: str | None = None
) -> ExampleSource:
    """The examples of a file or an ERASER folder, not read yet."""
    settings = parse_file_settings(str(path), params)
    form = settings.format or guess_format_of_user_file(path, settings)
    check_choice("format", form, FORMATS)
    if split is not None and form != "eraser":
        raise InputError(
            f"{str(path)!r} is a single file and has no splits: leave the split {split!r} away."
        )
    check_settings(form, settings)
    if form == "eraser":
        split = split or default_split_of_eraser_format(path)

    file = UserFile(
        path,
        form=form,
        split=split or "",
        settings=settings,
        columns=settings.column_mapping(filled=form in ("csv", "tsv")),
    )
    report = ColumnReport()
    spec = Spec(str(path), params)
    return ExampleSource(
        rows=file.rows(report),
        fault=file.fault,
        blank=file.blank(str(spec)),
        finish=lambda loaded: finish_account_of_user_file(loaded, file.columns, report),
    )


def guess_format_of_user_file(path: Path, settings: FileSettings) -> str:
    """The format of a file whose spec does not say it."""
    if is_parallel(path, settings):
        return "parallel"
    return format_of(path)


def is_parallel(path: Path, settings: FileSettings) -> bool:
    """Whether a spec names the other files of a parallel text; in a table the alignment is a column."""
    if "translation" in settings.given:
        return True
    return "alignment" in settings.columns and suffix_of_file(path) not in (*TABLES, "json")


def user_file_beside(path: Path, name: object) -> Path | None:
    """A file that a spec names: as it is written, or beside the one that is read."""
    if name is None:
        return None
    for place in (Path(str(name)), path.parent / str(name)):
        if place.is_file():
            return place
    raise InputError(
        f"There is no file {str(name)!r}, also not beside {str(path)!r}: check the path."
    )


def finish_account_of_user_file(
    loaded: LoadedData, columns: ColumnMapping, report: ColumnReport
) -> LoadedData:
    """The account with the task that the examples show, where nobody has named it, and with what was understood."""
    task = loaded.task or columns.task or task_of_user_examples(loaded.examples)
    return replace(
        loaded,
        task=task,
        understood=report.sentence,
        doubts=tuple(report.doubts),
    )


def task_of_user_examples(examples: list[Example]) -> str:
    """pair where there are two texts, tagging where a label is a list, classification where there is one, else text."""
    if any(example.pair is not None for example in examples):
        return "pair"
    if any(isinstance(example.label, (list, tuple)) for example in examples):
        return "tagging"
    if any(example.label is not None for example in examples):
        return "classification"
    return "text"
