"""`audit`: can the attention of a classifier be read as an explanation? All tests in one report (P2, P3)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raison.attention_models.adapter import AttentionModel
from raison.core.records import Example
from raison.models.load import load
from raison.models.protocol import InspectableModel
from raison.studies.audit.attention_tests import (
    with_adversaries,
    with_tests_of_any_attention,
    with_tests_of_one_attention,
)
from raison.studies.audit.audit_data import DataSource, Texts, audited_model_was_trained_on
from raison.studies.audit.audit_report import Audit
from raison.studies.audit.audit_settings import AuditSettings, checked_classifier
from raison.studies.audit.audited_texts import AttentiveTexts, AuditedTexts, audited_texts
from raison.studies.audit.result_cache import AuditIdentity, ResultCache
from raison.training.data_names import name_of_labelled_data

__all__ = ["Audit", "audit"]


def audit(
    model: Any,
    data: Texts,
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
    train: Texts | None = None,
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
    settings = AuditSettings(
        deep=deep,
        permutations=permutations,
        show=show,
        texts=tuple(texts),
        adversaries=tuple(adversaries),
        lambdas=tuple(lambdas),
        epochs=epochs,
        seed=seed,
    )
    classifier = checked_classifier(load(model), settings)
    source = DataSource(
        texts=os.fspath(data) if isinstance(data, os.PathLike) else data,
        split=split,
        limit=limit,
        folder=data_dir,
        skip_broken=skip_broken,
    )

    # whatever is wrong with the texts is said before the long work
    train_texts = source.read_train(classifier, train) if adversaries else []
    if texts:
        classifier.encode([Example(text) for text in texts], truncate=True)
    labelled = source.read(classifier)

    every = read_audited_texts(classifier, labelled.examples, seed)
    deeply = draw_audited_texts(every, deep)
    identity = AuditIdentity(
        model=every.fingerprint(),
        data=name_of_labelled_data(source.texts),
        settings=settings.identity() | {"train": name_of_labelled_data(train_texts)},
    )
    cache = ResultCache(None if keep is None else Path(keep), identity)
    notes = audit_notes(every, deeply, source, broken=labelled.broken)
    report = report_without_tests(every, source, notes)
    report = with_tests_of_any_attention(report, every, deeply, settings, cache)
    if isinstance(every, AttentiveTexts) and isinstance(deeply, AttentiveTexts):
        report = with_tests_of_one_attention(report, every, deeply, settings, cache)
        report = with_adversaries(report, every, train_texts, settings, cache)
    return report


def report_without_tests(every: AuditedTexts, source: DataSource, notes: tuple[str, ...]) -> Audit:
    """How good the model is, on which texts."""
    labels = every.model.labels
    return Audit(
        model=every.model.name,
        data=name_of_labelled_data(source.texts)
        if isinstance(source.texts, str)
        else "texts in memory",
        count=len(every),
        accuracy=every.accuracy(every.predicted),
        f1=every.f1(every.predicted),
        f1_of=labels[1] if len(labels) == 2 else "all classes",
        commonest=every.share_of_commonest_label,
        notes=notes,
    )


def read_audited_texts(
    model: InspectableModel, examples: Sequence[Example], seed: int
) -> AuditedTexts:
    """The texts as the model reads them; one that is too long is cut."""
    plain = []
    for example in examples:
        plain.append(Example(example.text, example.pair))
    return audited_texts(model, examples, model.encode(plain, truncate=True), seed)


def draw_audited_texts(every: AuditedTexts, count: int | None) -> AuditedTexts:
    """So many of the texts, drawn by the seed, in their order."""
    random = np.random.default_rng([every.seed, 3])
    drawn = random.permutation(len(every))[:count]
    numbers = sorted(drawn.tolist())
    examples = [every.examples[number] for number in numbers]
    encodings = [every.encodings[number] for number in numbers]
    return audited_texts(every.model, examples, encodings, every.seed)


def audit_notes(
    every: AuditedTexts, deeply: AuditedTexts, source: DataSource, *, broken: int
) -> tuple[str, ...]:
    """What a reader must know about texts and model."""
    model = every.model
    attentive = isinstance(model, AttentionModel)
    notes = []
    if model.max_tokens is not None:
        cut = sum(len(encoding) >= model.max_tokens for encoding in every.encodings)
        if cut:
            notes.append(f"{cut} texts are as long as the model reads, or were cut to that.")
    if broken:
        notes.append(f"{broken} broken records were left out.")
    if len(deeply) < len(every):
        what = "other attention" if attentive else "information"
        notes.append(f"Importance, influence and {what}: {len(deeply)} of {len(every)} texts.")
    if attentive and audited_model_was_trained_on(model, source.texts):
        notes.append(
            "The model was trained on this file: on texts that it has not seen it may do otherwise."
        )
    if not audited_model_reads_words_moved_up(model):
        notes.append(
            "A word is left out by hiding it: the others keep their positions, where P2 moves them up."
        )
    return tuple(notes)


def audited_model_reads_words_moved_up(model: InspectableModel) -> bool:
    """Whether the words behind one that is left out move up, as in a recurrent model."""
    return isinstance(model, AttentionModel) and model.hf.settings.encoder != "transformer"
