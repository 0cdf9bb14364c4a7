"""The verbs load, explain, rationalize, ground and ls: they turn what a user passes into examples, a method or
search, and a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, overload

from raison.core.errors import InputError, TooLong
from raison.core.records import Example, Explanation
from raison.core.registry import Registry, datasets, methods, metrics, rules, searches, suggest_name
from raison.core.spec import Spec
from raison.engine import Request, explain_examples
from raison.methods.base import Method, check_needs_of_method
from raison.models.load import load
from raison.models.protocol import Model, TextGenerator
from raison.rationales.grounding import UNTRIED, find_grounding, name_passages, prompt_over_passages
from raison.rationales.search import Interrupted, Search

__all__ = [
    "DEFAULT_METHOD",
    "DEFAULT_SEARCH",
    "LISTED",
    "build_search",
    "default_method",
    "examples_of",
    "explain",
    "ground",
    "load",
    "ls",
    "rationalize",
]

# works on every model, and its scores mean something by themselves
DEFAULT_METHOD = "leave_one_out"
DEFAULT_SEARCH = "refined"

OneText: TypeAlias = "str | tuple[str, str] | Mapping[str, object] | Example"
Texts: TypeAlias = "OneText | Iterable[OneText]"


# A str is an Iterable, and "all" an object: the first overload that fits is meant.
@overload
def explain(  # type: ignore[overload-overlap]
    model: object,
    text: Texts,
    method: str | Spec | Method | None = ...,
    *,
    target: Literal["all"],
    contrast: object = ...,
    output: str | None = ...,
    units: str = ...,
    removal: str | None = ...,
    seed: int = ...,
    truncate: bool = ...,
) -> list[Explanation]: ...


@overload
def explain(  # type: ignore[overload-overlap]
    model: object,
    text: OneText,
    method: str | Spec | Method | None = ...,
    *,
    target: object = ...,
    contrast: object = ...,
    output: str | None = ...,
    units: str = ...,
    removal: str | None = ...,
    seed: int = ...,
    truncate: bool = ...,
) -> Explanation: ...


@overload
def explain(
    model: object,
    text: Iterable[OneText],
    method: str | Spec | Method | None = ...,
    *,
    target: object = ...,
    contrast: object = ...,
    output: str | None = ...,
    units: str = ...,
    removal: str | None = ...,
    seed: int = ...,
    truncate: bool = ...,
) -> list[Explanation]: ...


def explain(
    model: object,
    text: Texts,
    method: str | Spec | Method | None = None,
    *,
    target: object = None,
    contrast: object = None,
    output: str | None = None,
    units: str = "word",
    removal: str | None = None,
    seed: int = 0,
    truncate: bool = False,
) -> Explanation | list[Explanation]:
    """Explain what the model predicts (or `target`) by scores on the units of the text.

    `text` is a string, a pair, an `Example`, or a list of those. A list gives a list of explanations, and so do several
    targets (`target="all"`, or a tagger without a target, which no type can tell); anything else gives one. Without a
    method a model that explains itself is asked for that (`own`), and any other is explained by `leave_one_out`.
    """
    opened = load(model)
    request = Request(
        target=target,
        contrast=contrast,
        output=output,
        units=units,
        removal=removal,
        seed=seed,
        truncate=truncate,
    )
    return explanations_of(opened, text, build_method(method, opened), request)


@overload
def rationalize(  # type: ignore[overload-overlap]
    model: object,
    text: Texts,
    search: str | Spec | Search = ...,
    *,
    sufficient: str | Spec | None = ...,
    target: Literal["all"],
    contrast: object = ...,
    generate: int = ...,
    units: str | None = ...,
    removal: str | None = ...,
    truncate: bool = ...,
) -> list[Explanation]: ...


@overload
def rationalize(  # type: ignore[overload-overlap]
    model: object,
    text: OneText,
    search: str | Spec | Search = ...,
    *,
    sufficient: str | Spec | None = ...,
    target: object = ...,
    contrast: object = ...,
    generate: int = ...,
    units: str | None = ...,
    removal: str | None = ...,
    truncate: bool = ...,
) -> Explanation: ...


@overload
def rationalize(
    model: object,
    text: Iterable[OneText],
    search: str | Spec | Search = ...,
    *,
    sufficient: str | Spec | None = ...,
    target: object = ...,
    contrast: object = ...,
    generate: int = ...,
    units: str | None = ...,
    removal: str | None = ...,
    truncate: bool = ...,
) -> list[Explanation]: ...


def rationalize(
    model: object,
    text: Texts,
    search: str | Spec | Search = DEFAULT_SEARCH,
    *,
    sufficient: str | Spec | None = None,
    target: object = None,
    contrast: object = None,
    generate: int = 0,
    units: str | None = None,
    removal: str | None = None,
    truncate: bool = False,
) -> Explanation | list[Explanation]:
    """Find the smallest part of the text that alone makes the model predict the same (or `target`).

    `sufficient` says when a part is enough: "argmax" (the target stays the first choice), "probability(tau=0.9)",
    "top(k=5)", "drop(nats=1)", "penalty(weight=0.1)" or "share"; by default argmax, probability where the target is not
    the model's own choice, and share where a model gives no probabilities. `generate` lets a language model write up to
    so many tokens, all of which are explained. Units are tokens for models that write and words for others. The result
    holds what was selected, in which order, and the certificate; a list of texts or target="all" gives a list.
    """
    opened = load(model)
    request = Request(
        target=target,
        contrast=contrast,
        units=units,
        removal=removal,
        truncate=truncate,
        generate=generate,
    )
    return explanations_of(opened, text, build_search(search, sufficient), request)


def ground(
    model: object,
    question: str,
    passages: Mapping[str, str] | Sequence[str],
    search: str | Spec | Search = "hierarchical",
    *,
    answer: str | None = None,
    sufficient: str | Spec | None = None,
    units: str = "sentence",
    generate: int = 48,
    removal: str | None = None,
) -> Explanation:
    """Let a language model answer a question from passages (or take its `answer`), and find what the answer rests on.

    The explanation selects the sentences that alone give the answer. Its `grounding` says which passages they stand in,
    which of them change the answer when they are removed, and whether any context is needed at all. A QA model answers
    by a span of the passages, which are then one text.
    """
    if answer is not None and not (isinstance(answer, str) and answer.strip()):
        raise InputError(
            "The answer is a text: give at least one word, or leave it out to have it generated."
        )
    opened = load(model)
    chosen = build_search(search, sufficient)
    named = name_passages(passages)
    if opened.task == "qa":
        example = Example(question, "\n\n".join(named.values()))
        return one_explanation(
            opened, example, chosen, Request(target=answer, units=units, removal=removal)
        )
    if not (opened.generates and isinstance(opened, TextGenerator)):
        raise InputError(
            f"{opened.name} does not answer questions: use a language model or a QA model."
        )

    example = prompt_over_passages(opened, question, named)
    request = Request(units=units, removal=removal, generate=generate)
    try:
        if answer is not None:  # as tokens, since a word such as "all" would name a target
            (encoding,) = opened.encode([example])
            target = opened.ids_of(answer, encoding, len(encoding))
            request = replace(request, target=target, generate=0)
        explanation = one_explanation(opened, example, chosen, request)
    except TooLong as error:
        raise TooLong(f"{str(error).partition(':')[0]}: give fewer or shorter passages.") from None
    return with_grounding(opened, explanation, question)


def with_grounding(model: Model, explanation: Explanation, question: str) -> Explanation:
    """The explanation with what each passage is to the answer; the search is over, so Ctrl-C loses nothing of it."""
    try:
        return replace(explanation, grounding=find_grounding(model, explanation, question))
    except KeyboardInterrupt:
        raise Interrupted([replace(explanation, notes=(*explanation.notes, UNTRIED))]) from None


def default_method(model: Model) -> str:
    """What a model is explained by where nobody names a method."""
    return "own" if "own" in model.offers else DEFAULT_METHOD


def build_method(method: str | Spec | Method | None, model: Model) -> Method:
    """The method of a spec, or the model's default."""
    if isinstance(method, Method):
        return method
    if method is None:
        method = default_method(model)
    if not isinstance(method, (str, Spec)):
        raise InputError(
            f"A {type(method).__name__} is not a method: name one of `raison ls methods`."
        )
    built: Method = methods.build(method)
    return built


