"""SmolLM2 with an adapter that makes it behave on parts of a context, shipped with raison.

The adapter is what `raison train compatibility -m smollm2 --data wikitext2+imdb+ag_news --tokens 150000 --lora 8
--steps 400 --bfloat16 --half --out FOLDER` writes; its training.json holds the settings and the losses.
"""

from __future__ import annotations

from pathlib import Path

from raison.core.errors import ModelError
from raison.models.catalog import ModelAndTokenizer, register_catalog_model
from raison.models.catalog.smollm2 import BYTES, open_smollm2

SHIPPED = Path(__file__).parent / "shipped" / "smollm2-compatible"


@register_catalog_model(
    "smollm2-compatible",
    "smollm2 with raison's own adapter, trained on parts of contexts: reads a few words better.",
    "Apache-2.0",
    BYTES,
)
def open_smollm2_compatible() -> ModelAndTokenizer:
    if not (SHIPPED / "adapter_model.safetensors").is_file():  # said before the base is downloaded
        raise ModelError(
            "The adapter of 'smollm2-compatible' is missing from this installation: reinstall raison."
        )
    model, words = open_smollm2()
    from raison.models.lora_merge import merge_adapter

    return merge_adapter(model, SHIPPED), words
