"""The report of a rationalizer's training (training.json), its scores, and its troubles in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raison.core.json_record import JsonObject, to_json_value
from raison.rationalizers.config import RationalizerConfig, RationalizerTraining
from raison.rationalizers.homogeneity import Homogeneity

__all__ = [
    "ClassQuality",
    "HumanAgreement",
    "RationalizerReport",
    "RationalizerScores",
    "RegressionQuality",
    "troubles",
]

FAILED = 0.2  # share of empty or full rationales from which training is said to fail
BARELY_BETTER = 0.02  # than the commonest label: no more is no success
# lower accuracy from rationales than from all tokens: generator and predictor are stuck
INTERLOCKED = 0.15
UNRELATED = 0.05  # correlation below which predictions have nothing to do with labels


@dataclass(frozen=True)
class ClassQuality:
    """How well classes are predicted."""

    accuracy: float
    f1: float

    @property
    def score(self) -> float:
        """What the best epoch is chosen by."""
        return self.accuracy

    def to_dict(self) -> dict[str, float]:
        return {"accuracy": self.accuracy, "f1": self.f1}


@dataclass(frozen=True)
class RegressionQuality:
    """How well numbers are predicted."""

    error: float  # mean of squares
    error_of_the_mean: float  # what always predicting the mean would have
    correlation: float

    @property
    def score(self) -> float:
        """What the best epoch is chosen by."""
        return self.correlation

    def to_dict(self) -> dict[str, float]:
        return {
            "error": self.error,
            "error_of_the_mean": self.error_of_the_mean,
            "correlation": self.correlation,
        }


Quality = ClassQuality | RegressionQuality


@dataclass(frozen=True)
class HumanAgreement:
    """How far selected tokens are those that people marked."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class RationalizerScores:
    """What a rationalizer predicts and selects of a part of the data when it has to decide."""

    from_rationale: Quality
    from_full_text: Quality | None
    sparsity: float  # share of the tokens that is kept
    first_sparsity: float  # behind the first pruning block
    text_sparsities: tuple[float, ...]  # of each text of pairs
    empty: float  # share of the rationales
    full: float
    human: HumanAgreement | None  # where people marked tokens

    def to_dict(self) -> dict[str, float]:
        """The numbers by their names in training.json."""
        numbers = self.from_rationale.to_dict()
        if self.from_full_text is not None:
            for name, value in self.from_full_text.to_dict().items():
                numbers[f"full_text_{name}"] = value
        numbers["sparsity"] = self.sparsity
        numbers["sparsity_of_the_first"] = self.first_sparsity
        for number, share in enumerate(self.text_sparsities, 1):
            numbers[f"sparsity_of_text_{number}"] = share
        numbers["empty"] = self.empty
        numbers["full"] = self.full
        if self.human is not None:
            numbers["precision"] = self.human.precision
            numbers["recall"] = self.human.recall
            numbers["rationale_f1"] = self.human.f1
        return numbers


@dataclass(frozen=True, kw_only=True)
class RationalizerReport:
    """One training: what was asked for, what it was made of, and how well it went."""

    model: str
    weights: str  # a fingerprint of a model in memory
    variant: str
    data: str
    content: str  # a fingerprint of the file
    limit: int | None
    regression: bool
    seed: int
    asked: Mapping[str, object]  # settings of the config that were asked for
    config: RationalizerConfig
    training: RationalizerTraining
    labels: tuple[str, ...]
    homogeneity: Homogeneity | None
    counts: Mapping[str, int]  # texts of each part, and what was left out or cut
    dev: RationalizerScores
    test: RationalizerScores | None
    every_token: RationalizerScores  # of the last part, where the predictor reads all tokens
    troubles: tuple[str, ...]
    epochs_run: int
    # the step and the scores of the development part, epoch by epoch
    history: tuple[Mapping[str, object], ...]
    cpu_minutes: float
    command: str = ""

    def to_dict(self) -> JsonObject:
        """What training.json holds."""
        values: JsonObject = {"what": "rationalizer"}
        for name, value in vars(self).items():
            if isinstance(value, RationalizerScores):
                values[name] = value.to_dict()
            else:
                values[name] = to_json_value(value)
        return values


def troubles(
    scores: RationalizerScores, from_every_token: Quality, commonest: float
) -> tuple[str, ...]:
    """What goes wrong, in sentences; `commonest` is the accuracy of always predicting the commonest label."""
    sentences = []
    if scores.empty > FAILED:
        sentences.append(f"{scores.empty:.0%} of the rationales would be empty")
    if scores.full > FAILED:
        sentences.append(f"{scores.full:.0%} of the rationales are the whole text")
    quality = scores.from_rationale
    if isinstance(quality, RegressionQuality):
        sentences.extend(troubles_of_regression(quality))
    else:
        best = 0.0
        for other in (scores.from_full_text, from_every_token):
            if isinstance(other, ClassQuality):
                best = max(best, other.accuracy)
        sentences.extend(troubles_of_classes(quality.accuracy, best, commonest))
    return tuple(sentences)


def troubles_of_classes(accuracy: float, best: float, commonest: float) -> list[str]:
    """`best` is the accuracy from all tokens."""
    if accuracy < commonest + min(BARELY_BETTER, (1 - commonest) / 2):
        return ["the predictor says no more than the commonest label"]
    if best - accuracy > INTERLOCKED:
        return [
            f"generator and predictor are stuck (interlocking): {accuracy:.2f} from rationales, {best:.2f} from all "
            "tokens"
        ]
    return []


def troubles_of_regression(quality: RegressionQuality) -> list[str]:
    """Predictions that have nothing to do with the labels, or that are no better than their mean."""
    if quality.correlation < UNRELATED:
        return [
            f"what is told has nothing to do with the labels (correlation {quality.correlation:.2f})"
        ]
    if quality.error >= quality.error_of_the_mean:
        return [
            f"always telling the mean would be as good (error {quality.error:.3g}, of the mean "
            f"{quality.error_of_the_mean:.3g})"
        ]
    return []
