"""What the load probe finds out by itself, also where the mend that it would excuse is switched off."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch
import transformers

import raison
from raison.core.errors import ModelError, Unsupported
from raison.core.records import Example
from raison.models.attention import view_hooks
from raison.models.attention.call import Seen, running_call
from raison.models.attention.products import ReweightedProducts
from raison.models.attention.view_settings import ModelSettings, keep_settings
from raison.models.families.big_bird import sparse_from
from raison.models.protocol import Question, TargetSpec
from raison.models.transformers_model import TransformersModel
from raison.testing import tiny_hf, tiny_model
from raison.testing.tiny import encoder_decoder_config_keywords, tokenizer_of_family

WRITER = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
}
LONG = "The old town lies on a hill above the river, and nobody knows who built it first, or why, or when it was."


def model_of(name, tokenizer="qwen", task="causal", **settings):
    """A tiny model of any architecture with random weights, and a tokenizer (qwen's adds no token in front)."""
    words = tokenizer_of_family(tokenizer)
    config = transformers.AutoConfig.for_model(
        name, **(WRITER | {"vocab_size": len(words)} | settings)
    )
    auto = transformers.AutoModelForCausalLM
    kind = auto if task == "causal" else transformers.AutoModelForSequenceClassification
    torch.manual_seed(0)
    model = kind.from_config(config).float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4 if parameter.dim() > 1 else 1)  # attention is far from uniform
    return model, words


def ask(model, keep, removal, text=LONG):
    """Logits of the next token when these rows of tokens are kept."""
    (encoding,) = model.encode([Example(text)])
    target = model.predict([encoding])[0].target
    target = type(target)(**{**vars(target), "output": "logit"})
    rows = np.ones((len(keep), len(encoding)), bool)
    for row, kept in zip(rows, keep, strict=True):
        row[~kept(np.arange(len(encoding)))] = False
    return (
        encoding,
        target,
        model.score([Question(encoding, target, rows)], removal=removal)[0].value[:, 0],
    )


def everything(place):
    return place >= 0


def behind(count):
    return lambda place: place >= count


# -- what a family does behind its attention weights -----------------------------------------------------

SINKS = ("granite_swa", "granitemoe_swa")
EXPERTS = {"granitemoe_swa": {"num_local_experts": 2, "num_experts_per_tok": 1}}


def with_masks(hf, encoding, target, visible):
    """The plain eager model, given an attention mask: in a causal model nobody sees the rows that see nothing."""
    plain = copy.deepcopy(hf)
    plain.set_attn_implementation("eager")
    ids = torch.from_numpy(encoding.ids.copy())[None]
    mask = torch.from_numpy(visible.astype(int))[None]
    places = torch.arange(ids.shape[1])[None]
    with torch.no_grad():
        return float(
            plain(input_ids=ids, attention_mask=mask, position_ids=places).logits[
                0, -1, target.ids[0]
            ]
        )


@pytest.mark.parametrize("name", SINKS)
def test_masking_keeps_what_a_family_does_behind_its_attention_weights(name):
    hf, tokenizer = model_of(name, **EXPERTS.get(name, {}))
    model = raison.load(hf, tokenizer)
    assert model.removals[:2] == ("delete", "mask")
    kept = [behind(5), everything, behind(12)]
    encoding, target, masked = ask(model, kept, "mask")
    literal = [with_masks(hf, encoding, target, each(np.arange(len(encoding)))) for each in kept]
    np.testing.assert_allclose(masked, literal, rtol=1e-4, atol=1e-4)
    assert np.ptp(masked) > 0.05


class Recomputing(ReweightedProducts):
    """Weights change where they are multiplied, but what comes out is computed anew from them."""

    def result_of_product(self, mark, weights, values, product):
        self.output = product
        return product


def recomputed(*args, **kwargs):
    """The tap as it would be if it multiplied weights and values itself."""
    made = []

    class Watch(Recomputing):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_hooks, "ReweightedProducts", Watch)
        output, weights = PLAIN_TAP(*args, **kwargs)
    return (made[-1].output.transpose(1, 2), weights) if made else (output, weights)


PLAIN_TAP = view_hooks.view_attention


def test_the_probe_notices_a_mask_that_forgets_what_comes_behind_the_weights(monkeypatch):
    hf, tokenizer = model_of("granite_swa")
    assert raison.load(hf, tokenizer).runner.switches_heads
    monkeypatch.setattr(view_hooks, "view_attention", recomputed)
    model = raison.load(hf, tokenizer)
    assert "mask" not in model.removals and "delete" not in model.removals
    assert not model.runner.switches_heads
    with pytest.raises(Unsupported, match="can be looked at, but not switched off"):
        model.score([], heads=np.ones((2, 4)))


# -- models that change themselves ----------------------------------------------------------------------

BIRD = {
    "block_size": 4,
    "num_random_blocks": 2,
    "attention_type": "block_sparse",
    "num_key_value_heads": 4,
}


def bird(**settings):
    return model_of("big_bird", "bert", "classification", **(BIRD | settings))


