"""The verbs that wire everything; the only place that builds an `Explanation`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from raison import units as grouping
from raison.errors import InputError
from raison.methods.base import Answer, Batch, Method, check_needs
from raison.models.base import Model, Prediction, Wish
from raison.models.load import load
from raison.registry import Registry, datasets, methods, metrics, suggest
from raison.types import Encoding, Example, Explanation, Target, Units

__all__ = ["DEFAULT_METHOD", "examples_of", "explain", "load", "ls"]

DEFAULT_METHOD = "leave_one_out"  # works on every model, and its scores mean something by themselves
GROUP = 64  # texts answered together: enough to fill batches, few enough to bound memory


def explain(
    model: Any,
    text: Any,
    method: str | Method = DEFAULT_METHOD,
    *,
    target: Any = None,
    contrast: Any = None,
    output: str | None = None,
    units: str = "word",
    removal: str | None = None,
    seed: int = 0,
    truncate: bool = False,
) -> Any:
    """Explain what the model predicts (or `target`) by scores on the units of the text.

    `text` is a string, a pair, an `Example`, or a list of those; a list, or a wish for several targets
    (`target="all"`), gives a list of explanations, anything else gives one.
    """
    model = load(model)
    method = methods.build(method) if not isinstance(method, Method) else method
    check_needs(method, model)
    several = isinstance(text, list)
    found = list(
        explanations(
            model,
            examples_of(text),
            method,
            target=target,
            contrast=contrast,
            output=output,
            units=units,
            removal=removal,
            seed=seed,
            truncate=truncate,
        )
    )
    return found if several or len(found) != 1 or target == "all" else found[0]


def explanations(model: Model, examples: Sequence[Example], method: Method, **wishes: Any) -> Iterator[Explanation]:
    """Explanations of many examples in order, a group of texts at a time."""
    for start in range(0, len(examples), GROUP):
        yield from explained(model, examples[start : start + GROUP], method, **wishes)


def explained(
    model: Model,
    examples: Sequence[Example],
    method: Method,
    *,
    target: Any,
    contrast: Any,
    output: str | None,
    units: str,
    removal: str | None,
    seed: int,
    truncate: bool,
) -> list[Explanation]:
    """One batch: encode, aim, group, ask the method, and put the answers on record."""
    aims: list[tuple[Encoding, Target]] = []
    said: list[Prediction] = []
    encodings = model.encode(examples, truncate=truncate)
    for example, encoding, prediction in zip(examples, encodings, model.predict(encodings), strict=True):
        wanted = example.target if target is None else target
        found = model.aim(encoding, Wish(wanted, contrast, output, prediction))
        aims += found
        said += [prediction] * len(found)
    groups = [grouping.group(encoding, units, goal.free(encoding)) for encoding, goal in aims]
    if not any(len(group) for group in groups):
        raise InputError("Nothing in this text may be removed, so there is nothing to explain: give a longer text.")
    if removal is not None and removal not in model.removals:
        model.score([], removal=removal)  # refuses with the sentence that names what works
    batch = Batch([e for e, _ in aims], [t for _, t in aims], groups, removal, seed)
    clock = time.process_time()
    answers = method(model, batch)
    spent = round((time.process_time() - clock) / max(1, len(aims)), 6)
    return [
        recorded(
            model, method, batch, index, answer, {**about(said[index], batch.targets[index]), "cpu_seconds": spent}
        )
        for index, answer in enumerate(answers)
    ]


def about(prediction: Prediction, target: Target) -> dict[str, Any]:
    """What the model says itself, where that is an answer to the same question as the target."""
    if (prediction.target.kind, prediction.target.positions) != (target.kind, target.positions):
        return {}
    top = [[name, share] for name, share in prediction.top]
    return {"prediction": {"text": prediction.target.text, "probability": prediction.probability, "top": top}}


def recorded(
    model: Model, method: Method, batch: Batch, index: int, answer: Answer, diagnostics: dict[str, Any]
) -> Explanation:
    """The record of one answer."""
    encoding, target, units = batch.encodings[index], batch.targets[index], batch.units[index]
    scores, parts = answer.scores, dict(answer.parts)
    diagnostics = {**diagnostics, **answer.diagnostics}
    if method.axis == "token":
        parts["token_scores"] = scores
        scores = gathered(scores, units, method.additive)
        diagnostics["aggregation"] = "sum" if method.additive else "max"
    if encoding.truncated:
        diagnostics["truncated_tokens"] = encoding.truncated
    removes = method.axis == "unit" and "score" in method.needs
    return Explanation(
        encoding=encoding,
        units=units,
        target=target,
        scores=scores,
        method=str(method.spec()),
        model=model.name,
        removal=(batch.removal or model.removals[0]) if removes else None,
        selected=answer.selected,
        order=answer.order,
        parts=parts,
        diagnostics=diagnostics,
    )


def gathered(scores: np.ndarray, units: Units, additive: bool) -> np.ndarray:
    """[u] of [t]: the sum where scores add up, else the largest in size."""
    inside = units.of >= 0
    if additive:
        return np.bincount(units.of[inside], weights=scores[inside], minlength=len(units))
    result = np.zeros(len(units))
    for unit, score in zip(units.of[inside], scores[inside], strict=True):
        if abs(score) > abs(result[unit]):
            result[unit] = score
    return result


def examples_of(text: Any) -> list[Example]:
    """Examples of what a user passed: strings, pairs, mappings, examples, or a list of them."""
    if isinstance(text, Example):
        return [text]
    if isinstance(text, str):
        return [Example(text)]
    if isinstance(text, tuple):
        if len(text) != 2:
            raise InputError(f"A tuple is a pair of two texts, not {len(text)}.")
        return [Example(*text)]
    if isinstance(text, Mapping):
        return [Example.from_dict(text)]
    if isinstance(text, Sequence):
        if not text:
            raise InputError("The list of texts is empty: give at least one text.")
        return [example for item in text for example in examples_of(item)]
    raise InputError(f"A {type(text).__name__} is not a text: pass a string, a pair, an Example or a list of them.")


SHELVES: dict[str, Registry[Any]] = {"methods": methods, "metrics": metrics, "datasets": datasets}


def ls(what: str = "methods") -> list[str]:
    """Names of the methods, models, metrics or data sets that this installation knows."""
    if what == "models":
        from raison.models import catalog

        return [name for name, entry in catalog.entries().items() if not entry.hidden]
    if what not in SHELVES:
        known = [*SHELVES, "models"]
        raise InputError(f"There is nothing called {what!r} to list.{suggest(what, known)} Use {', '.join(known)}.")
    return list(SHELVES[what])
