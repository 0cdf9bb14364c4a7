"""TinyStories 15M: a language model small enough for tests, fluent enough to be worth explaining there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from raison.models.catalog import ModelAndTokenizer, register_catalog_model
from raison.models.catalog.archive_member import extract_member
from raison.models.catalog.fetch import Package, fetch_package_file
from raison.models.catalog.model_cache import Origin, build_in_cache
from raison.models.catalog.quiet_loading import (
    load_local_folder,
    load_local_tokenizer,
    quiet_transformers,
)

TARBALL = Package(
    registry="npm",
    package="llamaa.mp4",
    version="1.0.0",
    file="llamaa.mp4-1.0.0.tgz",
    sha256="ce97a6893807dac0e7d0301f3eff1e3efc2dc7b061a51d8af13a234130b6d247",
    size=89_827_266,
)
ROOM = 260_000_000
HEADS, WIDTH = 6, 288
SPECIAL = ("<unk>", "<s>", "</s>")  # ids 0, 1, 2; the 256 single bytes follow them
FIRST_PIECE = len(SPECIAL) + 256
MARK = "\u2581"  # how sentencepiece writes a space


@register_catalog_model(
    "stories15m",
    "TinyStories 15M, a model of children's stories, for tests.",
    "MIT",
    64_400_000,
    hidden=True,
)
def open_stories15m() -> ModelAndTokenizer:
    folder = build_in_cache("stories15m", "1", make_stories15m_folder, ROOM)
    from transformers import LlamaForCausalLM

    return load_local_folder(LlamaForCausalLM, folder, "stories15m"), load_local_tokenizer(
        folder, "stories15m"
    )


def make_stories15m_folder(folder: Path, scratch: Path) -> Origin:
    tarball = fetch_package_file(TARBALL, scratch, "stories15m")
    words = extract_member(tarball, "package/tokenizer.model.np", scratch / "words.json")
    weights = extract_member(tarball, "package/stories15M.model.npz", scratch / "weights.npz")
    with quiet_transformers():
        convert_stories15m_words(words, folder)
        convert_stories15m_weights(weights, folder)
    return {"npm": f"{TARBALL.package}@{TARBALL.version}", "sha256 of the tarball": TARBALL.sha256}


def convert_stories15m_weights(path: Path, folder: Path) -> None:
    """Arrays under transformers' names, but with the two halves of each rotary pair side by side."""
    import numpy as np
    import torch
    import transformers

    hf: Any = transformers
    config = hf.LlamaConfig(
        vocab_size=32000,
        hidden_size=WIDTH,
        intermediate_size=768,
        num_hidden_layers=6,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=256,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    state = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            array = arrays[name]
            if (
                ".q_proj." in name or ".k_proj." in name
            ):  # transformers wants all first halves, then all second ones
                array = array.reshape(HEADS, -1, 2, WIDTH).swapaxes(1, 2).reshape(WIDTH, WIDTH)
            state[name] = torch.from_numpy(np.ascontiguousarray(array))
    model = hf.LlamaForCausalLM(config)
    model.load_state_dict(state)
    model.tie_weights()
    model.save_pretrained(folder)


def convert_stories15m_words(path: Path, folder: Path) -> None:
    """A list of pieces with scores becomes a BPE model: the pairs that make the best-scored pieces merge first."""
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

    data = json.loads(path.read_text(encoding="utf-8"))
    pieces = [piece.replace(" ", MARK) for piece in data["tokens"]]
    # single bytes are stored as characters that also occur as pieces of their own
    pieces[len(SPECIAL) : FIRST_PIECE] = [f"<0x{byte:02X}>" for byte in range(256)]
    ids = {piece: number for number, piece in enumerate(pieces)}
    merges = []
    for number in sorted(range(FIRST_PIECE, len(pieces)), key=lambda i: -data["scores"][i]):
        piece = pieces[number]
        halves = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        pairs = [(left, right) for left, right in halves if left in ids and right in ids]
        merges += sorted(pairs, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    core = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    core.normalizer = normalizers.Sequence(
        [normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]
    )
    core.decoder = decoders.Sequence(
        [
            decoders.Replace(MARK, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    core.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in SPECIAL])
    hf: Any = transformers
    whole = hf.PreTrainedTokenizerFast(
        tokenizer_object=core,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="</s>",
    )
    whole.save_pretrained(folder)