def build_search(search: str | Spec | Search, sufficient: str | Spec | None = None) -> Search:
    """The search of a spec, with a rule of its own if one is given."""
    if not isinstance(search, (str, Spec, Search)):
        raise InputError(
            f"A {type(search).__name__} is not a search: name one of `raison ls searches`."
        )
    built: Search = search if isinstance(search, Search) else searches.build(search)
    return built if sufficient is None else replace(built, sufficient=sufficient)


def explanations_of(
    model: Model, text: Texts, method: Method, request: Request
) -> Explanation | list[Explanation]:
    """One explanation for one text with one target, else a list."""
    check_needs_of_method(method, model)
    examples = examples_of(text)
    explanations = explain_until_interrupted(model, examples, method, request)
    if len(explanations) == 1 and user_asks_for_one(model, text, examples, request):
        return explanations[0]
    return explanations


def one_explanation(
    model: Model, example: Example, method: Method, request: Request
) -> Explanation:
    check_needs_of_method(method, model)
    (explanation,) = explain_until_interrupted(model, [example], method, request)
    return explanation


def user_asks_for_one(
    model: Model, text: Texts, examples: Sequence[Example], request: Request
) -> bool:
    """Whether a caller expects one explanation: one text that was passed by itself, with one target."""
    if not isinstance(text, (str, tuple, Mapping, Example)):
        return False
    target = request.target_of(examples[0])
    if (
        model.task == "tagging" and target is None
    ):  # every word that it tags is explained, be it one
        return False
    return str(target) != "all"


