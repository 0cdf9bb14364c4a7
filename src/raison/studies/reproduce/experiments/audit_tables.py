"""Experiment: tables, curves and correlations of P2 and P3 from audits of many classifiers, which
recipes/attention.py trains, a line for each.

A method of such a suite is the name of a kind of model, and what is resampled and compared are its seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from raison.core.evaluation import EvaluatedText, Evaluation, MethodAxis
from raison.studies.reproduce.audit_lines import AuditLine, AuditNumbers, WordsOfText
from raison.studies.reproduce.experiment import (
    ModelsNotMade,
    Trial,
    evaluation_of_rows,
    experiment,
    experiment_column,
    titles_missing_in_trial,
)
from raison.studies.reproduce.recipe_lines import read_recipe_lines

__all__ = [
    "AuditRow",
    "audit_tables",
    "audited_kinds",
    "correlation_with_lambda",
    "row_of_audit_line",
]

SHOWN = 32  # words of a text that a picture has room for

Curves = dict[str, list[float]]  # by the title of a kind of model


@dataclass(frozen=True)
class AuditRow(AuditNumbers):
    """The numbers of one audit, and those of one of its adversaries."""

    jsd: float | None = experiment_column(
        "of a trained adversary's attention", higher=None, default=None
    )
    tvd: float | None = experiment_column("of its answers", higher=None, default=None)
    adversary_accuracy: float | None = experiment_column(
        "of that adversary", higher=True, default=None
    )
    lost: float | None = experiment_column("accuracy that it loses", higher=True, default=None)


@dataclass(frozen=True)
class AuditedKind:
    """A kind of model that was audited, and which adversaries of it are told."""

    lines: Mapping[int, AuditLine]  # by seed
    adversary: str  # kind of adversary; empty: none

    def row(self, seed: int, lam: float) -> AuditRow:
        """The numbers of one seed; none where it was not made."""
        line = self.lines.get(seed)
        if line is None:
            return AuditRow()
        return row_of_audit_line(line, self.adversary, lam)

    def mean_divergences(self, lam: float) -> tuple[float, float]:
        """JSD and TVD of the adversaries, the mean over seeds."""
        pairs = []
        for line in self.lines.values():
            adversary = line.adversary(self.adversary, lam)
            if adversary is not None:
                pair = (adversary.jsd, adversary.tvd)
                pairs.append(pair)
        if not pairs:
            nothing = float("nan")
            return nothing, nothing
        jsd, tvd = np.mean(pairs, axis=0)
        return float(jsd), float(tvd)


@dataclass(frozen=True)
class WordCurves:
    """The probability from each word of a text alone, model by model, the words, and what is to be said."""

    curves: Curves = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@experiment("audits")
def audit_tables(trial: Trial) -> Evaluation:
    """Numbers of audits, seed by seed; the setting `columns` says which."""
    data = trial.run.data
    settings = trial.run.settings
    kinds = audited_kinds(trial)
    made = {}
    for title, kind in kinds.items():
        if kind.lines:
            made[title] = kind
    if not made:
        place = str(trial.model)
        raise ModelsNotMade(
            f"{place!r} holds no audits of {data}: make them with recipes/attention.py."
        )

    known_seeds: set[int] = set()
    for kind in made.values():
        known_seeds.update(kind.lines)
    all_seeds = sorted(known_seeds)
    seeds = all_seeds[: trial.count]
    lam = float(settings.get("lambda", 1.0))
    rows = {}
    for title, kind in kinds.items():
        rows[title] = [kind.row(seed, lam) for seed in seeds]
    notes = notes_on_audited_seeds(trial, made)
    if trial.axis is not None:
        notes += correlation_with_lambda(rows, trial.axis)
    test_texts = count_of_audited_texts(made)
    notes.append(f"{test_texts} test texts.")

    curves: dict[str, Curves] = {}
    across: dict[str, Curves] = {}  # where the points of a curve stand
    words = WordCurves()
    if settings.get("shown"):
        words = audit_word_curves(made)
        curves["alone_curve"] = words.curves
        notes += words.notes
    if lambdas := settings.get("swept"):
        jsd_curves, tvd_curves = audit_divergence_curves(kinds, lambdas)
        across["tvd_curve"] = jsd_curves
        curves["tvd_curve"] = tvd_curves

    columns = AuditRow.chosen_columns(settings.get("columns"))
    evaluation = evaluation_of_rows(
        trial,
        columns,
        rows,
        data=data,
        model="many classifiers",
        notes=notes,
    )
    texts = []
    for seed in seeds:
        text = EvaluatedText(str(seed), f"seed {seed}")
        texts.append(text)
    settings = {**evaluation.settings, "words": words.words, "across": across}
    return replace(evaluation, texts=tuple(texts), curves=curves, settings=settings)


def audit_divergence_curves(
    kinds: Mapping[str, AuditedKind], lambdas: Sequence[float]
) -> tuple[Curves, Curves]:
    """JSD of attention and TVD of answers along λ, kind by kind: how far answers move with it (P3 Figure 1)."""
    jsd_curves, tvd_curves = {}, {}
    for title, kind in kinds.items():
        path = [kind.mean_divergences(lam) for lam in lambdas]
        jsd_curves[title] = [jsd for jsd, _ in path]
        tvd_curves[title] = [tvd for _, tvd in path]
    return jsd_curves, tvd_curves


def audited_kinds(trial: Trial) -> dict[str, AuditedKind]:
    """The kind of model of each method, which is a folder, or folder:kind of adversary."""
    folder = Path(str(trial.model))
    lines = read_recipe_lines(folder)
    data = trial.run.data
    kinds = {}
    for title, method in trial.methods.items():
        name, _, adversary = method.partition(":")
        stored = lines.get((data, name), {})
        lines_by_seed = {}
        for seed, line in stored.items():
            lines_by_seed[seed] = AuditLine.from_dict(line)
        kinds[title] = AuditedKind(lines_by_seed, adversary)
    return kinds


def row_of_audit_line(line: AuditLine, kind: str, lam: float) -> AuditRow:
    """The numbers of a line, and those of its adversary of a kind."""
    row = AuditRow(**vars(line.numbers))
    adversary = line.adversary(kind, lam)
    if adversary is None:
        return row
    row = replace(
        row,
        jsd=adversary.jsd,
        tvd=adversary.tvd,
        adversary_accuracy=adversary.accuracy,
    )
    if row.accuracy is None:
        return row
    lost = row.accuracy - adversary.accuracy
    return replace(row, lost=lost)


def notes_on_audited_seeds(trial: Trial, made: Mapping[str, AuditedKind]) -> list[str]:
    """How many seeds of each kind of model were audited, and which kinds were not."""
    counts = []
    for title, kind in made.items():
        count = len(kind.lines)
        counts.append(f"{title} {count}")
    all_counts = ", ".join(counts)
    notes = [f"Seeds: {all_counts}."]
    if missing := titles_missing_in_trial(trial, made):
        notes.append(missing)
    return notes


def count_of_audited_texts(made: Mapping[str, AuditedKind]) -> int:
    """The texts of the first audit; all are of one test part."""
    first = next(iter(made.values()))
    first_line = next(iter(first.lines.values()))
    return first_line.texts


def audit_word_curves(made: Mapping[str, AuditedKind]) -> WordCurves:
    """The probability that each word of a text alone gives to what is predicted (P3 Figure 2), of the models of the
    first seed that read the text alike and answer it alike."""
    shown: dict[str, WordsOfText] = {}
    for title, kind in made.items():
        line = kind.lines.get(0)
        if line is not None and line.shown is not None:
            shown[title] = line.shown
    if not shown:
        return WordCurves()
    first = next(iter(shown.values()))
    curves = {}
    for title, text in shown.items():
        is_read_alike = text.tokens == first.tokens
        is_answered_alike = text.predicted == first.predicted
        if is_read_alike and is_answered_alike:
            shown_part = text.probability[:SHOWN]
            curves[title] = list(shown_part)

    words = list(first.tokens[:SHOWN])
    sentence = " ".join(words)
    more = len(first.tokens) - len(words)
    end = "."
    if more:
        end = f" … (and {more} words more)."
    note = f"The picture's text is predicted {first.predicted!r}: {sentence}{end}"
    return WordCurves(curves, words, [note])


def correlation_with_lambda(rows: Mapping[str, Sequence[AuditRow]], axis: MethodAxis) -> list[str]:
    """Along models that differ in λ: the correlation of λ with the entropy of words' importance (P2 Table 2)."""
    lambdas, entropies = [], []
    for title, of_seeds in rows.items():
        if title not in axis.positions:
            continue
        lam = float(axis.positions[title])
        for row in of_seeds:
            if row.entropy_gradient is not None:
                lambdas.append(lam)
                entropies.append(row.entropy_gradient)
    different = set(lambdas)
    if len(different) < 3:
        return []

    x = np.array(lambdas)
    y = np.array(entropies)
    plain = pearson_correlation(x, y)
    ranks_of_x = half_tied_ranks_for_correlation(x)
    ranks_of_y = half_tied_ranks_for_correlation(y)
    ranked = pearson_correlation(ranks_of_x, ranks_of_y)
    models = len(entropies)
    return [
        f"Over {models} models λ and the entropy of words' importance by gradients are correlated by "
        f"{plain:+.2f} (Pearson) and {ranked:+.2f} (ranks)."
    ]


def pearson_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's correlation of two rows of numbers."""
    correlations = np.corrcoef(first, second)
    return float(correlations[0, 1])


def half_tied_ranks_for_correlation(values: np.ndarray) -> np.ndarray:
    """[n] how many values are smaller, equal ones counted by half."""
    each = values[:, None]
    others = values[None, :]
    smaller = (others < each).sum(1)
    equal = (others == each).sum(1)
    return np.asarray(smaller + equal / 2)
