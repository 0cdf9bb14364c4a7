"""The encoder inside whatever a user names: a bare one, or the one of a fine-tuned classifier."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

from raison.core.errors import InputError, ModelError, Unsupported
from raison.models import catalog, hub
from raison.models.catalog.quiet import quiet
from raison.models.checkpoint import check_folder, refuse_missing
from raison.models.load import kind_of, looks_local
from raison.models.probe import check_weights
from raison.rationalizers.block_ranges import blocks_of
from raison.rationalizers.module import TYPE

__all__ = ["opened_encoder"]


def opened_encoder(model: Any, tokenizer: Any = None) -> tuple[Any, Any, str]:
    """The encoder, its tokenizer, and what it is called."""
    if not isinstance(model, (str, os.PathLike)):
        if not hasattr(model, "config") or not hasattr(model, "forward"):
            raise InputError(f"A {type(model).__name__} is no encoder: pass a name, a folder or a transformers model.")
        if tokenizer is None:
            raise ModelError("A model in memory needs its tokenizer: pass tokenizer=...")
        called = getattr(model.config, "_name_or_path", "") or type(model).__name__
        check_weights(model, called)
        return copy.deepcopy(inside(model)).cpu(), tokenizer, called
    name = str(model)
    path = Path(name).expanduser()
    if kind_of(path) == TYPE:
        raise Unsupported(f"{path.name!r} is a rationalizer already: name the encoder that it was made from.")
    if not path.exists() and name in catalog.entries():
        hf, own = catalog.entries()[name].open()
        encoder = inside(hf)
    else:
        encoder, own = from_place(name, path, tokenizer)
    blocks_of(encoder, path.name)  # said now: what can't be split is no use
    check_weights(encoder, path.name)
    return encoder, tokenizer or own, path.name if path.is_dir() else name


def from_place(name: str, path: Path, tokenizer: Any) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    if looks_local(name) and not path.exists():
        raise ModelError(f"There is no model folder {name!r}: check the path.")
    if path.is_file():
        raise ModelError(f"{name!r} is a file: name the folder of an encoder, such as BERT's, or one of the hub.")
    options: dict[str, Any] = {}
    if path.is_dir():
        check_folder(path, allow_pickle=False, has_tokenizer=tokenizer is not None)
        name = str(path)
    elif not hub.reachable():
        options["local_files_only"] = True

    def read() -> Any:
        with quiet():
            return AutoModel.from_pretrained(name, use_safetensors=True, output_loading_info=True, **options)

    encoder, report = hub.sentence(read, name, "weights")
    # a rationalizer reads token states, never the pooler
    refuse_missing(encoder, [key for key in report["missing_keys"] if "pooler" not in key], path.name)
    words = tokenizer or hub.sentence(lambda: AutoTokenizer.from_pretrained(name, **options), name, "tokenizer")
    return inside(encoder), words


def inside(hf: Any) -> Any:
    """The bare encoder of a model with a head."""
    config = hf.config
    if getattr(config, "is_encoder_decoder", False) or getattr(config, "is_decoder", False):
        raise Unsupported(f"{type(hf).__name__} is no encoder of BERT's kind, so it can't be split: use one as minilm.")
    found = getattr(hf, hf.base_model_prefix, hf)
    return found if found is not None else hf
