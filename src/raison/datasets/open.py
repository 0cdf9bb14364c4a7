"""`open_dataset` opens whatever holds examples: a registered data set, a user's file, a Hugging Face data set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from raison.core.errors import InputError
from raison.core.registry import datasets
from raison.core.spec import Spec
from raison.datasets.base import DataFolder, Dataset
from raison.datasets.hub_datasets import open_hub_dataset
from raison.datasets.json_files import Json
from raison.datasets.loading import ExampleSource, LoadedData
from raison.datasets.user_files import open_user_file

__all__ = ["DataSpec", "dataset_of_folder", "open_dataset", "open_source", "parse_data_spec"]

DataSpec = str | Spec | Dataset | os.PathLike[str]
HUB = "hf:"


def open_dataset(
    spec: DataSpec,
    split: str | None = None,
    limit: int | None = None,
    data: DataFolder = None,
    skip_broken: bool = False,
    **params: Any,
) -> LoadedData:
    """Read examples from what `spec` names.

    A registered data set (`sst2`, `eraser_movies(level=sentence)`; its files are below `data` or RAISON_DATA), a file
    (`reviews.csv(text=review, label=stars)`), or `hf:NAME(split=test, text=..., label=...)`. What stands in the
    brackets may be given as keywords as well.
    """
    return open_source(spec, split, data, **params).read(limit, skip_broken)


def open_source(
    spec: DataSpec, split: str | None = None, data: DataFolder = None, **params: Any
) -> ExampleSource:
    """What `open_dataset` reads, not read yet: `stream()` gives one example after the other and keeps none."""
    if isinstance(spec, Dataset):
        return spec.open_split(split, data)

    if isinstance(spec, Spec):
        name, inside = spec.name, dict(spec.params)
    else:
        name, inside = parse_data_spec(os.fspath(spec))
    settings = {**inside, **params}

    if not name:
        raise InputError(
            "The name of the data is empty: name a data set of `raison ls datasets` or a file."
        )
    if name.startswith(HUB):
        return open_hub_dataset(name.removeprefix(HUB), settings, split)

    registered = name if name in datasets else dataset_of_folder(name)
    if registered:
        dataset: Dataset = datasets.build(Spec(registered, settings))
        return dataset.open_split(split, data)

    path = Path(name)
    if path.exists():
        return open_user_file(path, settings, split)
    if path.suffix or len(path.parts) > 1:
        raise InputError(f"There is no file {name!r}: check the path.")
    datasets[name]  # raises, with the nearest name
    raise AssertionError(name)


def dataset_of_folder(folder: str) -> str:
    """The data set that lives in a folder of this name, where its own name is another (20news_sport)."""
    for name in datasets:
        if getattr(datasets[name], "folder", "") == folder:
            return name
    return ""


def parse_data_spec(text: str) -> tuple[str, Json]:
    """A name or path, and the parameters in brackets behind it.

    Unlike the name of a method, that of a file may hold any characters; the brackets are read in the same way.
    """
    text = text.strip()
    if Path(text).exists() or not text.endswith(")") or "(" not in text:
        return text, {}

    name, _, _ = text.partition("(")
    for cut in range(
        len(name) + 1, len(text)
    ):  # "data (1).csv(text=review)": brackets that belong to the path
        if text[cut] == "(" and Path(text[:cut]).exists():
            name = text[:cut]

    brackets = text.removeprefix(name).strip()
    try:
        params = Spec.parse(f"x{brackets}", dots=True).params
    except InputError:
        raise InputError(
            f"{text!r} is not a data set: write it like  name  or  file.csv(text=column), and a value with spaces or "
            'signs in quotes, such as (encoding="latin-1").'
        ) from None
    return name.strip(), dict(params)
