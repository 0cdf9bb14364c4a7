"""The default classifier: MiniLM with an adapter for the sentiment of English sentences, shipped with raison."""

from __future__ import annotations

import json
from pathlib import Path

from raison.core.errors import ModelError
from raison.models.catalog import ModelAndTokenizer, register_catalog_model
from raison.models.catalog.minilm import BYTES, minilm_folder
from raison.models.catalog.quiet_loading import (
    load_local_folder,
    load_local_tokenizer,
    quiet_transformers,
)

SHIPPED = Path(__file__).parent / "shipped" / "sentiment"


@register_catalog_model(
    "sentiment",
    "Tells negative from positive English sentences: all-MiniLM-L6-v2 with raison's own adapter, trained on SST-2.",
    "Apache-2.0",
    BYTES,
)
def open_sentiment() -> ModelAndTokenizer:
    if not (SHIPPED / "adapter_model.safetensors").is_file():  # said before the base is downloaded
        raise ModelError(
            "The adapter of 'sentiment' is missing from this installation: reinstall raison."
        )
    folder = minilm_folder("sentiment")
    from transformers import BertConfig

    from raison.models.lora_merge import merge_adapter
    from raison.models.mean_pooled_bert import MeanPooledBert

    labels = json.loads((SHIPPED / "recipe.json").read_text(encoding="utf-8"))["labels"]
    with quiet_transformers():
        config = BertConfig.from_pretrained(folder, local_files_only=True)
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}
    config.architectures = [MeanPooledBert.__name__]
    # the head that is drawn at random here is the adapter's to replace: merge refuses an adapter without one
    model = merge_adapter(
        load_local_folder(MeanPooledBert, folder, "sentiment", config=config), SHIPPED
    )
    return model.eval(), load_local_tokenizer(folder, "sentiment")
