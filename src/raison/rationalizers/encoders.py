"""The encoder inside whatever a user names: a bare one, or the one of a fine-tuned classifier."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import InputError, ModelError, Unsupported
from raison.models import catalog, hub
from raison.models.catalog.quiet_loading import quiet_transformers
from raison.models.checkpoint import check_model_folder, refuse_missing_weights
from raison.models.load import looks_local, model_type_of_folder
from raison.models.probe import check_weights
from raison.rationalizers.block_ranges import blocks_of
from raison.rationalizers.stored_config import MODEL_TYPE

__all__ = ["LoadedEncoder", "load_encoder"]


@dataclass(frozen=True)
class LoadedEncoder:
    """An encoder with its tokenizer, and what it is called."""

    encoder: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str


def load_encoder(
    model: str | os.PathLike[str] | PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> LoadedEncoder:
    """The encoder of a name, a folder or a model in memory; a tokenizer that is given is taken for its own."""
    if not isinstance(model, (str, os.PathLike)):
        return encoder_in_memory(model, tokenizer)
    name = str(model)
    path = Path(name).expanduser()
    if model_type_of_folder(path) == MODEL_TYPE:
        raise Unsupported(
            f"{path.name!r} is a rationalizer already: name the encoder that it was made from."
        )
    if not path.exists() and name in catalog.catalog_entries():
        whole_model, own_tokenizer = catalog.catalog_entries()[name].open()
        encoder = encoder_inside(whole_model)
    else:
        encoder, own_tokenizer = read_encoder(name, path, tokenizer)
    blocks_of(encoder, path.name)  # said now: what can't be split is no use
    check_weights(encoder, path.name)
    return LoadedEncoder(encoder, tokenizer or own_tokenizer, path.name if path.is_dir() else name)


def encoder_in_memory(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None
) -> LoadedEncoder:
    """A copy of the encoder of a model that a user passed."""
    if not hasattr(model, "config") or not hasattr(model, "forward"):
        raise InputError(
            f"A {type(model).__name__} is no encoder: pass a name, a folder or a transformers model."
        )
    if tokenizer is None:
        raise ModelError("A model in memory needs its tokenizer: pass tokenizer=...")
    name = getattr(model.config, "_name_or_path", "") or type(model).__name__
    check_weights(model, name)
    return LoadedEncoder(copy.deepcopy(encoder_inside(model)).cpu(), tokenizer, name)


def read_encoder(
    name: str, path: Path, tokenizer: PreTrainedTokenizerBase | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The encoder of a folder or of the hub, with its tokenizer."""
    if looks_local(name) and not path.exists():
        raise ModelError(f"There is no model folder {name!r}: check the path.")
    if path.is_file():
        raise ModelError(
            f"{name!r} is a file: name the folder of an encoder, such as BERT's, or one of the hub."
        )
    options: dict[str, Any] = {}
    if path.is_dir():
        check_model_folder(path, allow_pickle=False, has_tokenizer=tokenizer is not None)
        name = str(path)
    elif not hub.hub_is_reachable():
        options["local_files_only"] = True

    def read() -> Any:
        with quiet_transformers():
            return AutoModel.from_pretrained(
                name, use_safetensors=True, output_loading_info=True, **options
            )

    model, report = hub.run_loading_step(read, name, "weights")
    # a rationalizer reads token states, never the pooler
    refuse_missing_weights(
        model, [key for key in report["missing_keys"] if "pooler" not in key], path.name
    )
    if tokenizer is None:
        tokenizer = hub.run_loading_step(
            lambda: AutoTokenizer.from_pretrained(name, **options), name, "tokenizer"
        )
    return encoder_inside(model), tokenizer


def encoder_inside(model: PreTrainedModel) -> PreTrainedModel:
    """The bare encoder of a model with a head."""
    config = model.config
    if getattr(config, "is_encoder_decoder", False) or getattr(config, "is_decoder", False):
        raise Unsupported(
            f"{type(model).__name__} is no encoder of BERT's kind, so it can't be split: use one as minilm."
        )
    inner = getattr(model, model.base_model_prefix, model)
    return inner if inner is not None else model
