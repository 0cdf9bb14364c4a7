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

    parameters = model.hf.named_parameters()
    buffers = model.hf.named_buffers()
    for name, tensor in [*parameters, *buffers]:
        has_gradient = tensor.grad is not None
        place = tensor.data_ptr()
        version = tensor._version
        add_facts(name, place, version, tensor.requires_grad, has_gradient, tensor.dtype)
        digest.update(bytes_of_tensor(tensor))
    for name, module in model.hf.named_modules():
        hooks = [
            len(module._forward_hooks),
            len(module._forward_pre_hooks),
            len(module._backward_hooks),
        ]
        attributes = sorted(module.__dict__)
        add_facts(name, id(module), module.training, hooks, attributes)

    config = model.hf.config
    add_facts(config._attn_implementation, config.to_dict())
    tokenizer = model.tokenizer
    vocabulary_size = len(tokenizer)
    add_facts(tokenizer.padding_side, tokenizer.truncation_side, vocabulary_size)
    if getattr(tokenizer, "is_fast", False):
        serialized = tokenizer.backend_tokenizer.to_str()
        add_facts(serialized)
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
    budget = replace(model.runner.budget, padding=side)
    return model.with_budget(budget)


# -- the contract --------------------------------------------------------------------------------------------


def check_model(model: InspectableModel, *, tolerance: float = 1e-9) -> None:
    """View = eager exactly, delete = mask where claimed, batched = single, gradients = finite differences.

    Batched = single holds for predictions and targets too, with and without padding.
    """
    with float64_for_exact_models(model):
        encoding, target = probe_text_and_target(model)
        difference = difference_of_view(model, encoding, target)
        assert difference == 0.0, f"{model.name}: the view's logits are not the model's"
        target = replace(target, output="logit")
        check_removals(model, encoding, target, tolerance)
        if "gradients" in model.offers:
            check_gradient(model, encoding, target)
        check_predictions(model, tolerance)


def check_removals(model: Model, encoding: Encoding, target: Target, tolerance: float) -> None:
    """Scores of kept sets: alike alone and in a batch, finite, and the same by `delete` as by `mask`."""
    keep = random_kept_sets_of_contract(encoding, target)
    question = Question(encoding, target, keep)
    for removal in model.removals:
        (batched,) = model.score([question], removal=removal)
        singles = []
        for row in keep:
            question_of_row = Question(encoding, target, row[None])
            (single,) = model.score([question_of_row], removal=removal)
            singles.append(single.value[0])
        values = batched.value
        gap = largest_difference(values, np.array(singles))
        assert gap <= tolerance, f"{model.name}: {removal} depends on the batch"
        is_finite = np.isfinite(values)
        assert is_finite.all(), f"{model.name}: {removal} gives NaN"

    if "delete" in model.removals:
        (masked,) = model.score([question], removal="mask")
        (deleted,) = model.score([question], removal="delete")
        gap = largest_difference(masked.value, deleted.value)
        assert gap <= tolerance, f"{model.name}: delete differs from mask by {gap:.1e}"


def largest_difference(one: np.ndarray, other: np.ndarray) -> float:
    """How far two arrays are apart where they are furthest apart."""
    distances = np.abs(one - other)
    return float(distances.max())


def random_kept_sets_of_contract(encoding: Encoding, target: Target) -> np.ndarray:
    """[6 t] random sets of the tokens that may be removed, with all others."""
    generator = np.random.default_rng(0)
    numbers = generator.random((6, len(encoding)))
    keep: np.ndarray = numbers < 0.6
    may_go = target.free(encoding)
    keep[:, ~may_go] = True
    return keep


def check_predictions(model: InspectableModel, tolerance: float) -> None:
    """What the model says of a text, and the targets that follow, whatever stands beside it in a batch."""
    texts = example_texts_of_contract(model)
    examples = examples_of_contract_texts(texts)
    encodings = model.encode(examples)
    alone = []
    targets_alone = []
    for encoding in encodings:
        alone += model.predict([encoding])
        targets = model.resolve_targets(encoding)
        targets_alone.append(targets)

    for side in model.runner.task.paddings:
        padded = model_with_padding(model, side)
        where = f"{model.name}: a prediction depends on the batch ({side} padding)"
        in_batch = padded.predict(encodings)
        for one, other in zip(alone, in_batch, strict=True):
            assert one.target == other.target, where
            assert one.outcomes == other.outcomes, where
            gap = abs(one.value - other.value)
            assert gap <= tolerance, where
        for targets, encoding in zip(targets_alone, encodings, strict=True):
            padded_targets = padded.resolve_targets(encoding)
            assert targets == padded_targets, (
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
        ahead = embeddings + step * direction
        behind = embeddings - step * direction
        moved = [ahead, behind]
        traces = model.trace([encoding] * 2, [target] * 2, want=want, embeddings=moved)
        by_index = dict(traces)
        rise = by_index[0].value - by_index[1].value
        numeric = rise / (2 * step)
        along_direction = gradient * direction
        exact = float(along_direction.sum())

        gap = abs(numeric - exact)
        scale = max(1.0, abs(exact))
        assert gap <= tolerance * scale, (
            f"{model.name}: gradient {exact:.6f}, finite differences {numeric:.6f}"
        )
