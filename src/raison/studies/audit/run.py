"""Can the attention of a classifier be read as an explanation? The tests of the literature in one report (P2, P3)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raison.attention_models.adapter import AttentionModel
from raison.attention_models.module import MODEL_TYPE
from raison.core import limits
from raison.core.errors import InputError, Unsupported
from raison.core.records import Example
from raison.core.registry import datasets
from raison.core.spec import whole
from raison.datasets.base import DEVELOPMENT
from raison.datasets.open import open_dataset, parse_data_spec
from raison.models.load import load
from raison.studies.audit.diagnostics import Looked, shown, train_part, with_names
from raison.studies.audit.report import Audit, Shown, Spread
from raison.studies.audit.result_cache import Kept
from raison.training.class_data import content_of, data_mark
from raison.training.fit import SEEDS
from raison.training.multi_seed import REPORT

__all__ = ["Audit", "Shown", "Spread", "audit"]


def audit(
    model: Any,
    data: Any,
    *,
    split: str | None = None,
    limit: int | None = None,
    deep: int | None = None,
    data_dir: Any = None,
    permutations: int = 10,
    show: int = 6,
    texts: Sequence[str] = (),
    adversaries: Sequence[str] = (),
    lambdas: Sequence[float] = (1.0,),
    epochs: int = 15,
    train: Any = None,
    keep: str | os.PathLike[str] | None = None,
    seed: int = 0,
    skip_broken: bool = False,
) -> Audit:
    """Every diagnostic that is defined for the model, on labelled texts.

    Of a Hugging Face encoder attention is that of its last layer, from the row that is read, and what needs one
    attention over words (replaced attention, hidden states, words alone, adversaries) is not defined. Importance,
    influence and adversaries of single texts are measured on `deep` of the texts, drawn by the seed. `show` of them,
    and all `texts`, are shown word by word. `adversaries` (frozen, unfrozen) are trained on the data set's train part,
    or on the labelled texts of `train`, once for each of the `lambdas`. In the folder `keep` every part is kept as soon
    as it is done, and the same audit goes on from there.
    """
    whole("permutations", permutations, 1)
    whole("seed", seed, 0, SEEDS)
    if deep is not None:
        whole("deep", deep, 1)
    if bad := [lam for lam in lambdas if not 0 <= lam < float("inf")]:
        raise InputError(f"λ of an adversary is a number from 0 up, not {bad[0]}.")
    opened = load(model)
    if opened.task != "classification" or not hasattr(opened, "hf"):
        raise Unsupported(f"{opened.name} is no text classifier with an inside: an audit is about classifiers.")
    if not isinstance(opened, AttentionModel) and "attention" not in opened.offers:  # a rationalizer selects, for one
        raise Unsupported(
            f"{opened.name} has no attention that could be audited: name a model of `raison train classifier`, or a "
            "Hugging Face encoder."
        )
    if adversaries and not isinstance(opened, AttentionModel):
        raise Unsupported(
            "Adversaries are trained for raison's own attention classifiers: see raison train classifier."
        )
    data = os.fspath(data) if isinstance(data, os.PathLike) else data
    if wrong := [kind for kind in adversaries if kind not in ("frozen", "unfrozen")]:
        raise InputError(f"An adversary is frozen or unfrozen, not {wrong[0]!r}.")
    # whatever is wrong with them is said before the long work
    taught = train_part(opened, data, train, data_dir, skip_broken) if adversaries else []
    if texts:
        opened.encode([Example(text) for text in texts], truncate=True)
    found, broken = labelled(data, split, limit, data_dir, skip_broken)
    examples = with_names(opened, found)
    encodings = opened.encode([Example(e.text, e.pair) for e in examples], truncate=True)
    every = Looked(opened, examples, encodings, seed)
    few = sorted(np.random.default_rng([seed, 3]).permutation(len(examples))[:deep].tolist())
    looked = Looked(opened, [examples[k] for k in few], [encodings[k] for k in few], seed)
    cut = sum(opened.max_tokens is not None and len(encoding) >= opened.max_tokens for encoding in encodings)
    if cut:
        looked.notes.append(f"{cut} texts are as long as the model reads, or were cut to that.")
    if broken:
        looked.notes.append(f"{broken} broken records were left out.")
    own = isinstance(opened, AttentionModel)
    if len(few) < len(examples):
        what = "Importance, influence and other attention" if own else "Importance, influence and information"
        looked.notes.append(f"{what}: {len(few)} of {len(examples)} texts.")
    if own and taught_on(opened, data):
        looked.notes.append("The model was trained on this file: on texts that it has not seen it may do otherwise.")
    if getattr(opened.hf.config, "model_type", "") != MODEL_TYPE or opened.hf.settings.encoder == "transformer":
        looked.notes.append("A word is left out by hiding it: the others keep their positions, where P2 moves them up.")
    kept = Kept(
        None if keep is None else Path(keep),
        {
            "model": every.mark(),
            "data": data_mark(data),
            "settings": {
                "deep": deep, "permutations": permutations, "show": show, "texts": list(texts), "epochs": epochs,
                "seed": seed, "train": data_mark(taught),
            },
        },
    )  # fmt: skip
    return Audit(
        model=opened.name,
        data=data_mark(data) if isinstance(data, str) else "texts in memory",
        count=len(examples),
        accuracy=every.accuracy(every.said),
        f1=every.f1(every.said),
        f1_of=opened.labels[1] if len(opened.labels) == 2 else "all classes",
        commonest=float(np.bincount(every.gold).max() / len(every.gold)),
        replaced=kept("replaced", lambda: every.replaced(permutations)) if own else {},
        agreement=kept("agreement", looked.agreement),
        entropy=kept("entropy", looked.entropy),
        token_probability=kept("alone", every.token_probability) if own else None,
        information=kept("information", (every if own else looked).information),
        instance=kept("instance", looked.instance) if own else None,
        adversaries=every.adversaries(taught, adversaries, lambdas, epochs, kept) if adversaries else (),
        texts=kept("texts", lambda: (*shown(opened, texts, seed), *looked.shown(show))),
        notes=tuple(looked.notes),
    )


def taught_on(model: Any, data: Any) -> bool:
    """Whether the model was trained on this very file."""
    path = Path(str(getattr(model.hf, "name_or_path", ""))) / REPORT
    try:
        told = limits.from_json(path.read_text(encoding="utf-8"))
        return bool(content_of(data)) and told["asked"]["content"] == content_of(data)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def labelled(
    data: Any, split: str | None, limit: int | None, data_dir: Any, skip_broken: bool
) -> tuple[list[Example], int]:
    """The examples, and how many records are broken."""
    broken = 0
    if isinstance(data, str):
        name, _ = parse_data_spec(data)
        if split is None and name in datasets:
            split = next((s for s in ("test", *DEVELOPMENT) if s in datasets[name].splits), None)
        read = open_dataset(data, split, limit, data_dir, skip_broken)
        found, broken = read.examples, len(read.broken)
    else:
        found = list(data)[:limit]
    if not found:
        raise InputError("There are no texts to audit the model on.")
    if missing := sum(e.label is None for e in found):
        raise InputError(
            f"{missing} texts have no label, which an audit needs: name their column, as in (label=stars)."
        )
    return found, broken
