"""Contracts that every method and every model keeps; run them on your own with one call.

    from raison.testing import check_method
    check_method("my_method")            # on tiny models of every family that offer what it needs

A broken promise is an AssertionError that names the promise.
"""

from __future__ import annotations

import copy
import functools
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from raison.api import examples_of, explain
from raison.core.records import Encoding, Explanation, Target
from raison.core.registry import methods
from raison.methods.base import Method
from raison.models.probe import difference_of_view, probe_text_and_target
from raison.models.protocol import (
    PREDICTED,
    InspectableModel,
    Model,
    Prediction,
    Question,
    TargetSpec,
)
from raison.models.weight_fingerprint import bytes_of_tensor
from raison.testing.precision import Float64
from raison.testing.tiny import FAMILIES, tiny_model

__all__ = ["check_method", "check_model", "example_texts", "known", "remembering", "state_of"]

TEXTS = [
    "A dull story with good actors.",
    "The film is a lovely surprise, isn't it?",
    "Nobody in town expected it.",
]


def example_texts(model: Model) -> list[Any]:
    """Three texts of different length that the model's task accepts."""
    if model.task == "qa":
        return [("Where does it begin?", "The river begins in the hills above the town."), ("Who left?", TEXTS[1]),
                ("What is dull?", TEXTS[0])]  # fmt: skip
    return TEXTS


def state_of(model: Any) -> str:
    """A hash of everything that raison promises not to touch: weights, flags, hooks, configs, tokenizer."""
    digest = hashlib.sha256()
    for name, tensor in [*model.hf.named_parameters(), *model.hf.named_buffers()]:
        facts = (
            name,
            tensor.data_ptr(),
            tensor._version,
            tensor.requires_grad,
            tensor.grad is None,
            tensor.dtype,
        )
        digest.update(repr(facts).encode())
        digest.update(bytes_of_tensor(tensor))
    for name, module in model.hf.named_modules():
        hooks = (
            len(module._forward_hooks),
            len(module._forward_pre_hooks),
            len(module._backward_hooks),
        )
        digest.update(
            repr((name, id(module), module.training, hooks, sorted(module.__dict__))).encode()
        )
    config = model.hf.config
    digest.update(repr((config._attn_implementation, config.to_dict())).encode())
    tokenizer = model.tokenizer
    digest.update(
        repr((tokenizer.padding_side, tokenizer.truncation_side, len(tokenizer))).encode()
    )
    if getattr(tokenizer, "is_fast", False):
        digest.update(tokenizer.backend_tokenizer.to_str().encode())
    return digest.hexdigest()


@functools.cache
def known(family: str, task: str) -> Any:
    """A tiny model that is loaded once and remembers, for contracts of methods.

    Loading, predicting and aiming do not depend on the method, and are most of the time of a contract. That one model
    serves all methods shows, besides, that none of them leaves something behind in it.
    """
    return remembering(tiny_model(family, task))


def remembering(model: Any) -> Any:
    """The same adapter, which makes up its mind about a text once: what it predicts, and which targets follow.

    That neither depends on the batch or the padding is promised, and checked without a memory, by `check_model`.
    """
    twin = copy.copy(model)
    said: dict[str, Prediction] = {}
    aimed: dict[str, list[tuple[Encoding, Target]]] = {}

    def predict(encodings: Sequence[Encoding]) -> list[Prediction]:
        names = [encoding.content() for encoding in encodings]
        new = [number for number, name in enumerate(names) if name not in said]
        answers = model.predict([encodings[number] for number in new]) if new else []
        said.update({names[number]: answer for number, answer in zip(new, answers, strict=True)})
        return [said[name] for name in names]

    def resolve_targets(
        encoding: Encoding, target_spec: TargetSpec = PREDICTED
    ) -> list[tuple[Encoding, Target]]:
        name = f"{encoding.content()} {(target_spec.target, target_spec.contrast, target_spec.output)!r}"
        if name not in aimed:
            aimed[name] = model.resolve_targets(encoding, target_spec)
        return aimed[name]

    twin.predict, twin.resolve_targets = predict, resolve_targets
    return twin


def able(chosen: Method, every: int = 1) -> Iterator[Any]:
    """Tiny models of every family and task that offer what the method needs; or every so-manyth of them.

    Sorted by task: three tasks of each encoder, counted by threes, would be the same task of all of them.
    """
    pairs = sorted(
        ((family, task) for family, tasks in FAMILIES.items() for task in tasks),
        key=lambda pair: pair[1],
    )
    first = sum(chosen.name.encode()) % every
    for family, task in pairs[first::every]:
        model = known(family, task)
        if chosen.needs <= model.offers:
            yield model


def check_method(
    spec: str | Method, model: Any = None, *, tolerance: float = 1e-9, every: int = 1
) -> None:
    """Shape, finite, deterministic, independent of batch and padding, model untouched, spec round trip.

    On one model, or on tiny models of every family and task; `every=3` takes a third of them.
    """
    chosen = methods.build(spec) if isinstance(spec, str) else spec
    for candidate in [model] if model is not None else able(chosen, every):
        with precisely(candidate):
            check_method_on(chosen, candidate, tolerance)


def precisely(model: Any) -> Any:
    """Float64 all the way for a float64 model, nothing special for others."""
    import torch

    double = (
        isinstance(model, InspectableModel) and next(model.hf.parameters()).dtype == torch.float64
    )
    return Float64() if double else nullcontext()


