"""An attention classifier as a `Model`: every method, search and metric applies, and `own` reads its attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from raison.attention_models.module import TYPE, AttentionClassifier, AttentionConfig, Told
from raison.core.records import Encoding
from raison.core.registry import loaders
from raison.models.catalog.quiet import quiet
from raison.models.checkpoint import check_folder, refuse_missing
from raison.models.families import Family
from raison.models.hub import sentence
from raison.models.load import kind_of, placed
from raison.models.loaded_model import LoadedModel
from raison.models.probe import probe
from raison.models.runner.batching import pieces_of_whole_texts
from raison.models.tasks.classification import ClassificationTask
from raison.models.transformers_model import transformers_model
from raison.models.wrapped_model import WrappedModel

__all__ = ["Attentive", "Pass", "adapted"]

FAMILY = Family(TYPE, (TYPE,), note="raison's own: one attention over words, which `own` reads")


@dataclass
class Pass:
    """One batch of texts of equal length through the model."""

    owners: list[int]  # number of each row's text
    told: Told
    leaf: torch.Tensor  # [b t d] the embeddings: what gradients are taken to


class Attentive(WrappedModel):
    """A classifier with one attention over its words."""

    @property
    def hf(self) -> AttentionClassifier:
        return cast(AttentionClassifier, self.inner.hf)

    @property
    def view(self) -> AttentionClassifier:
        """What runs: a view of the model's present weights."""
        return cast(AttentionClassifier, self.runner.view)

    def passes(self, encodings: Sequence[Encoding], *, graph: bool = False) -> Iterator[Pass]:
        """All texts, a batch of equal length at a time; with `graph` gradients can be taken."""
        runner = self.runner
        exact = replace(runner.layout, padding="exact")
        for prepared in runner.prepare(pieces_of_whole_texts(encodings), layout=exact):
            call = prepared.call
            call.record = frozenset({"embeddings"})
            with torch.inference_mode(False):
                told = runner.forward(prepared, graph=graph)
            owners = [part.owner for part in prepared.chunk.parts]
            yield Pass(owners, told, call.leaves[0])

    def own(self, encodings: Sequence[Encoding]) -> list[np.ndarray]:
        """[t] attention weights of each text; special tokens have 0."""
        found: list[np.ndarray] = [np.zeros(0)] * len(encodings)
        for each in self.passes(encodings):
            for owner, row in zip(each.owners, numbers(each.told.weights), strict=True):
                found[owner] = row
        return found


def numbers(tensor: torch.Tensor | None) -> np.ndarray:
    assert tensor is not None  # every pass tells it
    return np.asarray(tensor.detach().cpu().double().numpy())


def adapted(hf: AttentionClassifier, tokenizer: Any, name: str) -> Attentive:
    """The model, probed like any other; it offers its own explanation as well."""
    loaded = LoadedModel(hf.eval(), tokenizer, FAMILY, name)
    model = Attentive(probe(transformers_model(ClassificationTask(loaded))))
    model.offers |= {"own"}
    return model


class Opener:
    """Opens folders that `raison train classifier` wrote."""

    def owns(self, path: Path) -> bool:
        return kind_of(path) == TYPE

    def __call__(self, path: Path, *, device: str | None = None, dtype: Any = None) -> Attentive:
        check_folder(path, allow_pickle=False, has_tokenizer=False)

        def read() -> tuple[AttentionClassifier, Any, Any]:
            from transformers import PreTrainedTokenizerFast

            with quiet():
                config = AttentionConfig.from_pretrained(path)
                words = PreTrainedTokenizerFast.from_pretrained(path)
                both: Any = AttentionClassifier.from_pretrained(path, config=config, output_loading_info=True)
            return *both, words

        hf, report, own = sentence(read, path.name, "model")
        refuse_missing(hf, report["missing_keys"], path.name)
        return adapted(placed(hf, device, dtype), own, path.name)


loaders.register("attention")(Opener())
