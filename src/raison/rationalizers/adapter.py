"""A rationalizer as a `Model`: every gradient and removal method applies, and `own` reads what it selected."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from raison.core.errors import ModelError
from raison.core.records import Encoding, Example
from raison.core.registry import loaders
from raison.models.catalog.quiet_loading import quiet_transformers
from raison.models.checkpoint import check_model_folder, refuse_missing_weights
from raison.models.families import family_of
from raison.models.hub import run_loading_step
from raison.models.load import model_on_device, model_type_of_folder
from raison.models.loaded_model import LoadedModel
from raison.models.lora_merge import merge_adapter_or_model_error
from raison.models.probe import probe_model
from raison.models.tasks.classification import ClassificationTask
from raison.models.transformers_model import transformers_model
from raison.models.wrapped_model import WrappedModel
from raison.rationalizers.batching import special_as_unknown
from raison.rationalizers.encoders import load_encoder
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.stored_config import MODEL_TYPE, StoredRationalizerConfig

__all__ = ["RationalizerModel", "TokenSelection", "rationalizer_model"]

# a rationalizer runs some blocks twice or on other tokens: its attention maps are no one stack
STACKED = frozenset({"attention", "hidden", "heads"})
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True)
class TokenSelection:
    """What the generator did with one text."""

    kept: np.ndarray  # [t] True for what the predictor read
    # [t] how likely each token was to be kept by all pruning blocks, special tokens 0
    probabilities: np.ndarray
    empty: bool  # two tokens might stay, and but for the rule that one does, none would


class RationalizerModel(WrappedModel):
    """A classifier that answers from the tokens that it selected."""

    def encode(self, examples: Sequence[Example], *, truncate: bool = False) -> list[Encoding]:
        """As it was trained: a special token that somebody typed is an unknown word."""
        special = self.hf.config.special_ids
        encodings = []
        for encoding in super().encode(examples, truncate=truncate):
            ids = special_as_unknown(encoding.ids, encoding.start, special, self.tokenizer)
            encodings.append(replace(encoding, ids=ids))
        return encodings

    def selections(self, encodings: Sequence[Encoding]) -> list[TokenSelection]:
        """What was selected of each text."""
        runner = self.runner
        selections: dict[int, TokenSelection] = {}
        exact = replace(runner.layout, padding="exact")
        for prepared in runner.prepare_whole_texts(encodings, layout=exact):
            with torch.inference_mode():
                output = runner.forward(prepared)
            kept_by_each_block = torch.stack(output.margins).sigmoid()
            likely = kept_by_each_block.prod(0) * output.real
            probabilities = likely.cpu().double().numpy()
            kept = output.rationale.bool().cpu().numpy()
            for row, part in enumerate(prepared.chunk.parts):
                selections[part.owner] = TokenSelection(
                    kept=kept[row], probabilities=probabilities[row], empty=bool(output.empty[row])
                )
        return [selections[number] for number in range(len(encodings))]

    def own(self, encodings: Sequence[Encoding]) -> list[np.ndarray]:
        """[t] of each text: how likely a selected token was; 0 for all that the predictor never saw."""
        return [each.probabilities * each.kept for each in self.selections(encodings)]

    def selected(self, encodings: Sequence[Encoding]) -> list[np.ndarray]:
        """[t] of each text: True for what the predictor read."""
        return [each.kept for each in self.selections(encodings)]


def rationalizer_model(
    hf: Rationalizer, tokenizer: PreTrainedTokenizerBase, name: str
) -> RationalizerModel:
    """The model, probed like any other; it offers its own explanation as well."""
    family = family_of(hf)
    if hf.settings.encoder == "pretrained":
        family = family_of(hf.encoder)
    loaded = LoadedModel(hf.eval(), tokenizer, family, name, trained_on=hf.config.longest)
    model = RationalizerModel(probe_model(transformers_model(ClassificationTask(loaded))))
    model.offers = (model.offers - STACKED) | {"own"}
    return model


class RationalizerLoader:
    """Opens folders that `raison train rationalizer` wrote (whole models, and adapters with the name of their base),
    and wraps such models in memory."""

    def owns(self, path: Path) -> bool:
        """Whether a folder holds a rationalizer."""
        return model_type_of_folder(path) == MODEL_TYPE

    def wrap(
        self, hf: Rationalizer, tokenizer: PreTrainedTokenizerBase, name: str
    ) -> RationalizerModel:
        """The `Model` of one in memory."""
        return rationalizer_model(hf, tokenizer, name)

    def __call__(
        self, path: Path, *, device: str | None = None, dtype: str | torch.dtype | None = None
    ) -> RationalizerModel:
        config: StoredRationalizerConfig = run_loading_step(
            lambda: StoredRationalizerConfig.from_pretrained(path), path.name, "config"
        )
        if config.base:
            # reads safetensors only, and says what is missing
            hf, words = rationalizer_from_adapter(path, config)
        else:
            check_model_folder(path, allow_pickle=False, has_tokenizer=True)
            hf, words = rationalizer_from_weights(path, config)
        if config.token_types and "token_type_ids" not in words.model_input_names:
            # a saved tokenizer may forget it
            words.model_input_names = [*words.model_input_names, "token_type_ids"]
        return rationalizer_model(model_on_device(hf, device, dtype), words, path.name)


def rationalizer_from_weights(
    path: Path, config: StoredRationalizerConfig
) -> tuple[Rationalizer, PreTrainedTokenizerBase]:
    """A model all of whose weights are stored."""

    def read() -> tuple[Rationalizer, Collection[str], PreTrainedTokenizerBase]:
        with quiet_transformers():
            words = AutoTokenizer.from_pretrained(path)
            loaded: object = Rationalizer.from_pretrained(
                path, config=config, output_loading_info=True
            )
        hf, report = cast("tuple[Rationalizer, Mapping[str, Collection[str]]]", loaded)
        return hf, report["missing_keys"], words

    hf, missing, words = run_loading_step(read, path.name, "model")
    refuse_missing_weights(hf, missing, path.name)
    return hf, words


def rationalizer_from_adapter(
    path: Path, config: StoredRationalizerConfig
) -> tuple[Rationalizer, PreTrainedTokenizerBase]:
    """The base that the adapter names, with its changes and the heads put in."""
    beside = (path / config.base).resolve()  # a folder is named relative to the adapter
    name = config.base
    if beside.is_dir():
        name = str(beside)
    base = load_encoder(name)
    words = base.tokenizer
    if any((path / file).is_file() for file in TOKENIZER_FILES):
        with quiet_transformers():
            words = run_loading_step(
                lambda: AutoTokenizer.from_pretrained(path), path.name, "tokenizer"
            )
    stored, real = config.encoder.get("hidden_size"), base.encoder.config.hidden_size
    if stored != real:
        raise ModelError(
            f"The adapter {path.name!r} is for another {config.base!r} ({stored} wide, not {real})."
        )
    hf = run_loading_step(lambda: Rationalizer(config, base.encoder.float()), path.name, "config")
    merge_adapter_or_model_error(hf, path)
    return hf, words


loaders.register("rationalizer")(RationalizerLoader())
