"""Does an explanation point where people pointed? Agreement of units with a human rationale.

micro: counts are summed over all texts, then divided (a `Share`). macro: a number per text, whose mean is reported. The
names of the numbers say which it is.

A text of which no gold unit is left (the rationale was cut off with the end of a long text, or comes after the target),
or in which people marked nothing, has nothing to find: its numbers do not exist, they are NaN, and it adds nothing to
what is pooled. Nothing else is NaN.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import floor

import numpy as np

from raison.core.documents import documents_of, tokens_of, units_of_tokens
from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.spec import between, one_of, whole
from raison.metrics.base import Asking, AveragedF1, Metric, Share, Subject, gold_units, metric

__all__ = [
    "area_under_precision_recall",
    "chosen_count",
    "eraser_span_scores",
    "f1",
    "gold_spans",
    "iou",
    "mass_on_gold",
    "matching_spans",
    "overlap",
    "precision",
    "recall",
    "runs",
]

Spans = Collection[Collection[int]]  # each the numbers of its units
Numbers = dict[str, "float | Share | AveragedF1 | np.ndarray"]
NAN = float("nan")


# -- sets of units ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overlap:
    """How many units (or spans) two sets have, and have in common."""

    both: int
    chosen: int
    gold: int


def overlap(chosen: np.ndarray, gold: np.ndarray) -> Overlap:
    """Counts of two masks [u]."""
    chosen, gold = np.asarray(chosen, bool), np.asarray(gold, bool)
    if chosen.shape != gold.shape or chosen.ndim != 1:
        raise InputError(
            f"A choice of {chosen.shape} units does not fit a rationale of {gold.shape}: use the same units."
        )
    return Overlap(int((chosen & gold).sum()), int(chosen.sum()), int(gold.sum()))


def precision(counts: Overlap) -> float:
    """Which share of what was chosen is gold; 0 for an empty choice, as in ERASER and scikit-learn."""
    return ratio(counts.both, counts.chosen, counts)


def recall(counts: Overlap) -> float:
    """Which share of what is gold was chosen."""
    return ratio(counts.both, counts.gold, counts)


def f1(counts: Overlap) -> float:
    """2 · both / (chosen + gold), the harmonic mean of precision and recall."""
    return ratio(2 * counts.both, counts.chosen + counts.gold, counts)


def iou(counts: Overlap) -> float:
    """Intersection over union, the Jaccard index."""
    return ratio(counts.both, counts.chosen + counts.gold - counts.both, counts)


def ratio(part: int, total: int, counts: Overlap) -> float:
    if not counts.gold:
        return NAN
    return part / total if total else 0.0


def pooled(part: int, total: int, counts: Overlap) -> Share:
    """What one text adds to a pooled number: nothing where nothing was to be found."""
    return Share(part, total) if counts.gold else Share(0, 0)


# -- spans --------------------------------------------------------------------------------------------------


def runs(chosen: np.ndarray, segment: Sequence[int] | None = None) -> list[frozenset[int]]:
    """Maximal runs of neighbouring chosen units that are of one segment."""
    found: list[set[int]] = []
    for u in np.flatnonzero(chosen).tolist():
        if found and u - 1 in found[-1] and (segment is None or segment[u] == segment[u - 1]):
            found[-1].add(u)
        else:
            found.append({u})
    return [frozenset(run) for run in found]


def gold_spans(subject: Subject) -> list[frozenset[int]]:
    """The units of each gold span that is still there; equal ones count once, overlapping ones each."""
    if subject.example is None or not subject.gold.any():  # without a rationale anywhere `gold` refuses
        return []
    encoding, units = subject.explanation.encoding, subject.units
    marks = (gold_units(encoding, units, replace(subject.example, gold=(s,))) for s in subject.example.gold)
    spans = [frozenset(np.flatnonzero(mark).tolist()) for mark in marks]
    return [span for span in dict.fromkeys(spans) if span]


def matching_spans(predicted: Spans, gold: Spans, threshold: float = 0.5) -> Overlap:
    """ERASER's counts: a predicted span matches if its IOU with some gold span is at least the threshold.

    `both` is the number of predicted spans that match: the numerator of precision and of recall. Maximal runs can't
    match the same gold span twice at 0.5 or more, so recall is at most 1; for other spans it may exceed 1, as in the
    released code.
    """
    found, truth = {frozenset(s) for s in predicted}, {frozenset(s) for s in gold}
    best = [max((len(p & g) / len(p | g) for g in truth if p | g), default=0.0) for p in found]
    return Overlap(sum(value >= threshold for value in best), len(found), len(truth))


def eraser_span_scores(texts: Iterable[tuple[Spans, Spans]], threshold: float = 0.5) -> dict[str, float]:
    """ERASER's corpus figures from (predicted, gold) spans of each text.

    micro: matches of all texts by all predicted (gold) spans. macro: precision is averaged over the texts that predict
    something, recall over those that have gold, and F1 is that of the two averages; it is not the mean over texts of
    F1, which `span_f1_macro` reports. Where there is nothing to divide by, ERASER says 0.
    """
    counts = [matching_spans(predicted, gold, threshold) for predicted, gold in texts]
    both = sum(c.both for c in counts)
    micro = over(both, sum(c.chosen for c in counts)), over(both, sum(c.gold for c in counts))
    each = [c.both / c.chosen for c in counts if c.chosen], [c.both / c.gold for c in counts if c.gold]
    macro = over(sum(each[0]), len(each[0])), over(sum(each[1]), len(each[1]))
    names = ("precision_micro", "recall_micro", "f1_micro", "precision_macro", "recall_macro", "f1_macro")
    return dict(zip(names, (*micro, harmonic(*micro), *macro, harmonic(*macro)), strict=True))


def over(part: float, total: float) -> float:
    return part / total if total else 0.0


def harmonic(p: float, r: float) -> float:
    return 2 * p * r / (p + r) if p and r else 0.0


# -- scores -------------------------------------------------------------------------------------------------


def checked(scores: np.ndarray, gold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scores, gold = np.asarray(scores, np.float64), np.asarray(gold, bool)
    if scores.shape != gold.shape or scores.ndim != 1:
        raise InputError(f"Scores of {scores.shape} units do not fit a rationale of {gold.shape}: use the same units.")
    if not np.isfinite(scores).all():
        raise InputError("Scores can't be NaN or infinite: leave such a text out.")
    return scores, gold


def area_under_precision_recall(scores: np.ndarray, gold: np.ndarray, area: str = "step") -> float:
    """The area under precision as a function of recall, over all thresholds on the scores.

    Units of equal score are above a threshold together. step: Σ_i (R_i − R_{i−1}) P_i, average precision, as
    scikit-learn has it; trapezoid: Σ_i (R_i − R_{i−1}) (P_i + P_{i−1}) / 2 from (0, 1) on, which ERASER calls AUPRC and
    which is too high where points are few (Davis & Goadrich 2006). Equal scores give the share of gold units by step.
    """
    scores, gold = checked(scores, gold)
    one_of("area", area, ("step", "trapezoid"))
    if not gold.any():
        return NAN
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)  # of each group of equal scores
    hits = np.cumsum(gold[order])[last]
    height = hits / (last + 1)
    step = np.diff(hits / gold.sum(), prepend=0.0)
    if area == "trapezoid":
        height = (height + np.append(1.0, height[:-1])) / 2
    return float(step @ height)


def mass_on_gold(scores: np.ndarray, gold: np.ndarray, sign: str = "absolute") -> float:
    """Σ_{u gold} m_u / Σ_u m_u, with m = |score| (absolute) or max(score, 0) (positive).

    Where no unit has any mass, no unit has more than another, so it is what equal scores give: the share of gold units.
    """
    scores, gold = checked(scores, gold)
    one_of("sign", sign, ("absolute", "positive"))
    if not gold.any():
        return NAN
    mass = np.abs(scores) if sign == "absolute" else np.maximum(scores, 0.0)
    if not mass.any():
        return float(gold.mean())
    mass = mass / mass.max()  # sums of huge scores stay finite, tiny ones do not vanish
    return float(mass[gold].sum() / mass.sum())


def chosen_count(k: int | float | None, units: int, gold: int, share: float | None = None) -> int:
    """How many units make a rationale, from 1 to `units`.

    k a whole number: so many. k a share in (0, 1]: so much of the text. None: the data set's mean share of gold units
    (ERASER's length of a rationale), or the number of gold units of this very text where that share is not known.
    Halves are rounded up.
    """
    if k is None and share is None:
        count = gold
    elif isinstance(k, int):
        count = k
    else:
        count = floor((share if k is None else k) * units + 0.5)  # type: ignore[operator]
    return min(max(count, 1), units)


def check_k(k: int | float | None) -> None:
    if isinstance(k, float):
        between("k as a share", k, 0, 1)
    elif k is not None:
        whole("k", k, 1)


# -- metrics ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plausibility(Metric):
    """Agreement with a human rationale; asks the model nothing."""

    higher = True
    span = (0.0, 1.0)
    needs = frozenset({"gold"})

    def ask(self, subject: Subject) -> Asking:
        yield from ()
        return self.numbers(subject)

    @abstractmethod
    def numbers(self, subject: Subject) -> Numbers:
        """The numbers of one text."""


def top(subject: Subject, k: int | float | None) -> np.ndarray:
    """[u] the units with the highest scores."""
    count = chosen_count(k, len(subject.units), int(subject.gold.sum()), subject.gold_share)
    return subject.best(count)


def rationale(subject: Subject, k: int | float | None) -> np.ndarray:
    """[u] what the explanation selects, or else the units with the highest scores."""
    selected = subject.explanation.selected
    return top(subject, k) if selected is None else selected


@metric("token_f1_micro")
@dataclass(frozen=True)
class TokenF1Micro(Plausibility):
    """F1, precision and recall of the chosen units against the gold units, pooled over all texts.

    precision = Σ|A∩G| / Σ|A|, recall = Σ|A∩G| / Σ|G|, F1 = 2 Σ|A∩G| / (Σ|A| + Σ|G|), sums over texts. A is what the
    explanation selects, or its k highest scores.
    """

    k: int | float | None = None  # units to choose: a whole number, a share (1.0: all), None: as many as people do

    paper = "DeYoung et al. 2020 (ERASER), token F1, micro"
    keys = ("token_f1_micro", "token_precision_micro", "token_recall_micro")

    def __post_init__(self) -> None:
        check_k(self.k)

    def numbers(self, subject: Subject) -> Numbers:
        return pooled_scores("token", overlap(rationale(subject, self.k), subject.gold))


@metric("token_f1_macro")
@dataclass(frozen=True)
class TokenF1Macro(Plausibility):
    """F1, precision and recall of the chosen units against the gold units of each text, averaged over texts.

    F1 = 2|A∩G| / (|A| + |G|) of one text; the mean of F1 is not the F1 of the means. A rationale that selects nothing
    has precision 0, as in ERASER.
    """

    k: int | float | None = None  # units to choose: a whole number, a share (1.0: all), None: as many as people do

    paper = "DeYoung et al. 2020 (ERASER), token F1, macro"
    keys = ("token_f1_macro", "token_precision_macro", "token_recall_macro")

    def __post_init__(self) -> None:
        check_k(self.k)

    def numbers(self, subject: Subject) -> Numbers:
        return single_scores("token", overlap(rationale(subject, self.k), subject.gold))


@metric("token_iou")
@dataclass(frozen=True)
class TokenIou(Plausibility):
    """Intersection over union of the chosen and the gold units: the mean over texts, and pooled.

    IOU = |A∩G| / |A∪G|.
    """

    k: int | float | None = None  # units to choose: a whole number, a share (1.0: all), None: as many as people do

    paper = "Vafa et al. 2021, Table 2 (mean over texts)"
    keys = ("token_iou_macro", "token_iou_micro")

    def __post_init__(self) -> None:
        check_k(self.k)

    def numbers(self, subject: Subject) -> Numbers:
        counts = overlap(rationale(subject, self.k), subject.gold)
        union = counts.chosen + counts.gold - counts.both
        return {"token_iou_macro": iou(counts), "token_iou_micro": pooled(counts.both, union, counts)}


@metric("span_f1_micro")
@dataclass(frozen=True)
class SpanF1Micro(Plausibility):
    """IOU-F1 of ERASER: F1, precision and recall of chosen spans that cover a gold span, pooled over all texts.

    Chosen spans are maximal runs of neighbouring chosen units of one segment. M of them have an IOU (in units) with a
    gold span of at least the threshold. precision = ΣM / Σ chosen spans, recall = ΣM / Σ gold spans, F1 = 2 ΣM /
    (Σ chosen + Σ gold spans), sums over texts.
    """

    threshold: float = 0.5  # smallest IOU of a match, from 0.5 to 1
    k: int | float | None = None  # units to choose: a whole number, a share (1.0: all), None: as many as people do

    paper = "DeYoung et al. 2020 (ERASER), IOU F1, micro"
    keys = ("span_f1_micro", "span_precision_micro", "span_recall_micro")

    def __post_init__(self) -> None:
        check_k(self.k)
        check_threshold(self.threshold)

    def numbers(self, subject: Subject) -> Numbers:
        return pooled_scores("span", span_overlap(subject, self.k, self.threshold))


@metric("span_f1_macro")
@dataclass(frozen=True)
class SpanF1Macro(Plausibility):
    """IOU-F1 of ERASER for each text, averaged over texts.

    As `span_f1_micro`, with the counts of one text. ERASER's own macro F1 is computed from the averaged precision (over
    texts that choose something) and the averaged recall: `eraser_iou_f1_macro`.
    """

    threshold: float = 0.5  # smallest IOU of a match, from 0.5 to 1
    k: int | float | None = None  # units to choose: a whole number, a share (1.0: all), None: as many as people do

    paper = "DeYoung et al. 2020 (ERASER), IOU F1"
    keys = ("span_f1_macro", "span_precision_macro", "span_recall_macro")

    def __post_init__(self) -> None:
        check_k(self.k)
        check_threshold(self.threshold)

    def numbers(self, subject: Subject) -> Numbers:
        return single_scores("span", span_overlap(subject, self.k, self.threshold))


@metric("eraser_iou_f1_macro")
@dataclass(frozen=True)
class EraserIouF1Macro(Plausibility):
    """IOU-F1 of ERASER, macro, as its own scorer computes it: the F1 of the averaged precision and recall.

    A chosen span matches if its IOU with a gold span is at least the threshold, both in ERASER's tokens (between
    spaces). Precision is averaged over the documents in which something is chosen, recall over those with gold, and
    F1 = 2 P R / (P + R). Gold that was cut off with the end of a long text is not found. `--export` writes the file
    for which ERASER's scorer gives the same number. One deviation: a record in which people marked nothing is left
    out here, as by all metrics of gold; ERASER's scorer counts what is chosen in it as wrong.
    """

    threshold: float = 0.5  # smallest IOU of a match, from 0.5 to 1
    k: int | float | None = None  # units to choose: a whole number, a share (1.0: all), None: as many as people do

    paper = "DeYoung et al. 2020 (ERASER), IOU F1, macro"
    keys = ("eraser_iou_f1_macro", "eraser_iou_precision_macro", "eraser_iou_recall_macro")

    def __post_init__(self) -> None:
        check_k(self.k)
        check_threshold(self.threshold)

    def numbers(self, subject: Subject) -> Numbers:
        left = subject.gold  # refuses a text without gold where no other has some; cut-off gold is not in it
        example = subject.example
        counts: list[Overlap] = []
        if example is not None and (example.gold or left.any()):
            counts = spans_by_document(subject, example, self.k, self.threshold)
        precisions = [each.both / each.chosen for each in counts if each.chosen]
        recalls = [each.both / each.gold for each in counts if each.gold]
        averaged = AveragedF1(Share(sum(precisions), len(precisions)), Share(sum(recalls), len(recalls)))
        return {
            "eraser_iou_f1_macro": averaged,
            "eraser_iou_precision_macro": averaged.precision,
            "eraser_iou_recall_macro": averaged.recall,
        }


def spans_by_document(subject: Subject, example: Example, k: int | float | None, threshold: float) -> list[Overlap]:
    """How many spans of ERASER's tokens are chosen, gold and matching, document by document."""
    encoding = subject.explanation.encoding
    chosen = rationale(subject, k)
    found = []
    for document in documents_of(example, encoding.segments):
        places = tokens_of(encoding.texts[document.segment], document)
        inside = units_of_tokens(document, places, subject.units)
        marks = np.array([any(chosen[u] for u in units) for units in inside], dtype=bool)
        gold = []
        for span in example.gold:
            if (encoding.segments.index(span.segment) if span.segment else 0) == document.segment:
                touched = [t for t, (start, end) in enumerate(places) if start < span.end and span.start < end]
                gold.append(frozenset(touched))
        found.append(matching_spans(runs(marks), [span for span in gold if span], threshold))
    return found


