"""The verbs that wire everything; the only place that builds an `Explanation`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raison.core import units as grouping
from raison.core.errors import InputError, TooLong
from raison.core.records import Encoding, Example, Explanation, Target
from raison.core.registry import Registry, datasets, methods, metrics, rules, searches, suggest
from raison.core.spec import Spec
from raison.methods.base import Answer, Batch, Method, check_needs
from raison.methods.failures import method_failed, model_failed, refuse_failed
from raison.models.load import load
from raison.models.protocol import Model, Prediction, TargetSpec
from raison.models.runner.pass_cache import keeping
from raison.rationales import grounded
from raison.rationales.search import Interrupted, Search

__all__ = [
    "DEFAULT_METHOD",
    "DEFAULT_SEARCH",
    "Request",
    "default_method",
    "examples_of",
    "explain",
    "ground",
    "load",
    "ls",
    "rationalize",
]

DEFAULT_METHOD = "leave_one_out"  # works on every model, and its scores mean something by themselves
DEFAULT_SEARCH = "refined"
GROUP = 128  # texts answered together: enough to fill batches, few enough to bound memory


def explain(
    model: Any,
    text: Any,
    method: str | Method | None = None,
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

    `text` is a string, a pair, an `Example`, or a list of those; a list, or a target_spec for several targets
    (`target="all"`, or a tagger without a target), gives a list of explanations, anything else gives one. Without a
    method a model that explains itself is asked for that (`own`), and any other is explained by `leave_one_out`.
    """
    model = load(model)
    method = default_method(model) if method is None else method
    if not isinstance(method, (str, Spec, Method)):
        raise InputError(f"A {type(method).__name__} is not a method: name one of `raison ls methods`.")
    method = methods.build(method) if not isinstance(method, Method) else method
    request = Request(target, contrast, output, units, removal, seed, truncate)
    return results_of(model, text, method, request)


def rationalize(
    model: Any,
    text: Any,
    search: str | Search = DEFAULT_SEARCH,
    *,
    sufficient: Any = None,
    target: Any = None,
    contrast: Any = None,
    generate: int = 0,
    units: str | None = None,
    removal: str | None = None,
    truncate: bool = False,
) -> Any:
    """Find the smallest part of the text that alone makes the model predict the same (or `target`).

    `sufficient` says when a part is enough: "argmax" (the target stays the first choice), "probability(tau=0.9)",
    "top(k=5)", "drop(nats=1)", "penalty(weight=0.1)" or "share"; by default argmax, probability where the target is not
    the model's own choice, and share where a model gives no probabilities. `generate` lets a language model write up to
    so many tokens, all of which are explained. Units are tokens for models that write and words for others. What was
    selected, in which order, and the certificate (diagnostics["certificate"]) are in the explanation; a list of texts
    or target="all" gives a list.
    """
    model = load(model)
    chosen = search_of(search, sufficient)
    request = Request(target, contrast, None, units, removal, 0, truncate, generate)
    return results_of(model, text, chosen, request)


def ground(
    model: Any,
    question: str,
    passages: Mapping[str, str] | Sequence[str],
    search: str | Search = "hierarchical",
    *,
    answer: str | None = None,
    sufficient: Any = None,
    units: str = "sentence",
    generate: int = 48,
    removal: str | None = None,
) -> Explanation:
    """Let a language model answer a question from passages (or take its `answer`), and find what the answer rests on.

    The explanation selects the sentences that alone give the answer; diagnostics["grounding"] says which passages they
    stand in, which of them change the answer when they are removed, and whether any context is needed at all. A QA
    model answers by a span of the passages, which are then one text.
    """
    model = load(model)
    if model.task == "qa":
        example = Example(question, "\n\n".join(grounded.named(passages).values()))
        generate = 0
    elif not model.generates:
        raise InputError(f"{model.name} does not answer questions: use a language model or a QA model.")
    else:
        example = grounded.prompt(model, question, grounded.named(passages))
    if answer is not None and not (isinstance(answer, str) and answer.strip()):
        raise InputError("The answer is a text: give at least one word, or leave it out to have it generated.")
    target: Any = answer
    try:
        if answer is not None and model.task != "qa":  # as tokens, since a word such as "all" would be a target_spec
            encoding = model.encode([example])[0]
            target = model.ids_of(answer, encoding, len(encoding))
        request = Request(target, None, None, units, removal, 0, False, 0 if answer is not None else generate)
        found = results_of(model, example, search_of(search, sufficient), request)
    except TooLong as error:
        raise TooLong(f"{str(error).partition(':')[0]}: give fewer or shorter passages.") from None
    if model.task == "qa":
        return found
    try:
        extra = {"grounding": grounded.grounding(model, found, question)}
    except KeyboardInterrupt:  # the search is over: what it found is not lost
        notes = [*found.diagnostics.get("notes", ()), grounded.UNTRIED]
        raise Interrupted([replace(found, diagnostics={**found.diagnostics, "notes": notes})]) from None
    return replace(found, diagnostics={**found.diagnostics, **extra})


