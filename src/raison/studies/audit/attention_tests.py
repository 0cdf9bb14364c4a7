"""The tests of an audit, of any attention, of one attention and with adversaries; each fills its part of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from raison.core import progress
from raison.core.records import Example
from raison.studies.audit.adversarial_attention import spread_of_largest_divergences
from raison.studies.audit.attention_agreement import Agreement, agreement_with_importance
from raison.studies.audit.audit_numbers import Spread
from raison.studies.audit.audit_report import Audit
from raison.studies.audit.audit_settings import AuditSettings
from raison.studies.audit.audited_texts import AttentiveTexts, AuditedTexts
from raison.studies.audit.entropies import Entropies, normalised_entropies
from raison.studies.audit.information_about_words import WordInformation, information_about_words
from raison.studies.audit.replaced_attention import (
    ReplacedAttention,
    scores_with_replaced_attention,
)
from raison.studies.audit.result_cache import ResultCache
from raison.studies.audit.trained_adversary import Adversary, train_adversary
from raison.studies.audit.word_by_word import (
    ShownText,
    probability_from_words,
    show_words_of_given_texts,
    show_words_of_texts,
)
from raison.training.labelled_lines import read_labelled_lines

__all__ = ["with_adversaries", "with_tests_of_any_attention", "with_tests_of_one_attention"]


def with_tests_of_any_attention(
    report: Audit,
    every: AuditedTexts,
    deeply: AuditedTexts,
    settings: AuditSettings,
    cache: ResultCache,
) -> Audit:
    """The report with what is defined for every classifier with attention."""
    informative = every if isinstance(every, AttentiveTexts) else deeply
    model = every.model
    seed = settings.seed
    return replace(
        report,
        agreement=cache.get("agreement", Agreement, lambda: agreement_with_importance(deeply)),
        entropy=cache.get("entropy", Entropies, lambda: normalised_entropies(deeply)),
        information=cache.get(
            "information", WordInformation, lambda: information_about_words(informative)
        ),
        texts=cache.get_all(
            "texts",
            ShownText,
            lambda: [
                *show_words_of_given_texts(model, settings.texts, seed),
                *show_words_of_texts(deeply, settings.show),
            ],
        ),
    )


def with_tests_of_one_attention(
    report: Audit,
    every: AttentiveTexts,
    deeply: AttentiveTexts,
    settings: AuditSettings,
    cache: ResultCache,
) -> Audit:
    """The report with what needs one attention over words."""
    permutations = settings.permutations
    return replace(
        report,
        replaced=cache.get(
            "replaced",
            ReplacedAttention,
            lambda: scores_with_replaced_attention(every, permutations),
        ),
        token_probability=cache.get("alone", Spread, lambda: probability_from_words(every)),
        instance=cache.get("instance", Spread, lambda: spread_of_largest_divergences(deeply)),
    )


def with_adversaries(
    report: Audit,
    every: AttentiveTexts,
    train_texts: Sequence[Example],
    settings: AuditSettings,
    cache: ResultCache,
) -> Audit:
    """The report with the adversaries that were asked for, trained one after the other."""
    plan = [(kind, lam) for kind in settings.adversaries for lam in settings.lambdas]
    if not plan:
        return report
    model = every.model
    lines = read_labelled_lines(
        {"train": list(train_texts), "test": list(every.examples)},
        model.tokenizer,
        model.labels,
        model.hf.settings.longest,
    ).parts

    trained = []
    for number, (kind, lam) in enumerate(plan):
        what = f"adversary: {kind}, λ = {lam:g}"
        progress.report(number, len(plan), what)
        name = f"adversary-{kind}-{lam:g}"
        train = partial(
            train_adversary,
            model,
            lines["train"],
            lines["test"],
            kind=kind,
            lam=lam,
            epochs=settings.epochs,
            seed=settings.seed,
            folder=cache.checkpoints(name),
        )
        trained.append(cache.get(name, Adversary, train))
    return replace(report, adversaries=tuple(trained))
