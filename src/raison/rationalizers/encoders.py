"""Loads the encoder inside whatever a user names: a bare one, or the one of a fine-tuned classifier."""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import InputError, ModelError, Unsupported
from raison.models import catalog, hub
from raison.models.catalog.quiet_loading import quiet_transformers
from raison.models.checkpoint import check_model_folder, refuse_missing_weights
from raison.models.load import looks_local, model_type_of_folder
from raison.models.probe import check_weights
from raison.rationalizers.block_ranges import blocks_of_encoder, is_decoder
from raison.rationalizers.stored_config import MODEL_TYPE

__all__ = ["LoadedEncoder", "load_encoder", "name_of_model_in_memory"]


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
    blocks_of_encoder(encoder, path.name)  # said now: what can't be split is no use
    check_weights(encoder, path.name)
    if path.is_dir():
        name = path.name
    return LoadedEncoder(encoder, tokenizer or own_tokenizer, name)


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
    name = name_of_model_in_memory(model)
    check_weights(model, name)
    return LoadedEncoder(copy.deepcopy(encoder_inside(model)).cpu(), tokenizer, name)


def name_of_model_in_memory(model: PreTrainedModel) -> str:
    """The name that a model was loaded by, or that of its class."""
    return getattr(model.config, "_name_or_path", "") or type(model).__name__


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
    local_only = False
    if path.is_dir():
        check_model_folder(path, allow_pickle=False, has_tokenizer=tokenizer is not None)
        name = str(path)
    else:
        local_only = not hub.hub_is_reachable()

    def read() -> tuple[PreTrainedModel, Mapping[str, Collection[str]]]:
        with quiet_transformers():
            loaded: tuple[PreTrainedModel, Mapping[str, Collection[str]]] = (
                AutoModel.from_pretrained(
                    name,
                    use_safetensors=True,
                    output_loading_info=True,
                    local_files_only=local_only,
                )
            )
            return loaded

    model, report = hub.run_loading_step(read, name, "weights")
    # a rationalizer reads token states, never the pooler
    missing = [key for key in report["missing_keys"] if "pooler" not in key]
    refuse_missing_weights(model, missing, path.name)
    if tokenizer is None:
        tokenizer = hub.run_loading_step(
            lambda: AutoTokenizer.from_pretrained(name, local_files_only=local_only),
            name,
            "tokenizer",
        )
    return encoder_inside(model), tokenizer


def encoder_inside(model: PreTrainedModel) -> PreTrainedModel:
    """The bare encoder of a model with a head."""
    if is_decoder(model.config):
        raise Unsupported(
            f"{type(model).__name__} is no encoder of BERT's kind, so it can't be split: use one as minilm."
        )
    inner: PreTrainedModel | None = getattr(model, model.base_model_prefix, None)
    if inner is None:
        return model
    return inner
