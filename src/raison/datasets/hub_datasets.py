"""Data sets of the Hugging Face package `datasets`, by the same column mapping as a user's own file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from raison.core.errors import InputError, MissingExtra
from raison.core.records import Example
from raison.core.spec import Spec, SpecValue
from raison.datasets.dataset_rows import Row, Rows
from raison.datasets.faults import gold_fault
from raison.datasets.file_settings import MAPPED, FileSettings, parse_file_settings
from raison.datasets.json_files import Json
from raison.datasets.loading import ExampleSource, LoadedData
from raison.datasets.user_files import finish_account_of_user_file, task_of_user_examples
from raison.datasets.user_records import ColumnReport, read_records

if TYPE_CHECKING:
    import datasets

__all__ = ["open_hub_dataset"]


def open_hub_dataset(
    name: str, params: Mapping[str, SpecValue], split: str | None = None
) -> ExampleSource:
    """The examples of a set on the hub, or of a folder written by `save_to_disk`, not read yet.

    `split` may stand in the spec as well; labels get the names of the set's ClassLabel.
    """
    where = f"hf:{name}"
    others = dict(params)
    inside = hub_setting_as_text(others.pop("split", None))
    config = hub_setting_as_text(others.pop("config", None))
    settings = parse_file_settings(where, others)
    check_hub_settings(settings)

    wanted = split or inside
    table = load_hub_dataset(name, config, wanted)
    label = settings.columns.get("label", "label")
    columns = settings.column_mapping(labels=class_names_of_hub_column(table.features, label))
    report = ColumnReport()

    def fault(example: Example) -> str:
        task = columns.task or task_of_user_examples([example])
        return gold_fault(task, example)

    spec = Spec(name, params)
    blank = LoadedData(
        name=f"hf:{spec}",
        split=str(table.split or wanted or "all"),
        task="",
        labels=columns.labels,
        examples=[],
    )
    return ExampleSource(
        rows=read_records(
            numbered_hub_rows(table, where),
            columns,
            file=where,
            report=report,
        ),
        fault=fault,
        blank=blank,
        finish=lambda loaded: finish_account_of_user_file(loaded, columns, report),
    )


def check_hub_settings(settings: FileSettings) -> None:
    """Refuse settings that are for files."""
    useless = set(settings.given) - set(MAPPED)
    if useless:
        names = ", ".join(sorted(useless))
        raise InputError(f"{names} means nothing for a Hugging Face data set: leave it away.")


def hub_setting_as_text(value: object) -> str | None:
    """A setting of the spec as text; bare words are text."""
    if value is None:
        return None
    return value.name if isinstance(value, Spec) else str(value)


def numbered_hub_rows(table: datasets.Dataset, where: str) -> Rows[Json]:
    """The records of a set; `line` counts them."""
    for number, record in enumerate(table, 1):
        yield Row(where, number, record)


def load_hub_dataset(name: str, config: str | None, split: str | None) -> datasets.Dataset:
    """A set of the hub or of a folder; of several splits the one that is named, else test."""
    try:
        import datasets
    except ImportError:
        raise MissingExtra("datasets", "data", "Reading Hugging Face data sets") from None

    try:
        if Path(name).is_dir():
            loaded = datasets.load_from_disk(name)
        else:
            loaded = datasets.load_dataset(name, config)
    except Exception as error:  # a hub has too many ways to fail
        lines = str(error).splitlines() or [type(error).__name__]
        why = lines[0]
        raise InputError(
            f"The Hugging Face data set {name!r} can't be loaded ({why.rstrip('.')}): check its name and the network, "
            "or name a folder that `save_to_disk` has written."
        ) from None

    if isinstance(loaded, Mapping):
        return choose_hub_split(name, loaded, split)
    if split is not None and str(loaded.split or "") not in ("", split):
        raise InputError(
            f"{name!r} holds the split {loaded.split}, not {split!r}: leave the split away."
        )
    return loaded


def choose_hub_split(
    name: str, parts: Mapping[str, datasets.Dataset], split: str | None
) -> datasets.Dataset:
    """The split that is named, else test, else the first."""
    known = list(parts)
    if not split:
        split = "test" if "test" in known else known[0]
    if split not in known:
        raise InputError(
            f"The data set {name!r} has no split {split!r}: it has {', '.join(known)}."
        )
    return parts[split]


def class_names_of_hub_column(features: Mapping[object, object], column: object) -> tuple[str, ...]:
    """Names of the classes of a column, also where it holds a list of them."""
    feature = features.get(column)
    inner = getattr(feature, "feature", None)
    names = getattr(feature, "names", None) or getattr(inner, "names", None)
    return tuple(names or ())
