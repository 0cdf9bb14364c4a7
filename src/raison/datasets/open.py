"""One verb for everything that holds examples: a registered data set, a user's file, a Hugging Face data set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from raison.core.errors import InputError
from raison.core.registry import datasets
from raison.core.spec import Spec
from raison.datasets import hub, user_files
from raison.datasets.base import Dataset, Read, Source

__all__ = ["open_dataset", "parted", "source_of"]

HUB = "hf:"


def open_dataset(
    spec: str | Spec | Dataset | os.PathLike[str],
    split: str | None = None,
    limit: int | None = None,
    data: str | os.PathLike[str] | None = None,
    skip_broken: bool = False,
    **params: Any,
) -> Read:
    """Read examples from what `spec` names.

    A registered data set (`sst2`, `eraser_movies(level=sentence)`; its files are below `data` or RAISON_DATA), a file
    (`reviews.csv(text=review, label=stars)`), or `hf:NAME(split=test, text=..., label=...)`. What stands in the
    brackets may be given as keywords as well.
    """
    return source_of(spec, split, data, **params).read(limit, skip_broken)


def source_of(
    spec: str | Spec | Dataset | os.PathLike[str],
    split: str | None = None,
    data: str | os.PathLike[str] | None = None,
    **params: Any,
) -> Source:
    """What `open_dataset` reads, not read yet: `stream()` gives one example after the other and keeps none."""
    if isinstance(spec, Dataset):
        return spec.source_of(split, data)
    name, inside = (spec.name, dict(spec.params)) if isinstance(spec, Spec) else parted(os.fspath(spec))
    both = {**inside, **params}
    if not name:
        raise InputError("The name of the data is empty: name a data set of `raison ls datasets` or a file.")
    if name.startswith(HUB):
        return hub.source_of(name.removeprefix(HUB), both, split)
    registered = name if name in datasets else by_folder(name)
    if registered:
        return datasets.build(Spec(registered, both)).source_of(split, data)
    path = Path(name)
    if path.exists():
        return user_files.source_of(path, both, split)
    if path.suffix or len(path.parts) > 1:
        raise InputError(f"There is no file {name!r}: check the path.")
    datasets[name]  # raises, with the nearest name
    raise AssertionError(name)


def by_folder(name: str) -> str:
    """The data set that lives in a folder of this name, where its own name is another (20news_sport)."""
    return next((known for known in datasets if getattr(datasets[known], "folder", "") == name), "")


def parted(text: str) -> tuple[str, dict[str, Any]]:
    """A name or path, and the parameters in brackets behind it.

    Unlike the name of a method, that of a file may hold any characters; the brackets are read in the same way.
    """
    text = text.strip()
    if Path(text).exists() or not text.endswith(")") or "(" not in text:
        return text, {}
    cuts = [index for index, char in enumerate(text) if char == "("]
    name = text[: cuts[0]]
    for cut in cuts[1:]:  # "data (1).csv(text=review)": brackets that belong to the path
        name = text[:cut] if Path(text[:cut]).exists() else name
    try:
        return name.strip(), dict(Spec.parse(f"x{text[len(name) :].strip()}", dots=True).params)
    except InputError:
        raise InputError(
            f"{text!r} is not a data set: write it like  name  or  file.csv(text=column), and a value with spaces or "
            'signs in quotes, such as (encoding="latin-1").'
        ) from None