def default_method(model: Model) -> str:
    """What a model is explained by where nobody names a method."""
    return "own" if "own" in model.offers else DEFAULT_METHOD


def search_of(search: str | Search, sufficient: Any = None) -> Search:
    """The search of a spec, with a rule of its own if one is given."""
    if not isinstance(search, (str, Spec, Search)):
        raise InputError(f"A {type(search).__name__} is not a search: name one of `raison ls searches`.")
    chosen = search if isinstance(search, Search) else searches.build(search)
    return chosen if sufficient is None else replace(chosen, sufficient=sufficient)


@dataclass(frozen=True)
class Request:
    """What a user asks for, apart from model, text and method."""

    target: Any = None
    contrast: Any = None
    output: str | None = None
    units: str | None = "word"  # None: what suits the task
    removal: str | None = None
    seed: int = 0
    truncate: bool = False
    generate: int = 0  # tokens that a language model writes, to be explained as a whole

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"A seed is a whole number from 0 up, not {self.seed!r}.")
        if not isinstance(self.generate, int) or self.generate < 0:
            raise InputError(f"The number of tokens to generate is a whole number from 0 up, not {self.generate!r}.")
        if self.generate and self.target is not None:
            raise InputError("Either name a target or have one generated, not both.")

    def of(self, example: Example) -> Any:
        """The target of one example: what is asked for now, or what it brings along."""
        return example.target if self.target is None else self.target

    def level(self, model: Model) -> str:
        return self.units or ("token" if model.generates else "word")


def results_of(model: Model, text: Any, method: Method, request: Request) -> Any:
    """One explanation for one text with one target, else a list."""
    check_needs(method, model)
    examples = examples_of(text)
    targets = [request.of(example) for example in examples]
    single = isinstance(text, (str, tuple, Mapping, Example)) and "all" not in map(str, targets)
    found: list[Explanation] = []
    try:
        found += explanations(model, examples, method, request)
    except Interrupted as stop:
        raise Interrupted(found + stop.partial) from None
    except KeyboardInterrupt:
        if not found:
            raise
        raise Interrupted(found) from None
    # a tagger without a target_spec explains every word that it tags, be it one
    return found[0] if single and len(found) == 1 and not (model.task == "tagging" and targets == [None]) else found


def explanations(model: Model, examples: Sequence[Example], method: Method, request: Request) -> Iterator[Explanation]:
    """Explanations of many examples in order, a group of texts at a time."""
    for start in range(0, len(examples), GROUP):
        with keeping(method.watches):  # what the prediction computes, the method need not compute again
            found = explained(model, examples[start : start + GROUP], method, request)
        yield from found


def explained(
    model: Model,
    examples: Sequence[Example],
    method: Method,
    request: Request,
    known: tuple[Sequence[Encoding], Sequence[Prediction | None]] | None = None,
) -> list[Explanation]:
    """One batch: encode, aim, group, ask the method, and put the answers on record.

    `known` are the encodings and predictions of the examples, where somebody has them already.
    """
    aims: list[tuple[Encoding, Target]] = []
    said: list[Prediction | None] = []
    if request.removal is not None and request.removal not in model.removals:
        model.score([], removal=request.removal)  # refuses with the sentence that names what works
    refuse_failed(method, model)
    try:
        if known is None:
            encodings: Sequence[Encoding] = model.encode(examples, truncate=request.truncate)
            asked = predictions(model, examples, encodings, request)
        else:
            encodings, asked = known
        wanted = [
            model.resolve_targets(encoding, target_spec_of(model, method, example, encoding, prediction, request))
            for example, encoding, prediction in zip(examples, encodings, asked, strict=True)
        ]
    except Exception as error:
        told = model_failed(model, error)
        raise told from (error if told is not error else None)
    for example, prediction, found in zip(examples, asked, wanted, strict=True):
        if not any(goal.free(longer).any() for longer, goal in found):
            raise InputError(
                f"Nothing in {example.text[:40]!r} may be removed, so there is nothing to explain: give a longer text."
            )
        aims += found
        said += [prediction] * len(found)
    level = request.level(model)
    groups = [grouping.group(encoding, level, goal.free(encoding)) for encoding, goal in aims]
    whole = [None if one is None else one.scored(goal) for one, (_, goal) in zip(said, aims, strict=True)]
    facts = [about(one, goal) for one, (_, goal) in zip(said, aims, strict=True)]
    same = [fact["prediction"]["same"] if fact else None for fact in facts]
    batch = Batch([e for e, _ in aims], [t for _, t in aims], groups, request.removal, request.seed, whole, same)
    clock = time.process_time()

    def record(answers: Iterable[tuple[int, Answer]]) -> list[Explanation]:
        spent = round((time.process_time() - clock) / max(1, len(aims)), 6)
        return [recorded(model, method, batch, i, a, facts[i], spent) for i, a in answers]

    try:
        return record(enumerate(method(model, batch)))
    except Interrupted as stop:
        raise Interrupted(record(stop.partial)) from None
    except Exception as error:
        told = method_failed(model, method, error, lambda: list(method(model, plain_batch(model, method, request))))
        raise told from (error if told is not error else None)


