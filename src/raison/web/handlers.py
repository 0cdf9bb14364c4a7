"""Handlers of requests (predict, explain, trust …): each checks the body, and gives the work that a thread does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from raison.api import build_search, ground
from raison.core.errors import InputError
from raison.core.records import Example, Explanation
from raison.core.registry import methods
from raison.engine import Request, run_methods
from raison.methods.base import Method, check_needs_of_method
from raison.models.protocol import Model, TargetSpec
from raison.rationales.search import Search
from raison.studies.method_lists import build_method_or_search
from raison.studies.trust import trust
from raison.studies.what_if import (
    answer_without_units,
    explain_without_heads,
    heads_of_answer,
)
from raison.web import schemas
from raison.web.handler_answers import (
    ExplanationAnswer,
    HeadsAnswer,
    PredictionAnswer,
    RemovalAnswer,
    TrustAnswer,
    python_snippet,
)
from raison.web.server_limits import ServerSettings, check_texts_against_limits, checked_spec

__all__ = ["Handlers"]


@dataclass(frozen=True)
class Handlers:
    """The models that were named at the start, and what may be asked about them."""

    models: Mapping[str, Model]
    settings: ServerSettings

    def predict(self, body: schemas.Predict) -> Callable[[], PredictionAnswer]:
        """What the model says about a text."""
        model = self.model_named(body.model)
        check_texts_against_limits(self.settings, body.text, body.pair)
        example = Example(body.text, body.pair)

        def work() -> PredictionAnswer:
            (encoding,) = model.encode([example], truncate=True)
            (prediction,) = model.predict([encoding])
            text: str = prediction.target.text
            value: float | None = prediction.value
            if model.task == "seq2seq":
                # what is explained is a whole translation, not its first token
                spec = TargetSpec(prediction=prediction)
                _, translation = model.resolve_targets(encoding, spec)[0]
                text = translation.text
                value = None
            return PredictionAnswer(
                encoding=encoding,
                text=text,
                value=value,
                kind=prediction.target.kind,
                top=prediction.top,
                probable=prediction.probable,
            )

        return work

    def explain(self, body: schemas.Explain) -> Callable[[], ExplanationAnswer]:
        """Scores by one method or several."""
        model = self.checked_model(body)
        if len(body.methods) > self.settings.methods:
            raise InputError(
                f"The server compares {self.settings.methods} methods at most: choose fewer."
            )
        named = [checked_spec(self.settings, method) for method in body.methods]
        specs = list(dict.fromkeys(named))  # each once
        chosen: list[Method] = [methods.build(spec) for spec in specs]
        request = engine_request(body, seed=body.seed)

        def work() -> ExplanationAnswer:
            explanations = explanations_of_request(model, body, chosen, request)
            keywords = keywords_of_request(body, explanations, units="word")
            keywords["seed"] = body.seed or None
            code = []
            for spec in specs:
                positional = (text_or_pair_of_request(body), spec)
                code.append(python_snippet("explain", body.model, positional, keywords))
            return ExplanationAnswer(explanations=tuple(explanations), python=tuple(code))

        return work

    def rationalize(self, body: schemas.Rationalize) -> Callable[[], ExplanationAnswer]:
        """The smallest part of the text that is enough."""
        model = self.checked_model(body)
        spec = checked_spec(self.settings, body.search)
        rule = None
        if body.sufficient is not None:
            rule = checked_spec(self.settings, body.sufficient)
        search = build_search(spec, rule)
        request = engine_request(body, generate=body.generate)

        def work() -> ExplanationAnswer:
            explanations = explanations_of_request(model, body, [search], request)
            keywords = {
                "sufficient": rule,
                **keywords_of_request(body, explanations, units=None),
                "generate": body.generate or None,
            }
            code = python_snippet(
                "rationalize", body.model, (text_or_pair_of_request(body), spec), keywords
            )
            return ExplanationAnswer(explanations=tuple(explanations), python=(code,))

        return work

    def ground(self, body: schemas.Ground) -> Callable[[], ExplanationAnswer]:
        """An answer over passages, and what it rests on."""
        model = self.model_named(body.model)
        check_texts_against_limits(
            self.settings, body.question, body.answer, *body.passages, *body.passages.values()
        )
        search = build_search(checked_spec(self.settings, body.search))

        def work() -> ExplanationAnswer:
            explanation = ground(model, body.question, body.passages, search, answer=body.answer)
            keywords = {
                "search": None if body.search == "hierarchical" else body.search,
                "answer": body.answer,
            }
            positional = (body.question, dict(body.passages))
            code = python_snippet("ground", body.model, positional, keywords)
            return ExplanationAnswer(explanations=(explanation,), python=(code,))

        return work

    def trust(self, body: schemas.Trusted) -> Callable[[], TrustAnswer]:
        """How far one explanation can be trusted."""
        model = self.checked_model(body)
        method = build_method_or_search(checked_spec(self.settings, body.method))

        def work() -> TrustAnswer:
            # as in the library, where rationalize takes no seed
            seed = 0 if isinstance(method, Search) else body.seed
            explanation = explanation_for_request(
                model, body, method, engine_request(body, seed=seed)
            )
            return TrustAnswer(
                trust=trust(model, explanation, body.seed, body.removal), method=explanation.method
            )

        return work

    def remove(self, body: schemas.Remove) -> Callable[[], RemovalAnswer]:
        """What the model says when some units are removed."""
        model = self.checked_model(body)
        method = methods.build("uniform")  # any will do: only its units and target count

        def work() -> RemovalAnswer:
            explanation = explanation_for_request(model, body, method, engine_request(body))
            answer = answer_without_units(model, explanation, body.removed, body.removal)
            return RemovalAnswer(answer)

        return work

    def heads(self, body: schemas.Heads) -> Callable[[], HeadsAnswer]:
        """Attention heads, and the explanation with some of them switched off."""
        model = self.checked_model(body)
        method = build_method_or_search(checked_spec(self.settings, body.method))

        def work() -> HeadsAnswer:
            explanation = explanation_for_request(model, body, method, engine_request(body))
            heads = heads_of_answer(model, explanation)
            if not body.off:
                return HeadsAnswer(heads=heads, explanation=explanation)
            without_heads = explain_without_heads(model, method, explanation, body.off)
            return HeadsAnswer(heads, explanation, without_heads, off=tuple(body.off))

        return work

    def checked_model(self, body: schemas.Asked) -> Model:
        """The model of a request whose texts are short enough."""
        model = self.model_named(body.model)
        check_texts_against_limits(
            self.settings, body.text, body.pair, str(body.target), str(body.contrast)
        )
        return model

    def model_named(self, name: str) -> Model:
        if name not in self.models:
            raise InputError(
                f"There is no model called {name[:80]!r} here: use one of {', '.join(self.models)}."
            )
        return self.models[name]


def engine_request(body: schemas.Asked, *, seed: int = 0, generate: int = 0) -> Request:
    """What is asked of the engine; of a text that is too long the page shows what was read, and the rest in grey."""
    return Request(
        target=body.target,
        contrast=body.contrast,
        units=body.units,
        removal=body.removal,
        seed=seed,
        generate=generate,
        truncate=True,
    )


def explanations_of_request(
    model: Model, body: schemas.Asked, chosen: Sequence[Method], request: Request
) -> list[Explanation]:
    """Explanations of the text by one method after the other, of all its targets."""
    for method in chosen:
        check_needs_of_method(method, model)
    explanations = []
    for run in run_methods(model, [Example(body.text, body.pair)], chosen, request):
        explanations += run.explanations
    return explanations


def explanation_for_request(
    model: Model, body: schemas.Asked, method: Method, request: Request
) -> Explanation:
    """The explanation of a text with one target."""
    explanations = explanations_of_request(model, body, [method], request)
    if len(explanations) != 1:
        raise InputError("This is about one target: choose one.")
    return explanations[0]


def text_or_pair_of_request(body: schemas.Asked) -> str | tuple[str, str]:
    """The text or the pair, as the library takes it."""
    return body.text if body.pair is None else (body.text, body.pair)


def keywords_of_request(
    body: schemas.Asked, explanations: Sequence[Explanation], *, units: str | None
) -> dict[str, object]:
    """What the library has to be told besides the text; `units` are those that it takes if nothing is said."""
    truncated = any(explanation.encoding.truncated for explanation in explanations)
    return {
        "target": body.target,
        "contrast": body.contrast,
        "units": None if body.units == units else body.units,
        "removal": body.removal,
        "truncate": True if truncated else None,
    }