def check_threshold(threshold: float) -> None:
    between("threshold", threshold, 0, 1)
    if threshold < 0.5:
        raise InputError(f"threshold is at least 0.5, or a gold span could be found twice, not {threshold}.")


def span_overlap(subject: Subject, k: int | float | None, threshold: float) -> Overlap:
    segment = [span[0] for span in subject.units.spans]
    return matching_spans(runs(rationale(subject, k), segment), gold_spans(subject), threshold)


def pooled_scores(kind: str, counts: Overlap) -> Numbers:
    return {
        f"{kind}_f1_micro": pooled(2 * counts.both, counts.chosen + counts.gold, counts),
        f"{kind}_precision_micro": pooled(counts.both, counts.chosen, counts),
        f"{kind}_recall_micro": pooled(counts.both, counts.gold, counts),
    }


def single_scores(kind: str, counts: Overlap) -> Numbers:
    return {
        f"{kind}_f1_macro": f1(counts),
        f"{kind}_precision_macro": precision(counts),
        f"{kind}_recall_macro": recall(counts),
    }


@metric("auprc")
@dataclass(frozen=True)
class Auprc(Plausibility):
    """Area under precision and recall of the scores against the gold units; needs no length.

    step: average precision; trapezoid: what ERASER reports (see `area_under_precision_recall`).
    """

    area: str = "step"  # step (average precision) or trapezoid (ERASER)

    paper = "DeYoung et al. 2020 (ERASER), AUPRC"

    def __post_init__(self) -> None:
        one_of("area", self.area, ("step", "trapezoid"))

    def numbers(self, subject: Subject) -> Numbers:
        return {"auprc": area_under_precision_recall(subject.scores, subject.gold, self.area)}


