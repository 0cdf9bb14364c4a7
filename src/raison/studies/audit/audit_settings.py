"""The settings of an audit, and the check that a classifier can be audited."""

from __future__ import annotations

from dataclasses import dataclass

from raison.attention_models.adapter import AttentionModel
from raison.core.errors import InputError, Unsupported
from raison.core.json_record import JsonObject
from raison.core.parameters import check_integer
from raison.models.protocol import InspectableModel, Model
from raison.training.fit_settings import SEEDS

__all__ = ["AuditSettings", "checked_classifier"]

KINDS_OF_ADVERSARIES = ("frozen", "unfrozen")


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """What an audit does, and how much of it."""

    deep: int | None
    permutations: int
    show: int
    texts: tuple[str, ...]
    adversaries: tuple[str, ...]
    lambdas: tuple[float, ...]
    epochs: int
    seed: int

    def __post_init__(self) -> None:
        check_integer("permutations", self.permutations, 1)
        check_integer("seed", self.seed, 0, SEEDS)
        if self.deep is not None:
            check_integer("deep", self.deep, 1)
        for lam in self.lambdas:
            if not 0 <= lam < float("inf"):
                raise InputError(f"λ of an adversary is a number from 0 up, not {lam}.")

    def identity(self) -> JsonObject:
        """The settings that all parts of an audit share; each adversary is a part of its own."""
        return {
            "deep": self.deep,
            "permutations": self.permutations,
            "show": self.show,
            "texts": list(self.texts),
            "epochs": self.epochs,
            "seed": self.seed,
        }


def checked_classifier(model: Model, settings: AuditSettings) -> InspectableModel:
    """The model, if it has attention that can be audited, and adversaries can be trained where they are asked for."""
    if not (isinstance(model, InspectableModel) and model.task == "classification"):
        raise Unsupported(
            f"{model.name} is not a text classifier whose weights can be read: audit a classifier."
        )
    attentive = isinstance(model, AttentionModel)
    if not attentive and "attention" not in model.offers:  # a rationalizer selects, for one
        raise Unsupported(
            f"{model.name} has no attention that could be audited: name a model of `raison train classifier`, or a "
            "Hugging Face encoder."
        )
    if settings.adversaries and not attentive:
        raise Unsupported(
            "Adversaries are trained for raison's own attention classifiers: see raison train classifier."
        )
    for kind in settings.adversaries:
        if kind not in KINDS_OF_ADVERSARIES:
            raise InputError(f"An adversary is frozen or unfrozen, not {kind!r}.")
    return model
