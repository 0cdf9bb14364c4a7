"""The one pipeline that explains texts: it reads and predicts them, batches their targets for methods, and builds
explanations.

    texts --encode, predict--> ReadTexts --resolve targets, group units--> Batch --method--> Answer --> Explanation

The Python API, the command line, evaluations, runs and the page all go through `run_methods`. Nothing else builds an
`Explanation` of a model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from raison.core import units as grouping
from raison.core.errors import InputError, MethodFailed
from raison.core.findings import PredictionSummary
from raison.core.records import Encoding, Example, Explanation, Target, Units
from raison.methods.base import Answer, Batch, Method
from raison.methods.failures import method_failed, model_failed, refuse_failed_method
from raison.models.protocol import Model, Prediction, TargetSpec, TextGenerator
from raison.models.runner.meter import metered
from raison.models.runner.pass_cache import caching_passes
from raison.rationales.search import Interrupted, Search

__all__ = [
    "GROUP",
    "MethodRun",
    "Request",
    "explain_examples",
    "method_scores_again",
    "run_methods",
]

GROUP = 128  # texts answered together: enough to fill batches, few enough to bound memory
# what a method is tried on after it has failed
PLAIN = "The old town lies on a hill above the river."
QUESTION = "Where does the town lie?"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asks for, apart from model, texts and methods."""

    target: Any = None  # a label, an answer, a continuation, a token's number, a slice, "all"; None: the prediction
    contrast: Any = None  # why the target rather than this
    output: str | None = None  # logit | log_prob | prob; None: what suits the task
    units: str | None = "word"  # None: what suits the task
    removal: str | None = None
    seed: int = 0
    truncate: bool = False
    generate: int = 0  # tokens that a language model writes, to be explained as a whole

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"A seed is a whole number from 0 up, not {self.seed!r}.")
        if not isinstance(self.generate, int) or self.generate < 0:
            raise InputError(
                f"The number of tokens to generate is a whole number from 0 up, not {self.generate!r}."
            )
        if self.generate and self.target is not None:
            raise InputError("Either name a target or have one generated, not both.")

    def target_of(self, example: Example) -> Any:
        """The target of one example: what is asked for now, or what it brings along."""
        return example.target if self.target is None else self.target

    def level(self, model: Model) -> str:
        """The level of units."""
        if self.units is not None:
            return self.units
        return "token" if model.generates else "word"


@dataclass(frozen=True)
class MethodRun:
    """What one method says about a group of texts, and what that cost; or why it failed."""

    method: Method
    explanations: list[Explanation]
    cost: dict[str, float]
    failure: MethodFailed | None = None


@dataclass(frozen=True)
class ReadTexts:
    """Texts as the model reads them, and what it predicts for each; None where nobody asked."""

    encodings: Sequence[Encoding]
    predictions: Sequence[Prediction | None]


@dataclass(frozen=True)
class Subject:
    """One target in one text: what a single explanation is about."""

    encoding: Encoding
    target: Target
    units: Units
    prediction: Prediction | None

    @property
    def summary(self) -> PredictionSummary | None:
        return summary_of_prediction(self.prediction, self.target)


def run_methods(
    model: Model,
    examples: Sequence[Example],
    methods: Sequence[Method],
    request: Request,
    *,
    keep_going: bool = False,
    before_method: Callable[[Method], None] | None = None,
) -> Iterator[MethodRun]:
    """Explain some texts by one method after the other; the texts are read and predicted once.

    With `keep_going` a method that fails is handed over with its failure, and the others go on. On Ctrl-C
    `Interrupted` brings what the running method has finished.
    """
    if request.removal is not None and request.removal not in model.removals:
        model.score([], removal=request.removal)  # refuses with the sentence that names what works
    shared: ReadTexts | None = None
    for method in methods:
        if before_method is not None:
            before_method(method)
        try:
            refuse_failed_method(method, model)
            if shared is None and not method.watches:
                shared = read_texts(model, examples, request)
            yield run_method(model, examples, method, request, shared)
        except MethodFailed as error:
            if not keep_going:
                raise
            yield MethodRun(method, [], {}, failure=error)


