"""Masked LRP (P4): relevance through the attention heads that matter, rolled out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from raison.core.artifact import Artifact
from raison.core.errors import InputError
from raison.core.parameters import check_choice, check_in_range
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.head_masks import check_head_choice, corrupt_mask, head_masks, random_masks
from raison.methods.transformer_attribution import ATTRIBUTION_WATCHES, attribute_through_heads
from raison.models.protocol import Model
from raison.models.relevance.mode import Heads

__all__ = ["MaskedLRP"]


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
    watches = ATTRIBUTION_WATCHES

    # a file made by `raison heads`; None: what comes with the model
    heads: str | None = field(default=None, metadata={"file": True})
    kinds: str = "both"  # synt | pos | both
    # so many heads of a block at least, where fewer pass the thresholds; 0: thresholds only
    top: int = 1
    # a head is syntactic if it finds a relation so much better than the best fixed offset
    syntactic: float = 0.1
    positional: float = 0.8  # and positional if it looks at one offset in so many of the cases
    variant: str = "paper"  # paper | released
    random: bool = False  # as many heads anywhere, drawn by the seed: the ablation of P4's Table 1
    corruption: float = 0.0  # share of the other heads that are let through as well: P4's Figure 4

    def __post_init__(self) -> None:
        check_head_choice(self.kinds, self.top, self.syntactic, self.positional)
        check_choice("variant", self.variant, ("paper", "released"))
        if self.corruption:
            check_in_range("corruption", self.corruption, 0, 1)
        if self.random not in (True, False):
            raise InputError(f"random is True or False, not {self.random!r}.")
        if self.heads is not None and not (isinstance(self.heads, str) and self.heads):
            raise InputError(f"heads is a file made by `raison heads`, not {self.heads!r}.")

    @property
    def needs(self) -> frozenset[str]:
        needs = frozenset({"gradients", "attention"})
        if self.heads is None:
            needs |= {"heads"}
        return needs

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        path = self.heads or model.head_statistics or ""
        artifact = Artifact.open(path, "heads")
        masks = head_masks(artifact, self.kinds, self.top, self.syntactic, self.positional)
        if self.random or self.corruption:
            # the same heads for all texts: the seed decides, as in P4's five masks
            masks = self.changed_masks(masks, np.random.default_rng(batch.seed))
        syntactic, positional = masks

        heads = Heads(syntactic, positional, released=self.variant == "released")
        answers = attribute_through_heads(model, batch, heads)

        notes = notes_on_blocks_without_heads(syntactic | positional)
        if artifact.model and artifact.model != model.name:
            notes.append(f"The heads were measured on {artifact.model!r}, not on {model.name!r}.")
        for answer in answers:
            answer.artifacts["heads"] = artifact.content()
            answer.diagnostics["heads"] = {
                "syntactic": int(syntactic.sum()),
                "positional": int(positional.sum()),
            }
            answer.notes = (*answer.notes, *notes)
        return answers

    def changed_masks(
        self, masks: tuple[np.ndarray, np.ndarray], generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """The masks of an ablation."""
        if self.random:
            masks = random_masks(*masks, generator)
        if not self.corruption:
            return masks
        syntactic, positional = masks
        either = syntactic | positional  # heads that were chosen keep their kind
        added = corrupt_mask(either, self.corruption, generator) & ~either
        return syntactic, positional | added


def notes_on_blocks_without_heads(chosen: np.ndarray) -> list[str]:
    """A sentence where a block has no head that relevance may pass; `chosen` [maps, heads]."""
    empty = np.flatnonzero(~chosen.any(1)).tolist()
    if not empty:
        return []
    blocks = ", ".join(map(str, empty))
    return [f"No head was chosen in block {blocks}: relevance goes around it."]