PLAIN = "The old town lies on a hill above the river."


def plain_batch(model: Model, method: Method, request: Request) -> Batch:
    """A plain sentence, as a method is asked about it."""
    example = Example("Where does the town lie?", PLAIN) if model.task == "qa" else Example(PLAIN)
    (encoding,) = model.encode([example])
    encoding, target = model.resolve_targets(encoding, TargetSpec())[0]
    units = grouping.group(encoding, request.level(model), target.free(encoding))
    return Batch([encoding], [target], [units], request.removal, request.seed)


def once_more(model: Model, method: Method, explanation: Explanation, seed: int = 0) -> np.ndarray:
    """[u] scores of the same method for the same text, target and units, by another model of the same tokens."""
    batch = Batch([explanation.encoding], [explanation.target], [explanation.units], explanation.removal, seed)
    (answer,) = method(model, batch)
    return answer.scores if method.axis == "unit" else method.gathered(answer.scores, explanation.units)


def predictions(
    model: Model, examples: Sequence[Example], encodings: Sequence[Encoding], request: Request
) -> Sequence[Prediction | None]:
    """What the model says about each whole text; not asked where only tokens inside the texts are explained."""
    inside = [TargetSpec(target=request.of(example)).inside for example in examples]
    if model.generates and "source" not in encodings[0].segments and all(inside):
        return [None] * len(encodings)
    return model.predict(encodings)


def target_spec_of(
    model: Any, method: Method, example: Example, encoding: Encoding, prediction: Prediction | None, request: Request
) -> TargetSpec:
    """What is to be explained in one example."""
    wanted = request.of(example)
    if request.generate:
        if not model.generates:
            raise InputError(f"{model.name} does not write text: leave the number of tokens to generate away.")
        wanted = model.write(encoding, request.generate)
    # a search compares log-probabilities, and so do its scores; a plain function has none
    probable = prediction is None or prediction.probable
    searched = "log_prob" if isinstance(method, Search) and probable else None
    return TargetSpec(
        target=wanted, contrast=request.contrast, output=searched or request.output, prediction=prediction
    )


def about(prediction: Prediction | None, target: Target) -> dict[str, Any]:
    """What the model says itself, where that is an answer to the same question as the target."""
    if prediction is None or (prediction.target.kind, prediction.target.positions) != (target.kind, target.positions):
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
    if not np.isfinite(scores).all():
        raise InputError(
            f"{method.name} gives scores that are not finite: look for NaN in the weights of {model.name}, or use a "
            "wider dtype."
        )
    diagnostics = {**diagnostics, **answer.diagnostics}
    if method.axis == "token":
        parts["token_scores"] = scores
        scores = method.gathered(scores, units)
        diagnostics["aggregation"] = method.aggregation
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
        artifacts=answer.artifacts,
        diagnostics=diagnostics,
        cost={"cpu_seconds": spent, **answer.cost},
    )


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


SHELVES: dict[str, Registry[Any]] = {
    "methods": methods,
    "searches": searches,
    "rules": rules,
    "metrics": metrics,
    "datasets": datasets,
}


def ls(what: str = "methods") -> list[str]:
    """Names of the methods, searches, rules, models, metrics or data sets that this installation knows."""
    if what == "models":
        from raison.models import catalog

        return [name for name, entry in catalog.entries().items() if not entry.hidden]
    if what not in SHELVES:
        known = [*SHELVES, "models"]
        raise InputError(f"There is nothing called {what!r} to list.{suggest(what, known)} Use {', '.join(known)}.")
    return list(SHELVES[what])
