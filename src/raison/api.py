"""The verbs that wire everything; the only place that builds an `Explanation`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from raison import units as grouping
from raison.errors import InputError
from raison.methods.base import Answer, Batch, Method, check_needs
from raison.models.base import Model, Prediction, Wish
from raison.models.load import load
from raison.registry import Registry, datasets, methods, metrics, suggest
from raison.spec import Spec
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
    (`target="all"`, or a tagger without a target), gives a list of explanations, anything else gives one.
    """
    model = load(model)
    if not isinstance(method, (str, Spec, Method)):
        raise InputError(f"A {type(method).__name__} is not a method: name one of `raison ls methods`.")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"A seed is a whole number from 0 up, not {seed!r}.")
    method = methods.build(method) if not isinstance(method, Method) else method
    check_needs(method, model)
    examples = examples_of(text)
    wishes = [example.target if target is None else target for example in examples]
    single = isinstance(text, (str, tuple, Mapping, Example)) and "all" not in map(str, wishes)
    found = list(
        explanations(
            model,
            examples,
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
    # a tagger without a wish explains every word that it tags, be it one
    return found[0] if single and len(found) == 1 and not (model.task == "tagging" and wishes == [None]) else found


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
        if not any(goal.free(longer).any() for longer, goal in found):
            raise InputError(
                f"Nothing in {example.text[:40]!r} may be removed, so there is nothing to explain: give a longer text."
            )
        aims += found
        said += [prediction] * len(found)
    groups = [grouping.group(encoding, units, goal.free(encoding)) for encoding, goal in aims]
    if removal is not None and removal not in model.removals:
        model.score([], removal=removal)  # refuses with the sentence that names what works
    batch = Batch([e for e, _ in aims], [t for _, t in aims], groups, removal, seed)
    clock = time.process_time()
    answers = method(model, batch)
    spent = round((time.process_time() - clock) / max(1, len(aims)), 6)
    return [
        recorded(model, method, batch, index, answer, about(said[index], batch.targets[index]), spent)
        for index, answer in enumerate(answers)
    ]


def about(prediction: Prediction, target: Target) -> dict[str, Any]:
    """What the model says itself, where that is an answer to the same question as the target."""
    if (prediction.target.kind, prediction.target.positions) != (target.kind, target.positions):
        return {}
    said: dict[str, Any] = {"text": prediction.target.text, "same": prediction.target.ids == target.ids}
    said["probability" if prediction.probable else "value"] = prediction.value
    for outcome, (_, value) in zip(prediction.outcomes, prediction.top, strict=False):
        if prediction.probable and outcome == target.ids:
            said["target_probability"] = value
    return {"prediction": {**said, "top": [list(pair) for pair in prediction.top]}}


def recorded(
    model: Model,
    method: Method,
    batch: Batch,
    index: int,
    answer: Answer,
    diagnostics: dict[str, Any],
    spent: float,
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
        cost={"cpu_seconds": spent, **answer.cost},
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
        if unknown := set(text) - set(Example.__dataclass_fields__):
            known = ", ".join(Example.__dataclass_fields__)
            raise InputError(f"An example has no field {', '.join(map(repr, sorted(unknown)))}: it has {known}.")
        return [Example.from_dict(text)]
    if isinstance(text, Iterable) and not isinstance(text, (bytes, bytearray)):
        text = list(text)
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
