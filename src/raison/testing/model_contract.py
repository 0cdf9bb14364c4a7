"""The contract of every model, `check_model`: exact views, removals, batches, predictions and gradients.

    from raison.testing import check_model
    check_model(my_model)

A broken promise is an AssertionError that names the promise.
"""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from raison.api import examples_of
from raison.core.records import Encoding, Example, Target
from raison.models.probe import difference_of_view, probe_text_and_target
from raison.models.protocol import InspectableModel, Model, Question
from raison.models.weight_fingerprint import bytes_of_tensor
from raison.testing.precision import Float64

__all__ = [
    "TEXTS",
    "check_model",
    "example_texts_of_contract",
    "float64_for_exact_models",
    "model_state_hash",
    "model_with_padding",
]

TEXTS = [
    "A dull story with good actors.",
    "The film is a lovely surprise, isn't it?",
    "Nobody in town expected it.",
]
QUESTIONS = [
    ("Where does it begin?", "The river begins in the hills above the town."),
    ("Who left?", TEXTS[1]),
    ("What is dull?", TEXTS[0]),
]

Text = str | tuple[str, str]  # a text, or a question and its context


def example_texts_of_contract(model: Model) -> list[Text]:
    """Three texts of different length that the model's task accepts."""
    if model.task == "qa":
        return list(QUESTIONS)
    return list(TEXTS)


def examples_of_contract_texts(texts: list[Text]) -> list[Example]:
    """The texts as a model reads them."""
    return examples_of(texts)


# -- what raison never changes -------------------------------------------------------------------------------


def model_state_hash(model: InspectableModel) -> str:
    """A hash of everything that raison promises not to touch: weights, flags, hooks, configs, tokenizer."""
    digest = hashlib.sha256()

    def add_facts(*facts: object) -> None:
        digest.update(repr(facts).encode())

    for name, tensor in [*model.hf.named_parameters(), *model.hf.named_buffers()]:
        has_gradient = tensor.grad is not None
        place = tensor.data_ptr()
        add_facts(name, place, tensor._version, tensor.requires_grad, has_gradient, tensor.dtype)
        digest.update(bytes_of_tensor(tensor))
    for name, module in model.hf.named_modules():
        hooks = [
            len(module._forward_hooks),
            len(module._forward_pre_hooks),
            len(module._backward_hooks),
        ]
        add_facts(name, id(module), module.training, hooks, sorted(module.__dict__))

    config = model.hf.config
    add_facts(config._attn_implementation, config.to_dict())
    tokenizer = model.tokenizer
    add_facts(tokenizer.padding_side, tokenizer.truncation_side, len(tokenizer))
    if getattr(tokenizer, "is_fast", False):
        add_facts(tokenizer.backend_tokenizer.to_str())
    return digest.hexdigest()


# -- the same model, run otherwise ---------------------------------------------------------------------------


def float64_for_exact_models(model: Model) -> AbstractContextManager[object]:
    """Float64 all the way for a float64 model, nothing special for others."""
    import torch

    if isinstance(model, InspectableModel):
        weight = next(model.hf.parameters())
        if weight.dtype == torch.float64:
            return Float64()
    return nullcontext()


def model_with_padding(model: InspectableModel, side: str) -> InspectableModel:
    """The same adapter with padded batches; the view and the user's model are shared."""
    return model.with_budget(replace(model.runner.budget, padding=side))


# -- the contract --------------------------------------------------------------------------------------------


def check_model(model: InspectableModel, *, tolerance: float = 1e-9) -> None:
    """View = eager exactly, delete = mask where claimed, batched = single, gradients = finite differences.

    Batched = single holds for predictions and targets too, with and without padding.
    """
    with float64_for_exact_models(model):
        encoding, target = probe_text_and_target(model)
        assert difference_of_view(model, encoding, target) == 0.0, (
            f"{model.name}: the view's logits are not the model's"
        )
        target = replace(target, output="logit")
        check_removals(model, encoding, target, tolerance)
        if "gradients" in model.offers:
            check_gradient(model, encoding, target)
        check_predictions(model, tolerance)


def check_removals(model: Model, encoding: Encoding, target: Target, tolerance: float) -> None:
    """Scores of kept sets: alike alone and in a batch, finite, and the same by `delete` as by `mask`."""
    keep = random_kept_sets_of_contract(encoding, target)
    for removal in model.removals:
        (batched,) = model.score([Question(encoding, target, keep)], removal=removal)
        singles = []
        for row in keep:
            (single,) = model.score([Question(encoding, target, row[None])], removal=removal)
            singles.append(single.value[0])
        gap = np.abs(batched.value - np.array(singles)).max()
        assert gap <= tolerance, f"{model.name}: {removal} depends on the batch"
        assert np.isfinite(batched.value).all(), f"{model.name}: {removal} gives NaN"

    if "delete" in model.removals:
        (masked,) = model.score([Question(encoding, target, keep)], removal="mask")
        (deleted,) = model.score([Question(encoding, target, keep)], removal="delete")
        gap = np.abs(masked.value - deleted.value).max()
        assert gap <= tolerance, f"{model.name}: delete differs from mask by {gap:.1e}"


def random_kept_sets_of_contract(encoding: Encoding, target: Target) -> np.ndarray:
    """[6 t] random sets of the tokens that may be removed, with all others."""
    keep = np.random.default_rng(0).random((6, len(encoding))) < 0.6
    may_go = target.free(encoding)
    keep[:, ~may_go] = True
    return keep


def check_predictions(model: InspectableModel, tolerance: float) -> None:
    """What the model says of a text, and the targets that follow, whatever stands beside it in a batch."""
    encodings = model.encode(examples_of_contract_texts(example_texts_of_contract(model)))
    alone = []
    targets_alone = []
    for encoding in encodings:
        alone += model.predict([encoding])
        targets_alone.append(model.resolve_targets(encoding))

    for side in model.runner.task.paddings:
        padded = model_with_padding(model, side)
        for one, other in zip(alone, padded.predict(encodings), strict=True):
            where = f"{model.name}: a prediction depends on the batch ({side} padding)"
            assert one.target == other.target and one.outcomes == other.outcomes, where
            assert abs(one.value - other.value) <= tolerance, where
        for targets, encoding in zip(targets_alone, encodings, strict=True):
            assert targets == padded.resolve_targets(encoding), (
                f"{model.name}: a target depends on the padding ({side})"
            )


def check_gradient(
    model: Model,
    encoding: Encoding,
    target: Target,
    step: float = 1e-5,
    tolerance: float = 1e-5,
) -> None:
    """The recorded gradient against central differences in a few random directions (float64 models only)."""
    import torch

    want = frozenset({"gradients"})
    ((_, trace),) = model.trace([encoding], [target], want=want)
    embeddings, gradient = trace.embeddings, trace.gradient
    assert embeddings is not None and gradient is not None, f"{model.name}: no gradient"
    if embeddings.dtype != torch.float64:
        return

    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        direction = torch.randn(embeddings.shape, generator=generator, dtype=torch.float64)
        direction = direction / direction.norm()
        moved = [embeddings + step * direction, embeddings - step * direction]
        traces = model.trace([encoding] * 2, [target] * 2, want=want, embeddings=moved)
        by_index = dict(traces)
        numeric = (by_index[0].value - by_index[1].value) / (2 * step)
        exact = float((gradient * direction).sum())
        assert abs(numeric - exact) <= tolerance * max(1.0, abs(exact)), (
            f"{model.name}: gradient {exact:.6f}, finite differences {numeric:.6f}"
        )