def explain_until_interrupted(
    model: Model, examples: Sequence[Example], method: Method, request: Request
) -> list[Explanation]:
    """All explanations; on Ctrl-C `Interrupted` brings those that are finished."""
    explanations: list[Explanation] = []
    try:
        explanations.extend(explain_examples(model, examples, method, request))
    except Interrupted as stop:
        raise Interrupted(explanations + stop.partial) from None
    except KeyboardInterrupt:
        if not explanations:
            raise
        raise Interrupted(explanations) from None
    return explanations


def examples_of(text: Texts) -> list[Example]:
    """Examples of what a user passed: strings, pairs, mappings, examples, or a list of them."""
    if isinstance(text, Example):
        return [text]
    if isinstance(text, str):
        return [Example(text)]
    if isinstance(text, tuple):
        return [example_of_pair(text)]
    if isinstance(text, Mapping):
        return [example_of_mapping(text)]
    if not isinstance(text, Iterable) or isinstance(text, (bytes, bytearray)):
        raise InputError(
            f"A {type(text).__name__} is not a text: pass a string, a pair, an Example or a list of them."
        )

    examples = []
    for item in text:
        examples += examples_of(item)
    if not examples:
        raise InputError("The list of texts is empty: give at least one text.")
    return examples


def example_of_pair(pair: tuple[str, ...]) -> Example:
    if len(pair) != 2:
        raise InputError(f"A tuple is a pair of two texts, not {len(pair)}.")
    return Example(text=pair[0], pair=pair[1])


def example_of_mapping(fields: Mapping[str, object]) -> Example:
    known = Example.__dataclass_fields__
    unknown = sorted(set(fields) - set(known))
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise InputError(f"An example has no field {names}: it has {', '.join(known)}.")
    return Example.from_dict(fields)


LISTED: dict[str, Registry[Any]] = {
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

        return [name for name, entry in catalog.catalog_entries().items() if not entry.hidden]
    if what not in LISTED:
        known = [*LISTED, "models"]
        raise InputError(
            f"There is nothing called {what!r} to list.{suggest_name(what, known)} Use {', '.join(known)}."
        )
    return list(LISTED[what])
