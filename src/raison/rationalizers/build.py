"""Builds a new rationalizer around an encoder: its settings (sparsity, the split by homogeneity), word embeddings,
heads and stored config.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core import progress
from raison.core.errors import InputError, Unsupported
from raison.models.families import family_of
from raison.rationalizers.batching import padding_id, sorted_batches, special_ids
from raison.rationalizers.block_ranges import blocks_of_encoder
from raison.rationalizers.config import ALL_BLOCKS, RationalizerConfig
from raison.rationalizers.encoders import LoadedEncoder
from raison.rationalizers.gru import Encoder, GRUEncoder
from raison.rationalizers.hiding_check import check_hiding
from raison.rationalizers.homogeneity import Homogeneity, blocks_by_homogeneity, measure_homogeneity
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.stored_config import StoredRationalizerConfig
from raison.training.labelled_lines import LabelledLine

__all__ = [
    "build_rationalizer",
    "max_tokens_of_encoder",
    "resolve_rationalizer_config",
    "with_derived_settings",
]

Settings: TypeAlias = Mapping[str, Any]  # of a config, by name

DEFAULTS = RationalizerConfig()
SAMPLE = 300  # texts that homogeneity is measured on
SAMPLE_SEED = 4


def resolve_rationalizer_config(
    loaded: LoadedEncoder,
    asked: Settings,
    train: Sequence[LabelledLine],
    *,
    pairs: bool,
) -> tuple[RationalizerConfig, Homogeneity | None]:
    """The config with everything decided: where to split, and how many shares there are."""
    settings = {
        **asked,
        "sparsity": sparsity_shares(asked.get("sparsity", DEFAULTS.sparsity), pairs=pairs),
    }
    if settings.get("encoder") == "gru":
        return RationalizerConfig.from_settings(settings), None
    depth = len(blocks_of_encoder(loaded.encoder, loaded.name)[1])
    homogeneity = None
    if settings.get("blocks") is None:
        check_splittable(loaded, settings)  # what can't be split is refused before
        homogeneity = homogeneity_of_sample(loaded, train)
        rest = settings.get("predictor", DEFAULTS.predictor) == "rest"
        settings["blocks"] = blocks_by_homogeneity(homogeneity, rest=rest)
        progress.report(
            0,
            1,
            f"the first {settings['blocks']} of {depth} blocks select, by the spread of token states",
        )
    elif settings["blocks"] == ALL_BLOCKS:
        settings["blocks"] = depth
    config = RationalizerConfig.from_settings(with_derived_settings(settings))
    config.check_depth(depth, loaded.name)
    return config, homogeneity


def sparsity_shares(sparsity: float | Sequence[float], *, pairs: bool) -> tuple[float, ...]:
    """The share of each text: two for pairs, which is the same one twice if one was given."""
    shares: tuple[float, ...]
    if isinstance(sparsity, (list, tuple)):
        shares = tuple(sparsity)
    else:
        shares = (cast(float, sparsity),)
    if pairs and len(shares) == 1:
        return (*shares, *shares)
    if not pairs and len(shares) == 2:
        raise InputError("Two sparsities are for pairs, and these are single texts: give one.")
    return shares


def with_derived_settings(settings: Settings) -> dict[str, Any]:
    """Settings with what follows from the number of blocks."""
    if settings.get("encoder") == "gru" or not isinstance(settings["blocks"], int):
        return dict(settings)
    derived = {"pruning": min(DEFAULTS.pruning, max(1, settings["blocks"] - 1)), **settings}
    if derived["pruning"] == derived["blocks"]:  # no state stands before the pruning blocks
        derived.setdefault("full_text", "predictor")
    return derived


def check_splittable(loaded: LoadedEncoder, settings: Settings) -> None:
    """Refuse an encoder that can't be split behind its first block."""
    trial = RationalizerConfig(
        blocks=1,
        pruning=1,
        predictor="whole",
        full_text="predictor",
        hide=settings.get("hide", DEFAULTS.hide),
    )
    build_rationalizer(loaded.encoder, loaded.tokenizer, trial, ("one", "other"), seed=0)