def run_method(
    model: Model,
    examples: Sequence[Example],
    method: Method,
    request: Request,
    shared: ReadTexts | None,
) -> MethodRun:
    """Explain one group of texts by one method, and count what it costs."""
    with metered() as meter, caching_passes(method.watches):
        clock = time.process_time()
        # a method that looks into the pass of the prediction has it made again, and watched
        texts = read_texts(model, examples, request) if shared is None or method.watches else shared
        explanations = explain_texts(model, examples, method, request, texts)
        cpu_seconds = time.process_time() - clock
    return MethodRun(method, explanations, {"cpu_seconds": cpu_seconds, **vars(meter)})


def explain_examples(
    model: Model, examples: Sequence[Example], method: Method, request: Request
) -> Iterator[Explanation]:
    """Explanations of any number of texts by one method, in order, a group of texts at a time."""
    for start in range(0, len(examples), GROUP):
        for run in run_methods(model, examples[start : start + GROUP], [method], request):
            yield from run.explanations


def explain_texts(
    model: Model, examples: Sequence[Example], method: Method, request: Request, texts: ReadTexts
) -> list[Explanation]:
    """Explain texts that were read already."""
    with model_errors_as_sentences(model):
        subjects = subjects_to_explain(model, examples, method, request, texts)
    batch = batch_for_method(subjects, request)
    clock = time.process_time()

    def explanations_of(answers: Iterable[tuple[int, Answer]]) -> list[Explanation]:
        seconds = round((time.process_time() - clock) / max(1, len(subjects)), 6)
        return [
            explanation_of(model, method, batch, subjects[index], answer, seconds)
            for index, answer in answers
        ]

    def try_plain_text() -> None:
        method(model, plain_batch(model, request))

    try:
        return explanations_of(enumerate(method(model, batch)))
    except Interrupted as stop:
        raise Interrupted(explanations_of(stop.partial)) from None
    except Exception as error:
        raise_translated_model_error(method_failed(model, method, error, try_plain_text), error)


@contextmanager
def model_errors_as_sentences(model: Model) -> Iterator[None]:
    """Whatever the model's code raises while it reads a text becomes one sentence for the user."""
    try:
        yield
    except Exception as error:
        raise_translated_model_error(model_failed(model, error), error)


def raise_translated_model_error(translated: Exception, error: Exception) -> NoReturn:
    """Raise what an error was translated into; the original error is its cause."""
    if translated is error:
        raise error
    raise translated from error


# -- from examples to what is asked of a method ------------------------------------------------------------


def read_texts(model: Model, examples: Sequence[Example], request: Request) -> ReadTexts:
    """Encode the texts, and ask what the model predicts for each.

    The prediction is not asked for where all targets are tokens that stand inside of the texts already.
    """
    inside = [TargetSpec(target=request.target_of(example)).inside for example in examples]
    with model_errors_as_sentences(model):
        encodings = model.encode(examples, truncate=request.truncate)
        if model.generates and "source" not in encodings[0].segments and all(inside):
            return ReadTexts(encodings, [None] * len(encodings))
        return ReadTexts(encodings, model.predict(encodings))


def subjects_to_explain(
    model: Model, examples: Sequence[Example], method: Method, request: Request, texts: ReadTexts
) -> list[Subject]:
    """Every target of every text, with the units that may be removed for it."""
    level = request.level(model)
    resolved = []
    for example, encoding, prediction in zip(
        examples, texts.encodings, texts.predictions, strict=True
    ):
        spec = target_spec_of(model, method, example, encoding, prediction, request)
        resolved.append((example, prediction, model.resolve_targets(encoding, spec)))

    subjects = []
    for example, prediction, targets in resolved:
        if not any(target.free(encoding).any() for encoding, target in targets):
            raise InputError(
                f"Nothing in {example.text[:40]!r} may be removed, so there is nothing to explain: give a longer text."
            )
        for encoding, target in targets:
            units = grouping.group_tokens(encoding, level, target.free(encoding))
            subjects.append(Subject(encoding, target, units, prediction))
    return subjects