def test_a_short_text_does_not_change_what_bigbird_says_of_a_long_one():
    hf, tokenizer = bird()
    model = raison.load(hf, tokenizer)
    long, short = model.encode([Example(f"{LONG} {LONG}"), Example("A film.")])
    assert len(long) >= 69 > sparse_from(hf.config) > len(short)
    ids = torch.from_numpy(long.ids.copy())[None]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = copy.deepcopy(hf)(input_ids=ids).logits[0].softmax(-1)
    before = dict(model.predict([long])[0].top)
    model.predict([short])
    after = dict(model.predict([long])[0].top)
    expected = {hf.config.id2label[i]: float(plain[i]) for i in range(len(plain))}
    assert before == after == pytest.approx(expected, abs=1e-5)
    assert model.runner.one_pass_at_a_time and "delete" not in model.removals
    assert hf.bert.encoder.attention_type == "block_sparse"  # the user's own model too is as it was


def test_a_short_source_does_not_change_what_bigbird_pegasus_says_of_a_long_one():
    words = tokenizer_of_family("bart")
    settings = {"block_size": 4, "num_random_blocks": 2, "attention_type": "block_sparse"}
    config = transformers.BigBirdPegasusConfig(
        **(encoder_decoder_config_keywords(len(words)) | settings)
    )
    config.max_position_embeddings = 128
    torch.manual_seed(0)
    hf = transformers.BigBirdPegasusForConditionalGeneration(config).eval()
    hf.generation_config.max_new_tokens = 3
    model = raison.load(hf, words)
    long, short = model.encode([Example(f"{LONG} {LONG}"), Example("A film.")])
    ids = torch.tensor([words(f"{LONG} {LONG}")["input_ids"]])
    assert ids.shape[1] > sparse_from(config) > len(short)
    start = torch.tensor([[config.decoder_start_token_id]])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = (
            copy.deepcopy(hf)(input_ids=ids, decoder_input_ids=start).logits[0, -1].log_softmax(-1)
        )

    def said():
        encoding, target = model.resolve_targets(long, TargetSpec(target=[7]))[0]
        keep = np.ones((1, len(encoding)), bool)
        return float(model.score([Question(encoding, target, keep)])[0].value[0, 0])

    before = said()
    model.predict([short])
    assert said() == before == pytest.approx(float(plain[7]), abs=1e-5)
    assert hf.model.encoder.attention_type == "block_sparse"


def test_the_probe_notices_a_model_that_changes_itself(monkeypatch):
    monkeypatch.setattr(ModelSettings, "restore", lambda self: None)
    with pytest.raises(ModelError, match="changes its own settings while it runs"):
        raison.load(*bird())
    assert raison.load(*tiny_hf("bert", "classification")).removals  # an ordinary model does not


def test_settings_are_put_back_whatever_a_pass_does():
    class Odd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.kind = torch.nn.Linear(2, 2), "full"
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            self.kind, self.new, self.seen, self.inner = (
                "sparse",
                1,
                torch.ones(1),
                torch.nn.Identity(),
            )
            raise ValueError

    model = Odd()
    inner, seen = model.inner, model.seen
    settings = keep_settings(model, one_at_a_time=True)
    for _ in range(2):  # the turn is given back
        with pytest.raises(ValueError):
            model(torch.zeros(2))
    assert (model.kind, model.inner, model.seen) == ("full", inner, seen) and not hasattr(
        model, "new"
    )
    assert settings.changes == 2 and settings.changed() == []


# -- hybrids --------------------------------------------------------------------------------------------

HALF = {  # one of two layers attends
    "qwen3_next": {
        "layer_types": ["linear_attention", "full_attention"],
        "linear_num_value_heads": 2,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "head_dim": 8,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 16,
    },
    "lfm2": {"full_attn_idxs": [1]},
    "bamba": {
        "attn_layer_indices": [1],
        "mamba_n_heads": 4,
        "mamba_d_head": 16,
        "mamba_d_state": 8,
        "mamba_n_groups": 1,
    },
}


def doubled(*args, **kwargs):
    """The tap as it would be if it recorded maps beside the function mode."""
    output, weights = PLAIN_TAP(*args, **kwargs)
    call = running_call.get()
    if call is not None and "softmaxes" in call.record:
        call.maps.append(Seen("self", weights, call.block))
    return output, weights


@pytest.mark.parametrize("name", HALF)
@pytest.mark.parametrize("broken", [False, True])
def test_maps_of_half_of_the_layers_do_not_pass_for_maps_of_all(name, broken, monkeypatch):
    if broken:
        monkeypatch.setattr(view_hooks, "view_attention", doubled)
    model = raison.load(*model_of(name, **HALF[name]))
    assert "attention" not in model.offers and "gradients" in model.offers


