"""Data sets of the Hugging Face package `datasets`, by the same column mapping as a user's own file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raison.core.errors import InputError, MissingExtra
from raison.core.spec import Spec
from raison.datasets.base import Read, Source, gold_fault
from raison.datasets.rows import Row, Rows
from raison.datasets.understanding import Account, read_records
from raison.datasets.user_files import MAPPED, chosen, finished, mapping_of, task_of

__all__ = ["source_of"]


def source_of(name: str, params: Mapping[str, Any], split: str | None = None) -> Source:
    """The examples of a set on the hub, or of a folder written by `save_to_disk`, not read yet.

    `split` may stand in the spec as well; labels get the names of the set's ClassLabel.
    """
    given = dict(params)
    inside = given.pop("split", None)
    part = split or getattr(inside, "name", inside)
    config = given.pop("config", None)
    settings, columns = chosen(f"hf:{name}", given)
    if wrong := set(settings) - set(MAPPED):
        raise InputError(f"{', '.join(sorted(wrong))} means nothing for a Hugging Face data set: leave it away.")
    found = opened(name, getattr(config, "name", config), part)
    settings.setdefault("labels", class_names(found.features, columns.get("label", "label")))
    mapped = mapping_of(columns, settings)
    account = Account()
    blank = Read(f"hf:{Spec(name, params)}", str(found.split or part or "all"), "", mapped.labels, [])
    where = f"hf:{name}"

    def fault(example: Any) -> str:
        return gold_fault(mapped.task or task_of([example]), example)

    examples = read_records(rows(found, where), mapped, where, account)
    return Source(examples, fault, blank, lambda read: finished(read, mapped, account))


def rows(found: Any, where: str) -> Rows[dict[str, Any]]:
    for number, record in enumerate(found, 1):
        yield Row(where, number, record)


def opened(name: str, config: str | None, split: str | None) -> Any:
    """A `datasets.Dataset`; of several splits the one that is named, else test."""
    try:
        import datasets
    except ImportError:
        raise MissingExtra("datasets", "data", "Reading Hugging Face data sets") from None
    try:
        found = datasets.load_from_disk(name) if Path(name).is_dir() else datasets.load_dataset(name, config)
    except Exception as error:  # a hub has too many ways to fail
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"The Hugging Face data set {name!r} can't be loaded ({why.rstrip('.')}): check its name and the network, "
            "or name a folder that `save_to_disk` has written."
        ) from None
    if not isinstance(found, Mapping):
        if split is not None and str(found.split or "") not in ("", split):
            raise InputError(f"{name!r} holds the split {found.split}, not {split!r}: leave the split away.")
        return found
    part = split or ("test" if "test" in found else next(iter(found)))
    if part not in found:
        raise InputError(f"The data set {name!r} has no split {part!r}: it has {', '.join(found)}.")
    return found[part]


def class_names(features: Any, column: Any) -> tuple[str, ...]:
    """Names of the classes of a column, also where it holds a list of them."""
    kind = features.get(column)
    names = getattr(kind, "names", None) or getattr(getattr(kind, "feature", None), "names", None)
    return tuple(names or ())
