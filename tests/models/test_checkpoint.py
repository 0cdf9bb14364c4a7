"""No weight is invented and no pickle is opened unasked, wherever a model comes from."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import raison
from raison.core.errors import ModelError
from raison.testing import FAMILIES, tiny_hf
from tests.helpers import cli_server

PAIRS = [(family, task) for family, tasks in FAMILIES.items() for task in tasks]


def save(folder, family="bert", task="classification"):
    model, tokenizer = tiny_hf(family, task, double=False)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, folder


def drop(folder, chosen):
    """Delete the tensors that `chosen` names, and return their names."""
    file = folder / "model.safetensors"
    tensors = load_file(file)
    lost = [name for name in tensors if chosen(name)]
    save_file(
        {name: tensor for name, tensor in tensors.items() if name not in lost},
        file,
        {"format": "pt"},
    )
    return lost


@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_a_checkpoint_without_a_block_is_refused_in_every_family(family, task, tmp_path):
    _, folder = save(tmp_path, family, task)
    assert drop(folder, lambda name: any(f".{number}." in name for number in range(9)))
    with pytest.raises(ModelError, match="copy the model again"):
        raison.load(folder)


@pytest.mark.parametrize(
    ("family", "task"), [(f, t) for f, t in PAIRS if t in ("classification", "tagging", "qa")]
)
def test_a_checkpoint_without_its_head_is_refused_in_every_family(family, task, tmp_path):
    model, folder = save(tmp_path, family, task)
    prefix = model.base_model_prefix + "."
    (first, *_) = drop(folder, lambda name: not name.startswith(prefix))
    with pytest.raises(ModelError, match=r"no trained head \(.*random: fine-tune it"):
        raison.load(folder)
    assert first


def test_a_checkpoint_without_embeddings_or_without_anything_is_refused(tmp_path):
    _, folder = save(tmp_path / "a")
    drop(folder, lambda name: "word_embeddings" in name)
    with pytest.raises(
        ModelError, match=r"lack 1 of its weights \(bert.embeddings.word_embeddings.weight\)"
    ):
        raison.load(folder)
    _, folder = save(tmp_path / "b")
    save_file({"other": torch.zeros(1)}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="are of two models"):
        raison.load(folder)


def test_the_command_line_says_which_weights_are_missing(tmp_path):
    _, folder = save(tmp_path)
    drop(folder, lambda name: name.startswith("classifier."))
    result = cli_server.run(("explain", "A plain text.", "-m", str(folder)), b"", timeout=120)
    assert (result.returncode, result.stdout) == (1, b"")
    assert (
        b"give no trained head (classifier.weight, classifier.bias), so its answers would be random"
        in result.stderr
    )


def test_weights_that_another_one_gives_are_not_missing(tmp_path):
    """A head tied to the word table is in no file of its own."""
    _, folder = save(tmp_path, "gpt2", "causal")
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    assert raison.load(folder).task == "causal"


def test_an_encoder_alone_is_no_classifier(tmp_path):
    """config.json names a head, the weights are those of the encoder as it was pretrained."""
    model, folder = save(tmp_path)
    model.bert.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text()) | {
        "architectures": ["BertForSequenceClassification"]
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="no trained head"):
        raison.load(folder)


# -- adapters ------------------------------------------------------------------------------------------


def save_adapter(folder, base, **options):
    peft = pytest.importorskip("peft")
    model, _ = tiny_hf("bert", "classification", double=False)
    wanted = {
        "r": 2,
        "target_modules": ["query", "value"],
        "modules_to_save": ["classifier"],
    } | options
    wrapped = peft.get_peft_model(model, peft.LoraConfig(**wanted))
    wrapped.save_pretrained(folder)
    config = folder / "adapter_config.json"
    settings = json.loads(config.read_text()) | {"base_model_name_or_path": str(base)}
    config.write_text(json.dumps(settings))
    return folder / "adapter_model.safetensors"


def test_an_adapter_may_give_the_head_that_its_base_lacks(tmp_path):
    _, base = save(tmp_path / "base")
    drop(base, lambda name: name.startswith("classifier."))
    save_adapter(tmp_path / "adapter", base)
    assert raison.load(tmp_path / "adapter").task == "classification"


def test_an_adapter_does_not_mend_other_losses_of_its_base(tmp_path):
    _, base = save(tmp_path / "base")
    drop(base, lambda name: "layer.1." in name)
    save_adapter(tmp_path / "adapter", base)
    with pytest.raises(ModelError, match="copy the model again"):
        raison.load(tmp_path / "adapter")


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (
            "layer.1.attention.self.value",
            "holds no change of bert.encoder.layer.1.attention.self.value",
        ),
        ("classifier.bias", "holds no tensor of classifier.bias"),
        ("classifier", "holds no tensor of classifier.weight"),
    ],
)
def test_an_adapter_without_a_part_that_it_lists_is_refused(lost, told, tmp_path):
    _, base = save(tmp_path / "base")
    file = save_adapter(tmp_path / "adapter", base)
    tensors = load_file(file)
    kept = {name: tensor for name, tensor in tensors.items() if lost not in name}
    assert len(kept) < len(tensors)
    save_file(kept, file)
    with pytest.raises(ModelError, match=told):
        raison.load(tmp_path / "adapter")


def test_an_adapter_that_excludes_modules_is_whole(tmp_path):
    _, base = save(tmp_path / "base")
    save_adapter(tmp_path / "adapter", base, exclude_modules=["layer.0.attention.self.value"])
    assert raison.load(tmp_path / "adapter").task == "classification"


# -- GGUF ----------------------------------------------------------------------------------------------

WIDTH, HEADS, INNER = 16, 2, 24


def write_gguf(path, lost=()):
    """A tiny LLaMA with random weights, without those that are named."""
    gguf = pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    random = np.random.default_rng(0)
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        *"▁abcdefghijklmnopqrstuvwxyzT.",
    ]
    kinds = [2, 3, 3, *[6] * 256, *[1] * (len(pieces) - 259)]  # unknown, control, byte, normal
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(64)
    file.add_embedding_length(WIDTH)
    file.add_block_count(2)
    file.add_feed_forward_length(INNER)
    file.add_head_count(HEADS)
    file.add_head_count_kv(HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(WIDTH // HEADS)
    file.add_vocab_size(len(pieces))
    file.add_tokenizer_model("llama")
    file.add_token_list(pieces)
    file.add_token_scores([0.0] * len(pieces))
    file.add_token_types(kinds)
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_unk_token_id(0)
    shapes = {
        "token_embd": (len(pieces), WIDTH),
        "output": (len(pieces), WIDTH),
        "output_norm": (WIDTH,),
    }
    block = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (WIDTH, WIDTH))
    block |= {"ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
    block |= {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,)}
    for number in range(2):
        shapes |= {f"blk.{number}.{name}": shape for name, shape in block.items()}
    for name, shape in shapes.items():
        if name not in lost:
            file.add_tensor(f"{name}.weight", random.normal(size=shape).astype(np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def test_a_gguf_file_without_a_tensor_is_refused(tmp_path):
    write_gguf(tmp_path / "whole.gguf")
    assert raison.load(tmp_path / "whole.gguf").task == "causal"
    write_gguf(tmp_path / "cut.gguf", lost=("blk.1.attn_q",))
    with pytest.raises(
        ModelError, match=r"'cut' lack 1 of its weights \(model.layers.1.self_attn.q_proj.weight\)"
    ):
        raison.load(tmp_path / "cut.gguf")


# -- pickles -------------------------------------------------------------------------------------------


def shard(folder, shards):
    """Replace model.safetensors by an index that gives every tensor to the files of `shards` in turn."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = {name: shards[number % len(shards)] for number, name in enumerate(tensors)}
    for file in shards:
        part = {name: tensor for name, tensor in tensors.items() if names[name] == file}
        if file.endswith(".safetensors"):
            save_file(part, folder / file, {"format": "pt"})
        else:
            torch.save(part, folder / file)
    index = {"metadata": {"total_size": 1}, "weight_map": names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_shards_of_safetensors_are_read(tmp_path):
    model, folder = save(tmp_path)
    shard(folder, ["model-1.safetensors", "model-2.safetensors"])
    read = raison.load(folder).hf.state_dict()
    assert all(torch.equal(read[name], tensor) for name, tensor in model.state_dict().items())


def test_an_index_that_names_a_pickle_is_refused(tmp_path):
    """A safetensors file beside it does not make the pickle safe."""
    _, folder = save(tmp_path)
    shard(folder, ["pytorch_model.bin"])
    save_file({"other": torch.zeros(1)}, folder / "x.safetensors")
    with pytest.raises(ModelError, match=r"names a pickled file \(pytorch_model.bin\)"):
        raison.load(folder)
    assert raison.load(folder, allow_pickle=True).task == "classification"


def test_one_pickle_among_shards_is_refused(tmp_path):
    _, folder = save(tmp_path)
    shard(folder, ["model-1.safetensors", "pytorch_model.bin"])
    with pytest.raises(ModelError, match="names a pickled file"):
        raison.load(folder)


def test_an_index_that_the_config_names_is_looked_into(tmp_path):
    """transformers reads the file that config.json names, even if there is a model.safetensors."""
    _, folder = save(tmp_path)
    whole = (folder / "model.safetensors").read_bytes()
    shard(folder, ["pytorch_model.bin"])
    (folder / "model.safetensors.index.json").rename(folder / "other.safetensors.index.json")
    (folder / "model.safetensors").write_bytes(whole)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"transformers_weights": "other.safetensors.index.json"})
    )
    with pytest.raises(ModelError, match="names a pickled file"):
        raison.load(folder)


def test_an_unrelated_safetensors_file_does_not_open_a_pickle(tmp_path):
    model, folder = save(tmp_path)
    (folder / "model.safetensors").rename(folder / "x.safetensors")
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"has no model\.safetensors"):
        raison.load(folder)


@pytest.mark.parametrize("text", ["", "[]", '{"weight_map": 3}', '{"weight_map": {"a": 1}}'])
def test_a_damaged_index_is_told_in_a_sentence(text, tmp_path):
    _, folder = save(tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ModelError, match="is damaged: copy the model again"):
        raison.load(folder)
