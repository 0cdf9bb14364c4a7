"""Checks of a command's options, and the input files that it reads: no result may be written over them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from os import PathLike
from pathlib import Path

from raison.core.errors import InputError
from raison.core.spec import Spec

__all__ = ["check_input_at_least", "input_files_of_data", "input_files_of_methods"]


def check_input_at_least(option: str, value: int, least: int) -> None:
    """Refuse an option that is too small a number."""
    if value < least:
        raise InputError(f"{option} is a whole number from {least} up, not {value}.")


def input_files_of_data(
    data: str | None, data_dir: str | PathLike[str] | None = None
) -> list[Path]:
    """The file or folder that a data set is read from, where it is one on this machine."""
    if data is None:
        return []
    from raison.core.registry import datasets
    from raison.datasets.base import folder_of_dataset
    from raison.datasets.open import dataset_of_folder, parse_data_spec

    with suppress(InputError):  # it is told when the data is read
        name, _ = parse_data_spec(data)
        registered = name if name in datasets else dataset_of_folder(name)
        if registered:
            return [folder_of_dataset(datasets[registered], data_dir)]
        return [Path(name)]
    return []


def input_files_of_methods(methods: Iterable[str]) -> list[Path]:
    """The files that methods name, such as the table of `idf(table="words.json")`."""
    found: list[Path] = []
    for text in methods:
        with suppress(InputError):  # it is told when the method is made
            found += input_files_in_spec(Spec.parse(text))
    return found


def input_files_in_spec(value: object) -> list[Path]:
    """The files that are named in a spec, however deep."""
    if isinstance(value, Spec):
        return [path for each in value.params.values() for path in input_files_in_spec(each)]
    if isinstance(value, str) and Path(value).is_file():
        return [Path(value)]
    return []
