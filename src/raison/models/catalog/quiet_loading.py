"""Loading finished model folders without a word from transformers and without a look at the network."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raison.core.errors import ModelError

__all__ = [
    "load_local_folder",
    "load_local_tokenizer",
    "load_without_gguf_bar",
    "quiet_transformers",
]

_turn = threading.RLock()  # two threads that save and restore the same settings would mix them up


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No progress bars and no warnings of transformers inside the block, and the random state as it was after it."""
    import torch
    import transformers

    talk: Any = transformers.utils.logging
    with _turn:
        level, bars = talk.get_verbosity(), getattr(talk, "_tqdm_active", None)
        talk.set_verbosity_error()
        # the public switch also sets the hub's own bars, which it could not restore to what they were
        if bars is not None:
            talk._tqdm_active = False
        try:
            with torch.random.fork_rng(
                devices=[]
            ):  # fresh weights are drawn before the saved ones replace them
                yield
        finally:
            talk.set_verbosity(level)
            if bars is not None:
                talk._tqdm_active = bars


@contextmanager
def load_without_gguf_bar() -> Iterator[None]:
    """No progress bar while a GGUF file is read: that reader asks neither of the switches above."""
    from transformers import modeling_gguf_pytorch_utils

    reader: Any = modeling_gguf_pytorch_utils
    with _turn:
        bar = getattr(reader, "tqdm", None)
        if bar is not None:
            reader.tqdm = lambda items, **_: items
        try:
            yield
        finally:
            if bar is not None:
                reader.tqdm = bar


def load_local_folder(kind: Any, folder: Path, name: str, **options: Any) -> Any:
    """`kind.from_pretrained` of a finished folder: safetensors, float32, never the network."""
    import torch

    try:
        with quiet_transformers():
            model = kind.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, dtype=torch.float32, **options
            )
    except Exception as error:
        raise unreadable_folder_error(folder, name, error) from error
    # the place of the cache is nobody's business in a saved record
    model.config._name_or_path = name
    return model.eval()


def load_local_tokenizer(folder: Path, name: str) -> Any:
    """The tokenizer of a finished folder."""
    from transformers import AutoTokenizer

    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        raise unreadable_folder_error(folder, name, error) from error


def unreadable_folder_error(folder: Path, name: str, error: Exception) -> ModelError:
    reason = " ".join(str(error).split())[:200]
    return ModelError(
        f"The cached model {name!r} can't be opened ({reason}): delete {folder} and try again."
    )
