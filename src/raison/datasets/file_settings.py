"""The settings of a user's file in a spec, such as `reviews.csv(text=review, label=stars, encoding=latin-1)`."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass

from raison.core.errors import InputError
from raison.core.registry import suggest_name
from raison.core.spec import Spec, SpecValue
from raison.datasets.column_mapping import FIELDS, ColumnMapping
from raison.datasets.file_formats import TABLES
from raison.datasets.json_files import Json

__all__ = ["MAPPED", "SETTINGS", "FileSettings", "check_settings", "parse_file_settings"]

# settings of the column mapping; for numbers and annotators see annotations.py, for marked see inline_marks.py
MAPPED = ("task", "labels", "segment", "numbers", "annotators", "marked", "base")
# what a spec may say besides the columns (encoding: of lines that are no UTF-8, or `replace`; level and query: see
# eraser.py and prose.py; translation: see parallel.py)
SETTINGS = (
    "format", "task", "labels", "segment", "encoding", "level", "query", "numbers", "annotators", "marked",
    "translation", "base",
)  # fmt: skip
# formats that can use a setting; the others are for tables only
USED_BY = {
    "encoding": ("jsonl", "csv", "tsv", "parallel"),
    "level": ("eraser", "txt"),
    "query": ("eraser",),
    "translation": ("parallel",),
    "base": (*TABLES, "parallel"),
}


@dataclass(frozen=True)
class FileSettings:
    """What a spec says about a file."""

    columns: Mapping[str, object]  # field -> column
    given: tuple[str, ...]  # the settings that the spec names, in its order
    mapping: Json  # those of the column mapping
    format: str = ""  # empty: what the name of the file tells
    encoding: str = ""  # of lines that are no UTF-8
    level: str = ""  # of plain text or ERASER's evidence; empty: the default of the format
    query: bool = False  # ERASER: the query is the first text
    translation: object = None  # the file with the other language

    def column_mapping(
        self, *, filled: bool = False, labels: tuple[str, ...] = ()
    ) -> ColumnMapping:
        """The column mapping of the spec; `labels` are those of the data, where the spec names none."""
        settings: Json = {"labels": labels}
        if "alignment" in self.columns:
            settings["task"] = "seq2seq"
        settings.update(self.mapping)
        return ColumnMapping(self.columns, filled=filled, **settings)


def parse_file_settings(name: str, params: Mapping[str, SpecValue]) -> FileSettings:
    """The settings and columns of a spec; bare words are text."""
    columns: dict[str, object] = {}
    settings: Json = {}
    for key, value in params.items():
        if key in FIELDS:
            columns[key] = plain_setting_value(value)
        elif key in SETTINGS:
            settings[key] = plain_setting_value(value)
        else:
            raise unknown_setting(name, key)

    mapping = {key: value for key, value in settings.items() if key in MAPPED}
    if "labels" in mapping:
        mapping["labels"] = label_names(mapping["labels"])

    return FileSettings(
        columns=columns,
        given=tuple(settings),
        mapping=mapping,
        format=settings.get("format", ""),
        encoding=settings.get("encoding", ""),
        level=settings.get("level", ""),
        query=bool(settings.get("query", False)),
        translation=settings.get("translation"),
    )


def unknown_setting(name: str, key: str) -> InputError:
    """What to say about a setting that nobody knows."""
    near = suggest_name(key, [*FIELDS, *SETTINGS])
    columns = ", ".join(FIELDS)
    settings = ", ".join(SETTINGS)
    return InputError(
        f"{name!r} can't be read with {key!r}.{near} A column mapping takes {columns}, and besides {settings}."
    )


def label_names(labels: object) -> tuple[str, ...]:
    """The names of the classes of a spec, which may be one."""
    if isinstance(labels, (list, tuple)):
        return tuple(map(str, labels))
    return (str(labels),)


def plain_setting_value(value: object) -> object:
    """A value of a spec, in which bare words are text."""
    if isinstance(value, Spec) and not value.params:
        return value.name
    if isinstance(value, (list, tuple)):
        return tuple(map(plain_setting_value, value))
    return value


def check_settings(form: str, settings: FileSettings) -> None:
    """Refuse what a format can't use, rather than passing over it."""
    for name in settings.given:
        if name != "format" and form not in USED_BY.get(name, TABLES):
            raise InputError(f"{name} means nothing for {form}: leave it away.")
    if "encoding" in settings.given:
        check_encoding_setting(settings.encoding)

    useless = list(settings.columns)
    if form in TABLES:
        useless = []
    elif form == "parallel":
        useless = [name for name in useless if name != "alignment"]
    if useless:
        raise InputError(f"{form} has no columns to map: leave {', '.join(useless)} away.")


def check_encoding_setting(encoding: str) -> None:
    """Refuse what is no name of an encoding."""
    if encoding == "replace":
        return
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise InputError(
            f"There is no encoding {encoding!r}: name one such as latin-1, or replace."
        ) from None
