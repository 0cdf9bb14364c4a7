"""An attention classifier as a `Model`: every method, search and metric applies, and `own` reads its attention."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from raison.attention_models.module import (
    MODEL_TYPE,
    AttentionClassifier,
    ClassifierOutput,
    StoredClassifierConfig,
)
from raison.core.records import Encoding
from raison.core.registry import loaders
from raison.models.catalog.quiet_loading import quiet_transformers
from raison.models.checkpoint import check_model_folder, refuse_missing_weights
from raison.models.families import Family
from raison.models.hub import run_loading_step
from raison.models.load import model_on_device, model_type_of_folder
from raison.models.loaded_model import LoadedModel
from raison.models.probe import probe_model
from raison.models.tasks.classification import ClassificationTask
from raison.models.transformers_model import transformers_model
from raison.models.wrapped_model import WrappedModel

__all__ = ["AttentionModel", "AttentionPass", "attention_model", "to_numpy"]

FAMILY = Family(
    MODEL_TYPE, (MODEL_TYPE,), note="raison's own: one attention over words, which `own` reads"
)

LoadingInfo: TypeAlias = Mapping[str, Collection[str]]  # what transformers says of a checkpoint


@dataclass
class AttentionPass:
    """One batch of texts of equal length through the model."""

    owners: list[int]  # number of each row's text
    output: ClassifierOutput
    leaf: torch.Tensor  # [b t d] the embeddings: what gradients are taken to


class AttentionModel(WrappedModel):
    """A classifier with one attention over its words."""

    @property
    def hf(self) -> AttentionClassifier:
        return cast(AttentionClassifier, self.inner.hf)

    @property
    def view(self) -> AttentionClassifier:
        """What runs: a view of the model's present weights."""
        return cast(AttentionClassifier, self.runner.view)

    def passes(
        self, encodings: Sequence[Encoding], *, graph: bool = False
    ) -> Iterator[AttentionPass]:
        """All texts, a batch of equal length at a time; with `graph` gradients can be taken."""
        runner = self.runner
        exact = replace(runner.layout, padding="exact")
        for prepared in runner.prepare_whole_texts(encodings, layout=exact):
            call = prepared.call
            call.record = frozenset({"embeddings"})
            with torch.inference_mode(False):
                output = runner.forward(prepared, graph=graph)
            owners = [part.owner for part in prepared.chunk.parts]
            yield AttentionPass(owners, output, call.leaves[0])

    def own(self, encodings: Sequence[Encoding]) -> list[np.ndarray]:
        """[t] attention weights of each text; special tokens have 0."""
        attention: list[np.ndarray] = [np.zeros(0)] * len(encodings)
        for each in self.passes(encodings):
            for owner, weights in zip(each.owners, to_numpy(each.output.weights), strict=True):
                attention[owner] = weights
        return attention


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The numbers of a tensor in float64."""
    return np.asarray(tensor.detach().cpu().double().numpy())


def attention_model(
    hf: AttentionClassifier, tokenizer: PreTrainedTokenizerBase, name: str
) -> AttentionModel:
    """The model, probed like any other; it offers its own explanation as well."""
    loaded = LoadedModel(hf.eval(), tokenizer, FAMILY, name)
    model = AttentionModel(probe_model(transformers_model(ClassificationTask(loaded))))
    model.offers |= {"own"}
    return model


class AttentionLoader:
    """Opens folders that `raison train classifier` wrote, and wraps such models in memory."""

    def owns(self, path: Path) -> bool:
        """Whether a folder holds such a classifier."""
        return model_type_of_folder(path) == MODEL_TYPE

    def wrap(
        self, hf: AttentionClassifier, tokenizer: PreTrainedTokenizerBase, name: str
    ) -> AttentionModel:
        """The `Model` of one in memory."""
        return attention_model(hf, tokenizer, name)

    def __call__(
        self, path: Path, *, device: str | None = None, dtype: str | torch.dtype | None = None
    ) -> AttentionModel:
        check_model_folder(path, allow_pickle=False, has_tokenizer=False)

        def read() -> tuple[AttentionClassifier, Collection[str], PreTrainedTokenizerFast]:
            with quiet_transformers():
                config = StoredClassifierConfig.from_pretrained(path)
                words = PreTrainedTokenizerFast.from_pretrained(path)
                loaded: object = AttentionClassifier.from_pretrained(
                    path, config=config, output_loading_info=True
                )
            hf, report = cast("tuple[AttentionClassifier, LoadingInfo]", loaded)
            return hf, report["missing_keys"], words

        hf, missing, words = run_loading_step(read, path.name, "model")
        refuse_missing_weights(hf, missing, path.name)
        return attention_model(model_on_device(hf, device, dtype), words, path.name)


loaders.register("attention")(AttentionLoader())