@metric("precision_at_k")
@dataclass(frozen=True)
class PrecisionAtK(Plausibility):
    """Which share of the k most important units is gold, averaged over texts.

    |top-k ∩ G| / |top-k|; a text of fewer than k units is taken whole. The ranking decides, also for a rationale: what
    it selects comes first. (Mask-LRP calls something else "precision@20": `micro_recall_at_k`.)
    """

    k: int | float | None = None  # a whole number, a share (1.0: all), None: as many as people do

    def __post_init__(self) -> None:
        check_k(self.k)

    def numbers(self, subject: Subject) -> Numbers:
        return {"precision_at_k": precision(overlap(top(subject, self.k), subject.gold))}


@metric("micro_recall_at_k")
@dataclass(frozen=True)
class MicroRecallAtK(Plausibility):
    """Which share of all gold units is among the k most important ones of their texts: the "P@20" of Mask-LRP.

    Σ|top-k ∩ G| / Σ|G|, sums over texts; the paper prints it times 100.
    """

    k: int = 20  # units per text

    paper = "Song et al. 2024 (Mask-LRP), Table 2"

    def __post_init__(self) -> None:
        whole("k", self.k, 1)

    def numbers(self, subject: Subject) -> Numbers:
        counts = overlap(top(subject, self.k), subject.gold)
        return {"micro_recall_at_k": pooled(counts.both, counts.gold, counts)}


@metric("top_1")
@dataclass(frozen=True)
class Top1(Plausibility):
    """Whether the most important unit is gold.

    Of equal scores the first in the text is taken, as everywhere.
    """

    def numbers(self, subject: Subject) -> Numbers:
        return {"top_1": precision(overlap(subject.best(1), subject.gold))}


@metric("gold_mass")
@dataclass(frozen=True)
class GoldMass(Plausibility):
    """Which share of the score mass lies on gold units.

    Σ_{u∈G} m_u / Σ_u m_u with m = |score|, or its positive part. Where all mass is 0, the share of gold units.
    """

    sign: str = "absolute"  # absolute: sizes; positive: only what speaks for the target

    paper = "Tutek & Šnajder 2020, section 2.1"

    def __post_init__(self) -> None:
        one_of("sign", self.sign, ("absolute", "positive"))

    def numbers(self, subject: Subject) -> Numbers:
        return {"gold_mass": mass_on_gold(subject.scores, subject.gold, self.sign)}
