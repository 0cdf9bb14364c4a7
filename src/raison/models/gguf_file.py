"""Opening a GGUF file as a plain transformers model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from raison.core.errors import MissingExtra
from raison.models import hub
from raison.models.checkpoint import Checkpoint

__all__ = ["checkpoint_from_gguf"]

SETTINGS_OF_GGUF = ("quantization_config", "_name_or_path", "_model_name_or_path")


def checkpoint_from_gguf(path: Path) -> Checkpoint:
    """Read a GGUF file into a plain model (the one transformers returns refuses to be copied or saved)."""
    try:
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
    except ImportError:
        raise MissingExtra("gguf", "gguf", "A GGUF file") from None

    place = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    tokenizer = hub.run_loading_step(
        lambda: AutoTokenizer.from_pretrained(**place), path.name, "tokenizer"
    )

    def weights() -> Any:
        return AutoModelForCausalLM.from_pretrained(
            **place, dtype=torch.float32, output_loading_info=True
        )

    read, report = hub.run_loading_step(weights, path.name, "weights")
    settings = read.config.to_dict()
    for key in SETTINGS_OF_GGUF:
        settings.pop(key, None)
    config = type(read.config)(**settings)
    plain = type(read)(config)
    plain.load_state_dict(read.state_dict())
    plain.tie_weights()
    return Checkpoint(plain.eval(), tokenizer, path.stem, path, frozenset(report["missing_keys"]))
