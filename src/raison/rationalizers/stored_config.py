"""The stored config of a rationalizer: what the config.json of its folder holds."""

from __future__ import annotations

from typing import Any

from transformers import PretrainedConfig

from raison.core.json_record import JsonObject
from raison.rationalizers.config import RationalizerConfig

__all__ = ["MODEL_TYPE", "StoredRationalizerConfig"]

MODEL_TYPE = "raison_rationalizer"
OF_THE_ENCODER = (
    "max_position_embeddings",
    "hidden_size",
    "num_attention_heads",
    "local_attention",
)


class StoredRationalizerConfig(PretrainedConfig):
    """A rationalizer's config, that of the encoder inside, the tokens that are no words, and the labels."""

    model_type = MODEL_TYPE

    def __init__(
        self,
        rationalizer: JsonObject | None = None,
        encoder: JsonObject | None = None,
        special_ids: list[int] | None = None,
        separator_id: int | None = None,
        base: str = "",
        token_types: bool = False,
        longest: int | None = None,
        label_mean: float = 0.0,
        label_std: float = 1.0,
        **more: Any,
    ):
        if "frame" in more:
            raise ValueError("raison 0.1 wrote it in another format: train the rationalizer again")
        self.rationalizer = RationalizerConfig.from_settings(rationalizer or {}).to_dict()
        self.encoder = encoder or {}
        self.special_ids = special_ids or []
        self.separator_id = separator_id
        self.base = base  # the model that an adapter belongs to; empty where all weights are stored
        self.longest = longest  # tokens of a text that it was trained on at most
        # of the numbers that a regression learned from
        self.label_mean, self.label_std = label_mean, label_std
        self.token_types = token_types  # which tell the two texts of a pair apart
        self.check()
        for name in OF_THE_ENCODER:
            if name in self.encoder:
                more.setdefault(name, self.encoder[name])
        super().__init__(**{"pad_token_id": self.encoder.get("pad_token_id"), **more})

    def check(self) -> None:
        """Refuse what a damaged file may hold."""
        if not isinstance(self.base, str):
            raise ValueError(f"the base is the name of a model, not {self.base!r}")
        special_ids = self.special_ids
        if not isinstance(special_ids, list) or any(type(i) is not int for i in special_ids):
            raise ValueError(f"special tokens are a list of numbers, not {self.special_ids!r}")
        if self.separator_id is not None and type(self.separator_id) is not int:
            raise ValueError(f"the separator is the number of a token, not {self.separator_id!r}")