def test_each_attention_is_recorded_once_by_the_function_mode(monkeypatch):
    model = tiny_model("bert", "classification")
    (encoding,) = model.encode([Example("A plain text.")])
    target = model.predict([encoding])[0].target
    ((_, tapped),) = model.trace([encoding], [target], want=frozenset({"attention"}))
    monkeypatch.setattr(model.runner, "bypasses_tap", True)
    ((_, watched),) = model.trace([encoding], [target], want=frozenset({"attention"}))
    assert [seen.block for seen in tapped.maps] == [seen.block for seen in watched.maps] == [0, 1]
    for one, other in zip(tapped.maps, watched.maps, strict=True):
        torch.testing.assert_close(one.weights, other.weights)


# -- batches --------------------------------------------------------------------------------------------


def quantized():
    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(
            hf, {torch.nn.Linear}, dtype=torch.qint8
        ), tokenizer


def test_a_model_whose_answer_depends_on_the_batch_runs_one_text_at_a_time():
    hf, tokenizer = quantized()
    model = raison.load(hf, tokenizer)
    assert model.budget.rows == 1
    texts = ["The film is lovely.", "A dull plot, and dull.", "Nobody cares about it."]
    encodings = model.encode([Example(text) for text in texts])
    for encoding, found in zip(encodings, model.predict(encodings), strict=True):
        with torch.no_grad():
            plain = hf(input_ids=torch.from_numpy(encoding.ids.copy())[None]).logits[0].softmax(-1)
        assert found.value == pytest.approx(float(plain.max()), abs=1e-6)


def test_methods_that_need_a_batch_are_refused_where_batches_change_answers(monkeypatch):
    model = tiny_model("bert", "classification")
    monkeypatch.setattr(model, "budget", type(model.budget)(rows=1))
    with pytest.raises(Unsupported, match="answers otherwise in a batch"):
        raison.explain(model, "A plain text.", method="deeplift")
    alone = raison.explain(model, "A plain text.", method="value_zeroing")
    monkeypatch.undo()
    np.testing.assert_allclose(
        alone.scores, raison.explain(model, "A plain text.", method="value_zeroing").scores
    )


# -- windows and chunks ---------------------------------------------------------------------------------

CHUNKED = {
    "num_local_experts": 2,
    "num_experts_per_tok": 1,
    "head_dim": 8,
    "intermediate_size_mlp": 48,
}


@pytest.mark.parametrize(
    ("chunk", "limit", "deletes"),
    [(16, 512, False), (2048, 8192, False), (2048, 2040, True)],
    ids=["crossed by a text", "crossed by position", "never reached"],
)
def test_deletion_is_offered_only_if_every_chunk_was_crossed(chunk, limit, deletes):
    """Llama 4 takes masked tokens in front for padding, and its chunks begin behind them."""
    settings = CHUNKED | {"attention_chunk_size": chunk, "max_position_embeddings": limit}
    model = raison.load(*model_of("llama4_text", **settings))
    assert ("delete" in model.removals) == deletes and "mask" in model.removals


def test_what_deletion_and_masking_say_behind_a_chunk_differs():
    """Why it is not offered: the plain model agrees with the mask."""
    hf, tokenizer = model_of("llama4_text", **CHUNKED, attention_chunk_size=16)
    model = raison.load(hf, tokenizer)
    encoding, target, (masked,) = ask(model, [behind(20)], "mask")
    assert masked == pytest.approx(
        with_masks(hf, encoding, target, np.arange(len(encoding)) >= 20), abs=1e-4
    )
    model.runner.removals = ("delete", "mask")
    assert abs(ask(model, [behind(20)], "delete")[2][0] - masked) > 0.01


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("mistral", {"sliding_window": 1024, "max_position_embeddings": 4096}),
        ("gemma3_text", {"sliding_window": 1024, "max_position_embeddings": 4096, "head_dim": 8}),
        ("granite_swa", {"sliding_window": 1024, "max_position_embeddings": 4096}),
    ],
)
def test_windows_beyond_a_real_text_are_crossed_by_position(name, settings):
    assert raison.load(*model_of(name, **settings)).removals[0] == "delete"


def test_a_window_that_is_counted_in_tokens_is_noticed(monkeypatch):
    """Were the family's rule asked about indices, a text without gaps would not tell."""
    monkeypatch.setattr(view_hooks, "original_positions_in_view", lambda call: None)
    model = raison.load(*model_of("mistral", sliding_window=1024, max_position_embeddings=4096))
    assert model.removals[0] != "delete"


# -- gradients ------------------------------------------------------------------------------------------


def test_gradients_are_offered_where_the_probe_is_certain_of_its_answer():
    """A probability of 1.0 has no gradient, and says nothing about the model."""
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    with torch.no_grad():
        hf.lm_head.weight = torch.nn.Parameter(hf.lm_head.weight * 500)
    model = raison.load(hf, tokenizer)
    assert model.predict(model.encode([Example(LONG)]))[0].value == 1.0
    assert {"gradients", "attention"} <= model.offers


def test_every_probe_attribute_is_of_an_ordinary_model():
    model = tiny_model("llama", "causal")
    assert isinstance(model, TransformersModel) and model.budget.rows is None
    assert not model.runner.one_pass_at_a_time and model.runner.switches_heads
