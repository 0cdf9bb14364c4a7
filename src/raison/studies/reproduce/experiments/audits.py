"""Tables of P2 and P3 from audits of many classifiers: recipes/attention.py trains and audits them, a line for each.

A method of such a suite is the name of a kind of model, and what is resampled and compared are its seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from raison.core.evaluation import EvaluatedText, Evaluation, MethodAxis
from raison.studies.reproduce.audit_lines import AuditLine, AuditNumbers
from raison.studies.reproduce.experiment import (
    NotMade,
    Trial,
    build_evaluation,
    column_field,
    experiment,
)
from raison.studies.reproduce.recipe_lines import read_recipe_lines

__all__ = ["AuditRow", "audit_tables", "audited_kinds", "correlation_with_lambda", "row_of_line"]

SHOWN = 32  # words of a text that a picture has room for


@dataclass(frozen=True)
class AuditRow(AuditNumbers):
    """The numbers of one audit, and those of one of its adversaries."""

    jsd: float | None = column_field(
        "of a trained adversary's attention", higher=None, default=None
    )
    tvd: float | None = column_field("of its answers", higher=None, default=None)
    adversary_accuracy: float | None = column_field("of that adversary", higher=True, default=None)
    lost: float | None = column_field("accuracy that it loses", higher=True, default=None)


@dataclass(frozen=True)
class AuditedKind:
    """A kind of model that was audited, and which adversaries of it are told."""

    lines: Mapping[int, AuditLine]  # by seed
    adversary: str  # kind of adversary; empty: none

    def row(self, seed: int, lam: float) -> AuditRow:
        """The numbers of one seed; none where it was not made."""
        if seed not in self.lines:
            return AuditRow()
        return row_of_line(self.lines[seed], self.adversary, lam)

    def mean_divergences(self, lam: float) -> tuple[float, float]:
        """JSD and TVD of the adversaries, the mean over seeds."""
        adversaries = [line.adversary(self.adversary, lam) for line in self.lines.values()]
        pairs = [
            (adversary.jsd, adversary.tvd) for adversary in adversaries if adversary is not None
        ]
        if not pairs:
            return float("nan"), float("nan")
        jsd, tvd = np.mean(pairs, axis=0)
        return float(jsd), float(tvd)


@dataclass(frozen=True)
class WordCurves:
    """The probability from each word of a text alone, model by model, the words, and what is to be said."""

    curves: dict[str, list[float]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@experiment("audits")
def audit_tables(trial: Trial) -> Evaluation:
    """Numbers of audits, seed by seed; the setting `columns` says which."""
    settings = trial.run.settings
    kinds = audited_kinds(trial)
    made = {title: kind for title, kind in kinds.items() if kind.lines}
    if not made:
        place = str(trial.model)
        raise NotMade(
            f"{place!r} holds no audits of {trial.run.data}: make them with recipes/attention.py."
        )

    known_seeds: set[int] = set()
    for kind in made.values():
        known_seeds.update(kind.lines)
    seeds = sorted(known_seeds)[: trial.count]
    lam = float(settings.get("lambda", 1.0))
    rows = {}
    for title, kind in kinds.items():
        rows[title] = [kind.row(seed, lam) for seed in seeds]
    notes = notes_on_seeds(trial, made)
    if trial.axis is not None:
        notes += correlation_with_lambda(rows, trial.axis)
    notes.append(f"{count_of_texts(made)} test texts.")

    curves: dict[str, dict[str, list[float]]] = {}
    across: dict[str, dict[str, list[float]]] = {}  # where the points of a curve stand
    words = WordCurves()
    if settings.get("shown"):
        words = word_curves(
            {title: kind.lines[0] for title, kind in made.items() if 0 in kind.lines}
        )
        curves["alone_curve"] = words.curves
        notes += words.notes
    if lambdas := settings.get("swept"):  # P3 Figure 1: how far answers move when attention does
        across["tvd_curve"], curves["tvd_curve"] = {}, {}
        for title, kind in kinds.items():
            path = [kind.mean_divergences(each) for each in lambdas]
            across["tvd_curve"][title] = [jsd for jsd, _ in path]
            curves["tvd_curve"][title] = [tvd for _, tvd in path]

    wanted = settings.get("columns", [column.key for column in AuditRow.columns()])
    columns = [column for column in AuditRow.columns() if column.key in wanted]
    evaluation = build_evaluation(
        trial, columns, rows, data=trial.run.data, model="many classifiers", notes=notes
    )
    texts = [EvaluatedText(str(seed), f"seed {seed}") for seed in seeds]
    more = {"words": words.words, "across": across}
    return replace(
        evaluation, texts=tuple(texts), curves=curves, settings={**evaluation.settings, **more}
    )


def audited_kinds(trial: Trial) -> dict[str, AuditedKind]:
    """The kind of model of each method, which is a folder, or folder:kind of adversary."""
    lines = read_recipe_lines(Path(str(trial.model)))
    kinds = {}
    for title, method in trial.methods.items():
        name, _, adversary = method.partition(":")
        seeds = lines.get((trial.run.data, name), {})
        of_seeds = {seed: AuditLine.from_dict(line) for seed, line in seeds.items()}
        kinds[title] = AuditedKind(of_seeds, adversary)
    return kinds


def row_of_line(line: AuditLine, kind: str, lam: float) -> AuditRow:
    """The numbers of a line, and those of its adversary of a kind."""
    row = AuditRow(**vars(line.numbers))
    adversary = line.adversary(kind, lam)
    if adversary is None:
        return row
    accuracy = line.numbers.accuracy
    return replace(
        row,
        jsd=adversary.jsd,
        tvd=adversary.tvd,
        adversary_accuracy=adversary.accuracy,
        lost=None if accuracy is None else accuracy - adversary.accuracy,
    )


def notes_on_seeds(trial: Trial, made: Mapping[str, AuditedKind]) -> list[str]:
    """How many seeds of each kind of model were audited, and which kinds were not."""
    counts = [f"{title} {len(kind.lines)}" for title, kind in made.items()]
    notes = [f"Seeds: {', '.join(counts)}."]
    missing = [title for title in trial.methods if title not in made]
    if missing:
        notes.append(f"Not made yet: {', '.join(missing)}.")
    return notes


def count_of_texts(made: Mapping[str, AuditedKind]) -> int:
    """The texts of the first audit; all are of one test part."""
    first = next(iter(made.values()))
    return next(iter(first.lines.values())).texts


def word_curves(lines: Mapping[str, AuditLine]) -> WordCurves:
    """The probability that each word of a text alone gives to what is predicted (P3 Figure 2), of the models that read
    the text alike and answer it alike."""
    shown = {title: line.shown for title, line in lines.items() if line.shown is not None}
    if not shown:
        return WordCurves()
    first = next(iter(shown.values()))
    curves = {}
    for title, text in shown.items():
        if (text.tokens, text.predicted) == (first.tokens, first.predicted):
            curves[title] = list(text.probability[:SHOWN])

    words = list(first.tokens[:SHOWN])
    more = len(first.tokens) - len(words)
    end = f" … (and {more} words more)." if more else "."
    note = f"The picture's text is predicted {first.predicted!r}: {' '.join(words)}{end}"
    return WordCurves(curves, words, [note])


def correlation_with_lambda(rows: Mapping[str, Sequence[AuditRow]], axis: MethodAxis) -> list[str]:
    """Along models that differ in λ: the correlation of λ with the entropy of words' importance (P2 Table 2)."""
    lambdas, values = [], []
    for title, of_seeds in rows.items():
        if title not in axis.positions:
            continue
        for row in of_seeds:
            if row.entropy_gradient is not None:
                lambdas.append(float(axis.positions[title]))
                values.append(row.entropy_gradient)
    if len(set(lambdas)) < 3:
        return []
    plain = correlation(np.array(lambdas), np.array(values))
    ranked = correlation(half_tied_ranks(np.array(lambdas)), half_tied_ranks(np.array(values)))
    return [
        f"Over {len(values)} models λ and the entropy of words' importance by gradients are correlated by {plain:+.2f} "
        f"(Pearson) and {ranked:+.2f} (ranks)."
    ]


def correlation(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.corrcoef(first, second)[0, 1])


def half_tied_ranks(values: np.ndarray) -> np.ndarray:
    """[n] how many values are smaller, equal ones counted by half."""
    smaller = (values[None, :] < values[:, None]).sum(1)
    equal = (values[None, :] == values[:, None]).sum(1)
    return np.asarray(smaller + equal / 2)
