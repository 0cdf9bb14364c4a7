"""A rationalizer as a `Model`: every gradient and removal method applies, and `own` reads what it selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raison.core.errors import ModelError
from raison.core.records import Encoding, Example
from raison.core.registry import loaders
from raison.models.catalog.quiet import quiet
from raison.models.checkpoint import check_folder, refuse_missing
from raison.models.families import family_of
from raison.models.hub import sentence
from raison.models.load import kind_of, placed
from raison.models.loaded_model import LoadedModel
from raison.models.lora import merged
from raison.models.probe import probe
from raison.models.runner.batching import pieces_of_whole_texts
from raison.models.tasks.classification import ClassificationTask
from raison.models.transformers_model import transformers_model
from raison.models.wrapped_model import WrappedModel
from raison.rationalizers.batching import as_words
from raison.rationalizers.encoders import opened_encoder
from raison.rationalizers.module import TYPE, Rationalizer, RationalizerConfig

__all__ = ["Choice", "Selective", "selective"]

# a rationalizer runs some blocks twice or on other tokens: its attention maps are no one stack
STACKED = frozenset({"attention", "hidden", "heads"})


@dataclass(frozen=True)
class Choice:
    """What the generator did with one text."""

    kept: np.ndarray  # [t] True for what the predictor read
    odds: np.ndarray  # [t] how likely each token was to be kept by all pruning blocks, special tokens 0
    empty: bool  # two tokens might stay, and but for the rule that one does, none would


class Selective(WrappedModel):
    """A classifier that answers from the tokens that it selected."""

    def encode(self, examples: Sequence[Example], *, truncate: bool = False) -> list[Encoding]:
        """As it was trained: a special token that somebody typed is an unknown word."""
        special = self.hf.config.special
        encodings = []
        for encoding in super().encode(examples, truncate=truncate):
            ids = as_words(encoding.ids, encoding.start, special, self.tokenizer)
            encodings.append(replace(encoding, ids=ids))
        return encodings

    def choices(self, encodings: Sequence[Encoding]) -> list[Choice]:
        """What was selected of each text."""
        runner = self.runner
        found: dict[int, Choice] = {}
        exact = replace(runner.layout, padding="exact")
        for prepared in runner.prepare(pieces_of_whole_texts(encodings), layout=exact):
            with torch.inference_mode():
                told = runner.forward(prepared)
            likely = (torch.stack(told.margins).sigmoid().prod(0) * told.real).cpu().double().numpy()
            kept = told.rationale.bool().cpu().numpy()
            for row, part in enumerate(prepared.chunk.parts):
                found[part.owner] = Choice(kept[row], likely[row], bool(told.empty[row]))
        return [found[number] for number in range(len(encodings))]

    def own(self, encodings: Sequence[Encoding]) -> list[np.ndarray]:
        """[t] of each text: how likely a selected token was; 0 for all that the predictor never saw."""
        return [each.odds * each.kept for each in self.choices(encodings)]

    def selected(self, encodings: Sequence[Encoding]) -> list[np.ndarray]:
        """[t] of each text: True for what the predictor read."""
        return [each.kept for each in self.choices(encodings)]


def selective(hf: Rationalizer, tokenizer: Any, name: str) -> Selective:
    """The model, probed like any other; it offers its own explanation as well."""
    family = family_of(hf.encoder) if hf.frame.encoder == "pretrained" else family_of(hf)
    loaded = LoadedModel(hf.eval(), tokenizer, family, name, trained_on=hf.config.longest)
    model = Selective(probe(transformers_model(ClassificationTask(loaded))))
    model.offers = (model.offers - STACKED) | {"own"}
    return model


class Opener:
    """Opens folders that `raison train rationalizer` wrote: whole models, and adapters with the name of their base."""

    def owns(self, path: Path) -> bool:
        return kind_of(path) == TYPE

    def __call__(self, path: Path, *, device: str | None = None, dtype: Any = None) -> Selective:
        config: RationalizerConfig = sentence(lambda: RationalizerConfig.from_pretrained(path), path.name, "config")
        if config.base:
            hf, words = from_adapter(path, config)  # reads safetensors only, and says what is missing
        else:
            check_folder(path, allow_pickle=False, has_tokenizer=True)
            hf, words = from_weights(path, config)
        if config.typed and "token_type_ids" not in words.model_input_names:  # a saved tokenizer may forget it
            words.model_input_names = [*words.model_input_names, "token_type_ids"]
        return selective(placed(hf, device, dtype), words, path.name)


def from_weights(path: Path, config: RationalizerConfig) -> tuple[Rationalizer, Any]:
    def read() -> tuple[Rationalizer, Any, Any]:
        from transformers import AutoTokenizer

        with quiet():
            words = AutoTokenizer.from_pretrained(path)
            both: Any = Rationalizer.from_pretrained(path, config=config, output_loading_info=True)
        return *both, words

    hf, report, words = sentence(read, path.name, "model")
    refuse_missing(hf, report["missing_keys"], path.name)
    return hf, words


def from_adapter(path: Path, config: RationalizerConfig) -> tuple[Rationalizer, Any]:
    """The base that the adapter names, with its changes and the heads put in."""
    beside = (path / config.base).resolve()  # a folder is named relative to the adapter
    encoder, words, _ = opened_encoder(str(beside) if beside.is_dir() else config.base)
    if any((path / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json")):
        from transformers import AutoTokenizer

        with quiet():
            words = sentence(lambda: AutoTokenizer.from_pretrained(path), path.name, "tokenizer")
    stored, real = config.encoder.get("hidden_size"), encoder.config.hidden_size
    if stored != real:
        raise ModelError(f"The adapter {path.name!r} is for another {config.base!r} ({stored} wide, not {real}).")
    hf = sentence(lambda: Rationalizer(config, encoder.float()), path.name, "config")
    return merged(hf, path), words  # type: ignore[return-value]


loaders.register("rationalizer")(Opener())
