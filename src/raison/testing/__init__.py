"""Public contract checks for your own methods and models, and tiny models of every family to run them on."""

from raison.testing.method_contract import check_method
from raison.testing.model_contract import check_model
from raison.testing.tiny import FAMILIES, tiny_hf, tiny_model, tiny_tokenizer

__all__ = ["FAMILIES", "check_method", "check_model", "tiny_hf", "tiny_model", "tiny_tokenizer"]
