"""LLaMA and its kin: SmolLM, TinyLlama, Qwen: rotary positions, RMSNorm, gated MLP, shared key heads."""

from raison.models.families import Family, register_family

FAMILY = register_family(Family("llama", ("llama", "smollm3"), note="rotary positions, RMSNorm"))
QWEN = register_family(
    Family(
        "qwen",
        ("qwen2", "qwen3"),
        note="rotary positions, RMSNorm; Qwen3 normalises queries and keys",
    )
)
