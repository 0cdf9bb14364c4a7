"""The merge of a LoRA folder against peft's own, and its refusals."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

import raison
from raison.core.errors import ModelError
from raison.models.lora_merge import merge_adapter, merge_adapter_or_model_error
from raison.testing import tiny_hf
from tests.helpers.lora_folders import IDS, MASK, tiny_bert

peft = pytest.importorskip("peft")


def tiny_gpt():
    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=20, n_positions=16, n_embd=16, n_layer=2, n_head=2)
    ).eval()


def save_adapter(model, folder, **options):
    """An adapter with no zero matrix, saved by peft; returns peft's own merge of it."""
    wrapped = peft.get_peft_model(model, peft.LoraConfig(**options))
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in wrapped.parameters():
            if parameter.requires_grad:
                parameter.normal_(0, 0.3)
    wrapped.save_pretrained(folder)
    return wrapped.merge_and_unload().eval()


BERT = {
    "r": 4,
    "lora_alpha": 6,
    "target_modules": ["query", "value", "dense"],
    "modules_to_save": ["classifier"],
}


def edit_config(folder, **changes):
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_tensors(folder, change):
    path = folder / "adapter_model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"use_rslora": True},
        {"task_type": "SEQ_CLS"},
        {"rank_pattern": {"query": 2}, "alpha_pattern": {"layer.1.attention.self.query": 10}},
    ],
    ids=["plain", "rslora", "seq_cls", "patterns"],
)
def test_merge_agrees_with_peft(tmp_path, extra):
    # A copy: peft writes into the lists of its configuration.
    expected = save_adapter(tiny_bert(), tmp_path, **json.loads(json.dumps(BERT | extra)))
    before = tiny_bert()
    merged = merge_adapter(tiny_bert(), tmp_path)
    assert expected.state_dict().keys() == merged.state_dict().keys()
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(merged.state_dict()[name], value, rtol=0, atol=1e-6)
    args = {"input_ids": IDS, "attention_mask": MASK}
    torch.testing.assert_close(merged(**args).logits, expected(**args).logits, rtol=0, atol=1e-6)
    assert (merged(**args).logits - before(**args).logits).abs().max() > 0.1


def test_merge_agrees_with_peft_fan_in_fan_out(tmp_path):
    expected = save_adapter(
        tiny_gpt(), tmp_path, r=4, lora_alpha=6, target_modules=["c_attn"], fan_in_fan_out=True
    )
    merged = merge_adapter(tiny_gpt(), tmp_path)
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(merged.state_dict()[name], value, rtol=0, atol=1e-6)


def test_half_precision_file_is_merged_in_float32(tmp_path):
    save_adapter(tiny_bert(), tmp_path, **BERT)
    edit_tensors(tmp_path, lambda t: t.update({k: v.half() for k, v in t.items()}))
    tensors = load_file(tmp_path / "adapter_model.safetensors")
    name = "bert.encoder.layer.0.attention.self.query"
    a, b = (tensors[f"base_model.model.{name}.lora_{side}.weight"].float() for side in "AB")
    expected = tiny_bert().get_submodule(name).weight + 6 / 4 * b @ a
    weight = merge_adapter(tiny_bert(), tmp_path).get_submodule(name).weight
    assert weight.dtype == torch.float32
    torch.testing.assert_close(weight, expected, rtol=0, atol=1e-6)


def refused(folder, message):
    """The merge raises with this message and leaves the model as it was."""
    model, before = tiny_bert(), tiny_bert().state_dict()
    with pytest.raises(ValueError, match=message):
        merge_adapter(model, folder)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    "key",
    [
        "base_model.model.bert.embeddings.word_embeddings.lora_embedding_A",
        "base_model.model.bert.encoder.layer.0.attention.self.query.bias",
        "stray.lora_A.weight",
    ],
)
def test_unused_tensor_is_named(tmp_path, key):
    save_adapter(tiny_bert(), tmp_path, **BERT)
    edit_tensors(tmp_path, lambda t: t.update({key: torch.ones(4, 16)}))
    refused(tmp_path, key)


def test_missing_module_is_named(tmp_path):
    save_adapter(tiny_bert(), tmp_path, **BERT)
    key = "base_model.model.bert.nowhere.lora_{}.weight"
    edit_tensors(
        tmp_path,
        lambda t: t.update(
            {key.format("A"): torch.ones(4, 16), key.format("B"): torch.ones(16, 4)}
        ),
    )
    refused(tmp_path, "bert.nowhere")