def homogeneity_of_sample(loaded: LoadedEncoder, train: Sequence[LabelledLine]) -> Homogeneity:
    """How alike the token states of some training texts are."""
    order = np.random.default_rng(SAMPLE_SEED).permutation(len(train))
    sample = [train[number] for number in order[:SAMPLE]]
    special = torch.tensor(special_ids(loaded.tokenizer))
    known = inspect.signature(loaded.encoder.forward).parameters
    batches = []
    for _, batch in sorted_batches(sample, padding_id(loaded.tokenizer)):
        is_special = torch.isin(batch["input_ids"], special)
        real = batch["attention_mask"].bool() & ~is_special
        inputs = {name: tensor for name, tensor in batch.items() if name in known}
        batches.append({**inputs, "real": real})
    return measure_homogeneity(loaded.encoder.eval(), batches)


def build_rationalizer(
    encoder: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    config: RationalizerConfig,
    labels: Sequence[str],
    seed: int,
) -> Rationalizer:
    """A rationalizer around an encoder; its heads are a function of the seed."""
    if tokenizer.cls_token_id is None and config.encoder != "gru":
        raise Unsupported(
            "The tokenizer puts no token in front of a text, so nothing would be left of an empty rationale: use "
            "an encoder such as minilm or BERT."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inner: Encoder = encoder
        if config.encoder == "gru":
            inner = gru_over_words_of(encoder, tokenizer, config.width)
        stored = rationalizer_stored_config(inner, tokenizer, config, labels)
        model = Rationalizer(stored, inner)
        if config.encoder == "gru" and model.predictor is not None:
            for copied in encoders_of_rationalizer(model)[1:]:
                copied.gru.reset_parameters()
    model.float()  # heads and blocks are of one kind, whatever the checkpoint was stored in
    if config.encoder != "gru":
        check_hiding(model, tokenizer)
    model.requires_grad_(True)
    model.selector.offsets.requires_grad_(False)
    for part in encoders_of_rationalizer(model):
        freeze_word_embeddings(part)
    return model


def gru_over_words_of(
    encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, width: int
) -> GRUEncoder:
    """A GRU over the word embeddings of an encoder."""
    table = cast(nn.Embedding, encoder.get_input_embeddings()).weight.detach()
    gru = GRUEncoder(
        {
            "model_type": GRUEncoder.TYPE,
            "vocab_size": table.shape[0],
            "embedding_size": table.shape[1],
            "hidden_size": width,
            "pad_token_id": padding_id(tokenizer),
        }
    )
    with torch.no_grad():
        gru.words.weight.copy_(table)
    return gru


def rationalizer_stored_config(
    encoder: Encoder,
    tokenizer: PreTrainedTokenizerBase,
    config: RationalizerConfig,
    labels: Sequence[str],
) -> StoredRationalizerConfig:
    """What config.json will hold; without labels it is a regression."""
    names, problem = {0: "value"}, "regression"
    if labels:
        names, problem = dict(enumerate(labels)), "single_label_classification"
    return StoredRationalizerConfig(
        config.to_dict(),
        encoder.config.to_dict(),
        special_ids=special_ids(tokenizer),
        separator_id=tokenizer.sep_token_id,
        token_types="token_type_ids" in getattr(tokenizer, "model_input_names", ()),
        id2label=names,
        label2id={label: number for number, label in names.items()},
        problem_type=problem,
    )


def encoders_of_rationalizer(model: Rationalizer) -> list[Encoder]:
    """The encoders of a model: one, or one more for each predictor that has its own."""
    parts = (model.encoder, model.predictor, model.soft_predictor)
    return [part for part in parts if part is not None]


def freeze_word_embeddings(encoder: Encoder) -> None:
    """P1: embeddings stay as they are."""
    encoder.get_input_embeddings().weight.requires_grad_(False)
    for path, parameter in encoder.named_parameters():
        if path.startswith("embeddings."):
            parameter.requires_grad_(False)


def max_tokens_of_encoder(encoder: PreTrainedModel) -> int:
    """Tokens that an encoder reads at most; some count positions from behind the padding id."""
    limit = getattr(encoder.config, "max_position_embeddings", None) or 512
    return int(limit) - family_of(encoder).offset(encoder.config)