def target_spec_of(
    model: Model,
    method: Method,
    example: Example,
    encoding: Encoding,
    prediction: Prediction | None,
    request: Request,
) -> TargetSpec:
    """What is to be explained in one example."""
    target = request.target_of(example)
    if request.generate:
        if not (model.generates and isinstance(model, TextGenerator)):
            raise InputError(
                f"{model.name} does not write text: leave the number of tokens to generate away."
            )
        target = model.write(encoding, request.generate)

    output = request.output
    # a search compares log-probabilities, and so do its scores; a plain function has none
    if isinstance(method, Search) and (prediction is None or prediction.probable):
        output = "log_prob"
    return TargetSpec(
        target=target, contrast=request.contrast, output=output, prediction=prediction
    )


def batch_for_method(subjects: Sequence[Subject], request: Request) -> Batch:
    """What is handed to a method."""
    whole = []
    predicted = []
    for subject in subjects:
        known = None if subject.prediction is None else subject.prediction.scored(subject.target)
        whole.append(known)
        summary = subject.summary
        predicted.append(None if summary is None else summary.is_target)
    return Batch(
        encodings=[subject.encoding for subject in subjects],
        targets=[subject.target for subject in subjects],
        units=[subject.units for subject in subjects],
        removal=request.removal,
        seed=request.seed,
        whole=whole,
        predicted=predicted,
    )


def plain_batch(model: Model, request: Request) -> Batch:
    """A plain sentence, as a method is asked about it."""
    example = Example(QUESTION, PLAIN) if model.task == "qa" else Example(PLAIN)
    (encoding,) = model.encode([example])
    encoding, target = model.resolve_targets(encoding, TargetSpec())[0]
    units = grouping.group_tokens(encoding, request.level(model), target.free(encoding))
    return Batch([encoding], [target], [units], request.removal, request.seed)


def method_scores_again(
    model: Model, method: Method, explanation: Explanation, seed: int = 0
) -> np.ndarray:
    """[u] scores of the same method for the same text, target and units, by another model of the same tokens."""
    batch = Batch(
        [explanation.encoding], [explanation.target], [explanation.units], explanation.removal, seed
    )
    (answer,) = method(model, batch)
    if method.axis == "unit":
        return answer.scores
    return method.scores_of_units(answer.scores, explanation.units)


# -- from answers to explanations ---------------------------------------------------------------------------


def summary_of_prediction(
    prediction: Prediction | None, target: Target
) -> PredictionSummary | None:
    """What the model predicts, where that is an answer to the same question as the target."""
    if prediction is None:
        return None
    if (prediction.target.kind, prediction.target.positions) != (target.kind, target.positions):
        return None
    summary = PredictionSummary(
        text=prediction.target.text,
        is_target=prediction.target.ids == target.ids,
        top=prediction.top,
    )
    if not prediction.probable:
        return replace(summary, value=prediction.value)

    target_probability = None
    for outcome, (_, probability) in zip(prediction.outcomes, prediction.top, strict=False):
        if outcome == target.ids:
            target_probability = probability
    return replace(summary, probability=prediction.value, target_probability=target_probability)


def explanation_of(
    model: Model, method: Method, batch: Batch, subject: Subject, answer: Answer, cpu_seconds: float
) -> Explanation:
    """The record of one answer."""
    if not np.isfinite(answer.scores).all():
        raise InputError(
            f"{method.name} gives scores that are not finite: look for NaN in the weights of {model.name}, or use a "
            "wider dtype."
        )
    scores = answer.scores
    parts = dict(answer.parts)
    diagnostics = dict(answer.diagnostics)
    if method.axis == "token":
        parts["token_scores"] = scores
        scores = method.scores_of_units(scores, subject.units)
        diagnostics["aggregation"] = method.aggregation
    if subject.encoding.truncated:
        diagnostics["truncated_tokens"] = subject.encoding.truncated

    removal = None
    if method.axis == "unit" and "score" in method.needs:
        removal = batch.removal or model.removals[0]
    return Explanation(
        encoding=subject.encoding,
        units=subject.units,
        target=subject.target,
        scores=scores,
        method=str(method.spec()),
        model=model.name,
        removal=removal,
        selected=answer.selected,
        order=answer.order,
        prediction=subject.summary,
        certificate=answer.certificate,
        steps=answer.steps,
        notes=answer.notes,
        parts=parts,
        artifacts=answer.artifacts,
        diagnostics=diagnostics,
        cost={"cpu_seconds": cpu_seconds, **answer.cost},
    )
