"""The contract of every method, `check_method`: shape, finite, deterministic, and the same alone as in a batch.

    from raison.testing import check_method
    check_method("my_method")            # on tiny models of every family that offer what it needs

A broken promise is an AssertionError that names the promise.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from raison.api import explain
from raison.core.records import Encoding, Explanation, Target
from raison.core.registry import methods
from raison.methods.base import Method
from raison.models.protocol import (
    PREDICTED,
    InspectableModel,
    Model,
    Prediction,
    TargetSpec,
)
from raison.testing.model_contract import (
    Text,
    example_texts_of_contract,
    float64_for_exact_models,
    model_state_hash,
    model_with_padding,
)
from raison.testing.tiny import FAMILIES, tiny_model

__all__ = [
    "check_method",
    "remembering_model_for_method",
    "tiny_models_for_method",
    "with_remembered_answers",
]


# -- the models on which a method is tried -------------------------------------------------------------------


def tiny_models_for_method(method: Method, every: int = 1) -> Iterator[InspectableModel]:
    """Tiny models of every family and task that offer what the method needs; or every so-manyth of them.

    Sorted by task: three tasks of each encoder, counted by threes, would be the same task of all of them.
    """
    pairs = []
    for family, tasks in FAMILIES.items():
        for task in tasks:
            pairs.append((family, task))
    pairs.sort(key=lambda pair: pair[1])

    first = sum(method.name.encode()) % every
    for family, task in pairs[first::every]:
        model = remembering_model_for_method(family, task)
        if method.needs <= model.offers:
            yield model


@functools.cache
def remembering_model_for_method(family: str, task: str) -> InspectableModel:
    """A tiny model that is loaded once and remembers, for contracts of methods.

    Loading, predicting and resolving targets do not depend on the method, and are most of the time of a contract. That
    one model serves all methods shows, besides, that none of them leaves something behind in it.
    """
    return with_remembered_answers(tiny_model(family, task))


def with_remembered_answers(model: InspectableModel) -> InspectableModel:
    """The same adapter, which makes up its mind about a text once: what it predicts, and which targets follow.

    That neither depends on the batch or the padding is promised, and checked without a memory, by `check_model`.
    """
    memory = RememberedAnswers(model)
    twin = copy.copy(model)
    vars(twin).update(predict=memory.predict, resolve_targets=memory.resolve_targets)
    return twin


class RememberedAnswers:
    """What a model predicts for each text, and the targets of each text; asked once."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.predictions: dict[str, Prediction] = {}
        self.targets: dict[str, list[tuple[Encoding, Target]]] = {}

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        """What the model says about each whole text."""
        new = {}
        for encoding in encodings:
            name = encoding.content()
            if name not in self.predictions:
                new[name] = encoding
        if new:
            answers = self.model.predict(list(new.values()))
            self.predictions.update(zip(new, answers, strict=True))
        return [self.predictions[encoding.content()] for encoding in encodings]

    def resolve_targets(
        self, encoding: Encoding, target_spec: TargetSpec = PREDICTED
    ) -> list[tuple[Encoding, Target]]:
        """The targets that are asked for, each with its encoding."""
        wanted = (target_spec.target, target_spec.contrast, target_spec.output)
        name = f"{encoding.content()} {wanted!r}"
        if name not in self.targets:
            self.targets[name] = self.model.resolve_targets(encoding, target_spec)
        return self.targets[name]


# -- the contract --------------------------------------------------------------------------------------------


def check_method(
    spec: str | Method, model: Model | None = None, *, tolerance: float = 1e-9, every: int = 1
) -> None:
    """Shape, finite, deterministic, independent of batch and padding, model untouched, spec round trip.

    On one model, or on tiny models of every family and task; `every=3` takes a third of them.
    """
    method = methods.build(spec) if isinstance(spec, str) else spec
    models: Iterable[Model] = (
        [model] if model is not None else tiny_models_for_method(method, every)
    )
    for each in models:
        with float64_for_exact_models(each):
            check_method_on_model(method, each, tolerance)


def check_method_on_model(method: Method, model: Model, tolerance: float) -> None:
    """The contract of a method on one model."""
    again = methods.build(str(method.spec()))
    assert again == method, (
        f"{method.name}: the spec {method.spec()} does not give the same method back"
    )
    where = f"{method.name} on {model.name}"
    texts = example_texts_of_contract(model)
    before = model_state_hash(model) if isinstance(model, InspectableModel) else ""

    together = explain_tokens_by_method(model, texts, method)
    for explanation in together:
        check_explanation_of_method(explanation, method, where)
    a_second_time = explain_tokens_by_method(model, texts, method)
    check_equal_scores_of_method(together, a_second_time, 0.0, f"{where}: a second call differs")
    singles = []
    for text in texts:
        singles += explain_tokens_by_method(model, [text], method)
    promise = f"{where}: a batch differs from single texts"
    check_equal_scores_of_method(together, singles, tolerance, promise)

    if isinstance(model, InspectableModel):
        for side in model.runner.task.paddings[1:]:
            padded = explain_tokens_by_method(model_with_padding(model, side), texts, method)
            promise = f"{where}: {side} padding changes scores"
            check_equal_scores_of_method(together, padded, tolerance, promise)
        unchanged = model_state_hash(model) == before
        assert unchanged, f"{where}: the user's model or tokenizer was changed"


def check_explanation_of_method(explanation: Explanation, method: Method, where: str) -> None:
    """A score for each unit, signs as the method says, and the same back from JSON."""
    scores = explanation.scores
    assert len(scores) == len(explanation.units) > 0, f"{where}: no scores"
    not_negative = (scores >= 0).all()
    assert method.signed or not_negative, f"{where}: negative scores of an unsigned method"
    read_back = Explanation.from_json(explanation.to_json())
    assert read_back == explanation, f"{where}: JSON loses something"


def explain_tokens_by_method(
    model: Model, texts: Sequence[Text], method: Method
) -> list[Explanation]:
    """Explanations of all targets of the texts, token by token."""
    return list(explain(model, list(texts), method, units="token"))


def check_equal_scores_of_method(
    first: list[Explanation], second: list[Explanation], tolerance: float, promise: str
) -> None:
    """Refuse, with the promise that is broken, explanations whose tokens or scores differ."""
    assert len(first) == len(second), promise
    for one, other in zip(first, second, strict=True):
        assert one.tokens == other.tokens, promise
        scale = max(1.0, float(np.abs(one.scores).max()))
        gap = float(np.abs(one.scores - other.scores).max())
        assert gap <= tolerance * scale, f"{promise} (by {gap:.2e})"