def test_missing_half_of_a_pair_is_named(tmp_path):
    save_adapter(tiny_bert(), tmp_path, **BERT)
    name = "bert.encoder.layer.1.attention.self.query"
    edit_tensors(tmp_path, lambda t: t.pop(f"base_model.model.{name}.lora_B.weight"))
    refused(tmp_path, name)


def test_missing_head_is_named(tmp_path):
    save_adapter(tiny_bert(), tmp_path, **BERT)
    edit_tensors(tmp_path, lambda t: [t.pop(k) for k in list(t) if "classifier" in k])
    refused(tmp_path, "classifier")


def test_head_of_another_shape(tmp_path):
    save_adapter(tiny_bert(), tmp_path, **BERT)
    edit_tensors(
        tmp_path, lambda t: t.update({"base_model.model.classifier.weight": torch.ones(3, 16)})
    )
    refused(tmp_path, "classifier.weight")


@pytest.mark.parametrize(
    "changes", [{"use_dora": True}, {"peft_type": "LOHA"}, {"init_lora_weights": "pissa"}]
)
def test_variants_are_refused(tmp_path, changes):
    save_adapter(tiny_bert(), tmp_path, **BERT)
    edit_config(tmp_path, **changes)
    refused(tmp_path, next(iter(changes)))


@pytest.fixture
def adapted_folder(tmp_path):
    """A model with its tokenizer, an adapter that names it, and peft's own merge."""
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    hf.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    expected = save_adapter(
        hf, tmp_path / "adapter", r=4, target_modules=["c_attn"], fan_in_fan_out=True
    )
    edit_config(tmp_path / "adapter", base_model_name_or_path=str(tmp_path / "base"))
    return tmp_path / "adapter", expected


def test_a_folder_of_an_adapter_is_opened_with_its_model(adapted_folder):
    folder, expected = adapted_folder
    model = raison.load(folder)
    assert model.name == "adapter"
    assert torch.allclose(model.hf(input_ids=IDS).logits, expected(input_ids=IDS).logits, atol=1e-5)


def circle(folder):
    """Two adapters, each for the other."""
    other = shutil.copytree(folder, folder.parent / "other")
    edit_config(folder, base_model_name_or_path=str(other))
    edit_config(other, base_model_name_or_path=str(folder))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda f: edit_config(f, base_model_name_or_path=None),
            "does not say which model it is for",
        ),
        (
            lambda f: edit_config(f, base_model_name_or_path=str(f)),
            "does not say which model it is for",
        ),
        (circle, "does not say which model it is for"),
        (
            lambda f: (f / "adapter_config.json").write_text("{"),
            "does not say which model it is for",
        ),
        (
            lambda f: edit_config(f, base_model_name_or_path=str(f.parent / "gone")),
            "There is no model folder",
        ),
        (lambda f: (f / "adapter_model.safetensors").unlink(), "has no adapter_model.safetensors"),
        (
            lambda f: (f / "adapter_model.safetensors").write_bytes(b"\1" * 40),
            "can't be merged into its model",
        ),
        (lambda f: edit_config(f, use_dora=True), "can't be merged into its model: .*use_dora"),
    ],
)
def test_a_broken_adapter_is_said_in_a_sentence(adapted_folder, spoil, words):
    folder, _ = adapted_folder
    spoil(folder)
    with pytest.raises(ModelError, match=words):
        raison.load(folder)


@pytest.mark.parametrize(
    "wrong", [{"lora_alpha": None}, {"lora_alpha": "x"}, {"alpha_pattern": {"(": 3}}]
)
def test_a_damaged_adapter_is_told(wrong, tmp_path):
    peft = pytest.importorskip("peft")
    hf, _ = tiny_hf("gpt2", "causal")
    config = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)
    adapter = peft.get_peft_model(hf.float(), config)
    adapter.save_pretrained(tmp_path / "adapter")
    place = tmp_path / "adapter" / "adapter_config.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), **wrong}))
    with pytest.raises(ModelError, match="adapter"):
        merge_adapter_or_model_error(tiny_hf("gpt2", "causal")[0].float(), tmp_path / "adapter")