def check_method_on(chosen: Method, candidate: Any, tolerance: float) -> None:
    again = methods.build(str(chosen.spec()))
    assert again == chosen, (
        f"{chosen.name}: the spec {chosen.spec()} does not give the same method back"
    )
    where = f"{chosen.name} on {candidate.name}"
    texts = example_texts(candidate)
    before = state_of(candidate) if isinstance(candidate, InspectableModel) else ""
    together = flat(candidate, texts, chosen)
    for found in together:
        assert len(found.scores) == len(found.units) > 0, f"{where}: no scores"
        assert chosen.signed or (found.scores >= 0).all(), (
            f"{where}: negative scores of an unsigned method"
        )
        assert Explanation.from_json(found.to_json()) == found, f"{where}: JSON loses something"
    compare(together, flat(candidate, texts, chosen), 0.0, f"{where}: a second call differs")
    singles = [one for text in texts for one in flat(candidate, [text], chosen)]
    compare(together, singles, tolerance, f"{where}: a batch differs from single texts")
    if isinstance(candidate, InspectableModel):
        for side in candidate.runner.task.paddings[1:]:
            padded = with_padding(candidate, side)
            compare(
                together,
                flat(padded, texts, chosen),
                tolerance,
                f"{where}: {side} padding changes scores",
            )
        assert state_of(candidate) == before, f"{where}: the user's model or tokenizer was changed"


def flat(model: Any, texts: list[Any], chosen: Method) -> list[Explanation]:
    found = explain(model, list(texts), chosen, units="token")
    return list(found)


def with_padding(model: Any, side: str) -> Any:
    """The same adapter with padded batches; the view and the user's model are shared."""
    return model.with_budget(replace(model.budget, padding=side))


def compare(
    first: list[Explanation], second: list[Explanation], tolerance: float, promise: str
) -> None:
    assert len(first) == len(second), promise
    for one, other in zip(first, second, strict=True):
        assert one.tokens == other.tokens, promise
        scale = max(1.0, float(np.abs(one.scores).max()))
        gap = float(np.abs(one.scores - other.scores).max())
        assert gap <= tolerance * scale, f"{promise} (by {gap:.2e})"


def check_model(model: Any, *, tolerance: float = 1e-9) -> None:
    """View = eager exactly, delete = mask where claimed, batched = single, gradients = finite differences.

    Batched = single holds for predictions and targets too, with and without padding.
    """
    with precisely(model):
        check_model_exactly(model, tolerance)


def check_model_exactly(model: Any, tolerance: float) -> None:
    encoding, target = probe_text_and_target(model)
    assert difference_of_view(model, encoding, target) == 0.0, (
        f"{model.name}: the view's logits are not the model's"
    )
    target = replace(target, output="logit")
    free = np.flatnonzero(target.free(encoding))
    keep = np.random.default_rng(0).random((6, len(encoding))) < 0.6
    keep[:, np.setdiff1d(np.arange(len(encoding)), free)] = True
    for removal in model.removals:
        (batched,) = model.score([Question(encoding, target, keep)], removal=removal)
        single = [
            model.score([Question(encoding, target, row[None])], removal=removal)[0].value[0]
            for row in keep
        ]
        assert np.abs(batched.value - np.array(single)).max() <= tolerance, (
            f"{model.name}: {removal} depends on the batch"
        )
        assert np.isfinite(batched.value).all(), f"{model.name}: {removal} gives NaN"
    if "delete" in model.removals:
        (masked,) = model.score([Question(encoding, target, keep)], removal="mask")
        (deleted,) = model.score([Question(encoding, target, keep)], removal="delete")
        gap = np.abs(masked.value - deleted.value).max()
        assert gap <= tolerance, f"{model.name}: delete differs from mask by {gap:.1e}"
    if "gradients" in model.offers:
        check_gradient(model, encoding, target)
    check_predictions(model, tolerance)


def check_predictions(model: Any, tolerance: float) -> None:
    """What the model says of a text, and the targets that follow, whatever stands beside it in a batch."""
    encodings = model.encode(examples_of(example_texts(model)))
    alone = [model.predict([encoding])[0] for encoding in encodings]
    aims = [model.resolve_targets(encoding) for encoding in encodings]
    for side in model.runner.task.paddings:
        padded = with_padding(model, side)
        for one, other in zip(alone, padded.predict(encodings), strict=True):
            where = f"{model.name}: a prediction depends on the batch ({side} padding)"
            assert one.target == other.target and one.outcomes == other.outcomes, where
            assert abs(one.value - other.value) <= tolerance, where
        for aim, encoding in zip(aims, encodings, strict=True):
            assert aim == padded.resolve_targets(encoding), (
                f"{model.name}: a target depends on the padding ({side})"
            )


def check_gradient(
    model: Any, encoding: Any, target: Target, step: float = 1e-5, tolerance: float = 1e-5
) -> None:
    """The recorded gradient against central differences in a few random directions (float64 models only)."""
    import torch

    ((_, trace),) = model.trace([encoding], [target], want=frozenset({"gradients"}))
    if trace.embeddings.dtype != torch.float64:
        return
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        direction = torch.randn(trace.embeddings.shape, generator=generator, dtype=torch.float64)
        direction = direction / direction.norm()
        moved = [trace.embeddings + step * direction, trace.embeddings - step * direction]
        both = dict(
            model.trace(
                [encoding] * 2, [target] * 2, want=frozenset({"gradients"}), embeddings=moved
            )
        )
        numeric = (both[0].value - both[1].value) / (2 * step)
        exact = float((trace.gradient * direction).sum())
        assert abs(numeric - exact) <= tolerance * max(1.0, abs(exact)), (
            f"{model.name}: gradient {exact:.6f}, finite differences {numeric:.6f}"
        )
