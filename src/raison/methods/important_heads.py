"""Gradient ⊙ relevance of attention weights, rolled out: through all heads, or through those that matter (P4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raison.core.artifact import Artifact
from raison.core.errors import InputError
from raison.core.spec import between, one_of
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.gradients import numpy
from raison.methods.headmask import check_rule, corrupted, head_masks, random_masks
from raison.methods.lrp import ALPHA_BETA, conservation
from raison.methods.rollout import at_answer, lifted, normalised, rolled_out
from raison.models.protocol import Map, Model, Trace
from raison.models.relevance.mode import Heads

__all__ = ["MaskedLRP", "TransformerAttribution"]

SLOPES = frozenset({"attention_gradients", "readout"})


def rollout(trace: Trace, plain: Trace, factor: float = 1.0) -> np.ndarray:
    """Ā_l = mean_h (∇A ⊙ R)⁺ + I with rows normalised, multiplied from the last block to the first, at the answer.

    Less the path that no attention takes: row i has Π_l 1 / Σ_j Ā_lij of itself whatever the heads do, which is nearly
    everything where an answer is read from all rows. (The published code sets the entry of [CLS] to zero.)
    """
    size = len(trace.encoding)
    steps, stays = [], np.ones(size)
    for each, other in zip(trace.maps, plain.maps, strict=True):
        seen = (other.gradient * each.relevance * factor).clamp_min(0).mean(0)  # type: ignore[operator]
        mixed = lifted(size, each, numpy(seen)) + np.eye(size)
        stays /= mixed.sum(1)
        steps.append(normalised(mixed))
    return at_answer(plain, rolled_out(steps, size) - np.diag(stays))


def attributed(model: Model, batch: Batch, heads: Heads | None, **said: Any) -> list[Answer]:
    """Both passes for every example: gradients of the attention weights, and their relevance."""
    plain = dict(model.trace(batch.encodings, batch.targets, want=SLOPES))
    if heads is not None:
        fits(heads, next(iter(plain.values())).maps, model)
    answers: list[Answer | None] = [None] * len(batch)
    rules = ALPHA_BETA.through(heads)
    # with a mask the published code does not halve what it saves for the roll-out
    factor = 2.0 if heads is not None and heads.released else 1.0
    want = frozenset({"relevance", "attention"})
    for index, trace in model.trace(batch.encodings, batch.targets, want=want, rules=rules):
        diagnostics, notes = conservation(trace)
        if heads is not None and heads.released:  # it does not conserve, and does not claim to
            diagnostics, notes = {"relevance_sum": diagnostics["relevance_sum"]}, []
        scores = rollout(trace, plain.pop(index), factor)
        answers[index] = Answer(scores, diagnostics={**diagnostics, **said}, notes=tuple(notes))
    return answers  # type: ignore[return-value]


def fits(heads: Heads, maps: Sequence[Map], model: Model) -> None:
    """Refuse heads of another model."""
    shape = (len(maps), len(maps[0].weights))
    if heads.syntactic.shape != shape:
        other = " x ".join(map(str, heads.syntactic.shape))
        raise InputError(
            f"This file has {other} heads, but {model.name} has {shape[0]} x {shape[1]}: make one with "
            f"`raison heads -m {model.name}`."
        )


@method("transformer_attribution")
@dataclass(frozen=True)
class TransformerAttribution(Method):
    """Chefer 2021b: gradient ⊙ relevance of the attention weights, positive part, rolled out.

    Ā_l = mean_h (∇A^l ⊙ R^l)⁺ + I, rows normalised; C = Ā_L ··· Ā_1; score = the rows of the answer in C, less
    the path around all attention. R by the rules of `lrp`. (The code of P4 calls this one GAE.)
    """

    paper = "Chefer et al. 2021b"
    signed = False
    additive = True
    needs = frozenset({"gradients", "attention"})
    watches = SLOPES

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return attributed(model, batch, None)


@method("masked_lrp")
@dataclass(frozen=True)
class MaskedLRP(Method):
    """P4: as transformer_attribution, with relevance passing only syntactic and positional heads.

    At each attention R ← renormalised (M_synt R + M_pos R), so that nothing is lost; a block without a chosen head
    gives its part to the residual connection; a head of both kinds counts half in each (Song et al. 2024, section 3).
    The heads come from `raison heads`; the two defaults bring theirs. variant="released" does what the published code
    does: no renormalisation, and the saved relevance of a block is not masked, but twice as large.
    """

    paper = "P4: Song et al. 2024"
    signed = False
    additive = True
    watches = SLOPES

    # a file made by `raison heads`; None: what comes with the model
    heads: str | None = field(default=None, metadata={"file": True})
    kinds: str = "both"  # synt | pos | both
    top: int = 1  # so many heads of a block at least, where fewer pass the thresholds; 0: thresholds only
    syntactic: float = 0.1  # a head is syntactic if it finds a relation so much better than the best fixed offset
    positional: float = 0.8  # and positional if it looks at one offset in so many of the cases
    variant: str = "paper"  # paper | released
    random: bool = False  # as many heads anywhere, drawn by the seed: the ablation of P4's Table 1
    corruption: float = 0.0  # share of the other heads that are let through as well: P4's Figure 4

    def __post_init__(self) -> None:
        check_rule(self.kinds, self.top, self.syntactic, self.positional)
        one_of("variant", self.variant, ("paper", "released"))
        if self.corruption:
            between("corruption", self.corruption, 0, 1)
        if self.random not in (True, False):
            raise InputError(f"random is True or False, not {self.random!r}.")
        if self.heads is not None and not (isinstance(self.heads, str) and self.heads):
            raise InputError(f"heads is a file made by `raison heads`, not {self.heads!r}.")

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        basic = frozenset({"gradients", "attention"})
        return basic if self.heads is not None else basic | {"heads"}

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        artifact = Artifact.open(self.heads or model.head_statistics or "", "heads")
        masks = head_masks(artifact, self.kinds, self.top, self.syntactic, self.positional)
        if self.random or self.corruption:  # the same heads for all texts: the seed decides, as in P4's five masks
            masks = self.varied(masks, np.random.default_rng(batch.seed))
        answers = attributed(model, batch, Heads(*masks, self.variant == "released"))
        notes = notes_on_heads(masks)
        if artifact.model and artifact.model != model.name:
            notes.append(f"The heads were measured on {artifact.model!r}, not on {model.name!r}.")
        for answer in answers:
            answer.artifacts["heads"] = artifact.content()
            answer.diagnostics["heads"] = {"syntactic": int(masks[0].sum()), "positional": int(masks[1].sum())}
            answer.notes = (*answer.notes, *notes)
        return answers

    def varied(
        self, masks: tuple[np.ndarray, np.ndarray], generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """The masks of an ablation."""
        if self.random:
            masks = random_masks(*masks, generator)
        if self.corruption:
            either = masks[0] | masks[1]  # heads that were chosen keep their kind
            masks = (masks[0], masks[1] | (corrupted(either, self.corruption, generator) & ~either))
        return masks


def notes_on_heads(masks: tuple[np.ndarray, np.ndarray]) -> list[str]:
    """A sentence where a block has no head that relevance may pass."""
    either = masks[0] | masks[1]
    empty = np.flatnonzero(~either.any(1)).tolist()
    if not empty:
        return []
    return [f"No head was chosen in block {', '.join(map(str, empty))}: relevance goes around it."]
