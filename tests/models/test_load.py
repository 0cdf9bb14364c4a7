"""What `load` takes, what it refuses, and that the user's model is never changed."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError, ModelError, RaisonError, TooLong, Unsupported
from raison.core.registry import methods
from raison.methods.failures import forget_failures
from raison.models.protocol import Model, TargetSpec
from raison.testing import tiny_hf, tiny_model
from raison.testing.model_contract import model_state_hash
from tests.helpers.cheap_specs import fitting, light


def saved(folder, family="bert", task="classification", tokenizer=True, **kwargs):
    model, own = tiny_hf(family, task, double=False, **kwargs)
    model.save_pretrained(folder)
    if tokenizer:
        own.save_pretrained(folder)
    return model, own


# -- what it takes -------------------------------------------------------------------------------------


def test_a_model_in_memory_and_its_folder_agree(tmp_path):
    model, tokenizer = saved(tmp_path / "m")
    one = raison.explain(raison.load(model, tokenizer), "The film is lovely.")
    other = raison.explain(raison.load(str(tmp_path / "m")), "The film is lovely.")
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-5, atol=1e-6)


def test_loaded_models_show_the_transformers_model():
    model, tokenizer = tiny_hf("bert", "classification")
    loaded = raison.load(model, tokenizer)
    assert loaded.hf is model and loaded.tokenizer is tokenizer and isinstance(loaded, Model)
    assert raison.load(loaded) is loaded


def test_a_function_is_a_model():
    def length(texts):
        return np.array([[len(t.split()), -len(t.split())] for t in texts], dtype=float)

    model = raison.load(length, labels=["long", "short"])
    assert model.offers == {"score"}
    found = raison.explain(model, "one two three")
    assert found.target.text == "long" and found.scores.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(Unsupported, match="leave_one_out"):
        raison.explain(model, "one two", method="gradient_norm")


def test_a_function_is_asked_once_per_text():
    asked = []

    def count(texts):
        asked.extend(texts)
        return [len(t) for t in texts]

    from raison.models.protocol import Question
    from raison.models.runner.score_cache import Memory

    model = raison.load(count)
    encoding = model.encode([raison.Example("one two three")])[0]
    target = model.resolve_targets(encoding)[0][1]
    asked.clear()
    question = Question(encoding, target, np.array([[1, 0, 1], [1, 0, 1], [0, 1, 1]], bool))
    memory = Memory()
    (first,) = model.score([question], memory=memory)
    (again,) = model.score([question], memory=memory)
    assert asked == ["two three", "one three"] or asked == ["one three", "two three"]
    assert (
        first.value[:, 0].tolist() == again.value[:, 0].tolist() == [9.0, 9.0, 9.0]
        and again.forwards == 0
    )


@pytest.mark.parametrize(
    "bad", [lambda t: [1], lambda t: [[float("nan")]] * len(t), lambda t: [["a"]] * len(t)]
)
def test_a_function_that_misbehaves_is_named(bad):
    with pytest.raises(ModelError, match="function"):
        raison.explain(raison.load(bad), "one two")


def test_dtype_and_compiled_models(tmp_path):
    saved(tmp_path / "m")
    assert raison.load(str(tmp_path / "m"), dtype="float64").hf.dtype == torch.float64
    with pytest.raises(InputError, match="dtype"):
        raison.load(str(tmp_path / "m"), dtype="float31")


def test_other_architectures_offer_what_passes_the_probe():
    """No family file: OPT and BLOOM load by their functions alone."""
    from transformers import AutoModelForCausalLM, BloomConfig, OPTConfig

    _, tokenizer = tiny_hf("gpt2", "causal")
    small = dict(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        pad_token_id=0,
    )
    for config in (
        OPTConfig(**small, ffn_dim=24, max_position_embeddings=64, word_embed_proj_dim=16),
        BloomConfig(**small, n_head=2),
    ):
        model = raison.load(AutoModelForCausalLM.from_config(config).double(), tokenizer)
        assert {"score", "gradients"} <= model.offers
        assert np.isfinite(raison.explain(model, "The old town lies on a hill").scores).all()


# -- what it refuses, each in one sentence ---------------------------------------------------------------


def test_missing_folder():
    with pytest.raises(ModelError, match="check the path"):
        raison.load("./no/such/folder")


def test_folder_without_tokenizer(tmp_path):
    saved(tmp_path / "m", tokenizer=False)
    with pytest.raises(ModelError, match="no tokenizer"):
        raison.load(str(tmp_path / "m"))


def test_folder_without_config_or_weights(tmp_path):
    with pytest.raises(ModelError, match="config.json"):
        raison.load(str(tmp_path))
    saved(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="no weights"):
        raison.load(str(tmp_path / "m"))


def test_cut_weights(tmp_path):
    saved(tmp_path / "m")
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(ModelError, match="can't be read"):
        raison.load(str(tmp_path / "m"))


def test_weights_with_nan():
    model, tokenizer = tiny_hf("bert", "classification")
    with torch.no_grad():
        model.bert.encoder.layer[0].output.dense.weight[0, 0] = float("nan")
    with pytest.raises(ModelError, match=r"NaN.*layer\.0\.output"):
        raison.load(model, tokenizer)


def test_pickled_weights_need_a_flag(tmp_path):
    model, _ = saved(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "m" / "pytorch_model.bin")
    with pytest.raises(ModelError, match="allow_pickle"):
        raison.load(str(tmp_path / "m"))
    assert raison.load(str(tmp_path / "m"), allow_pickle=True).task == "classification"


def test_a_head_that_does_not_fit(tmp_path):
    model, tokenizer = saved(tmp_path / "m")
    with pytest.raises(Unsupported, match="classification"):
        raison.load(model, tokenizer, task="qa")
    with pytest.raises(Unsupported, match="classification"):
        raison.load(str(tmp_path / "m"), task="causal")
    with pytest.raises(Unsupported, match="no head"):
        raison.load(model.bert, tokenizer)
    with pytest.raises(InputError, match="Did you mean 'classification'"):
        raison.load(model, tokenizer, task="clasification")


def test_a_model_in_memory_needs_a_tokenizer():
    with pytest.raises(ModelError, match="tokenizer"):
        raison.load(tiny_hf("bert", "classification")[0])


@pytest.mark.parametrize("thing", [3, None, ["x"], {}])
def test_things_that_are_no_model(thing):
    with pytest.raises(InputError, match="can't be explained"):
        raison.load(thing)


def test_offloaded_weights():
    model, tokenizer = tiny_hf("bert", "classification")
    model.classifier.to("meta")
    with pytest.raises(RaisonError):
        raison.load(model, tokenizer)


# -- inputs that a model can't take ------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_empty_texts(text):
    with pytest.raises(InputError, match="empty"):
        raison.explain(tiny_model("bert", "classification"), text)


def test_very_long_text():
    for family, task in (("bert", "classification"), ("gpt2", "causal"), ("marian", "seq2seq")):
        model = tiny_model(family, task)
        with pytest.raises(TooLong, match="at most 64"):
            raison.explain(model, "word " * 20_000)
        cut = raison.explain(model, "word " * 200, truncate=True, method="gradient_norm")
        assert cut.diagnostics["truncated_tokens"] > 0


def test_lone_surrogates_are_refused():
    with pytest.raises(InputError, match="Unicode"):
        raison.explain(tiny_model("bert", "classification"), "bad \ud800 text")


def test_question_without_context():
    with pytest.raises(InputError, match="context"):
        raison.explain(tiny_model("bert", "qa"), "Where?")
    with pytest.raises(InputError, match="does not stand"):
        raison.explain(tiny_model("bert", "qa"), ("Where?", "In the town."), target="nowhere")


def test_methods_that_a_model_can_not_offer():
    model = tiny_model("bert", "classification")
    model.offers = model.offers - {"attention"}
    with pytest.raises(Unsupported, match=r"attention_last needs attention.*leave_one_out"):
        raison.explain(model, "x y", method="attention_last")


# -- the user's model ------------------------------------------------------------------------------------


def test_nothing_is_left_behind_after_a_failure_inside_a_call(monkeypatch):
    model = raison.load(
        *tiny_hf("llama", "causal")
    )  # its own: what fails here is switched off for it
    before = model_state_hash(model)
    expected = raison.explain(model, "The old town").scores
    task = type(model.definition)
    real = task.columns

    def broken(self, output, chunk):
        raise RuntimeError("on purpose")

    monkeypatch.setattr(task, "columns", broken)
    for name in fitting(model):
        if methods.build(name).needs:  # controls do not ask the model
            with pytest.raises(RaisonError, match=r"RuntimeError: on purpose"):
                raison.explain(model, "The old town", method=name, target="hall")
    monkeypatch.setattr(task, "columns", real)
    forget_failures(model)
    assert model_state_hash(model) == before
    np.testing.assert_array_equal(raison.explain(model, "The old town").scores, expected)


def test_training_mode_and_sdpa_stay():
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.train()
    hf.config._attn_implementation = "sdpa"
    tokenizer.padding_side = "left"
    hf.bert.embeddings.word_embeddings.weight.grad = torch.ones_like(
        hf.bert.embeddings.word_embeddings.weight
    )
    random_state = torch.random.get_rng_state()
    model = raison.load(hf, tokenizer)
    before = model_state_hash(model)
    for name in fitting(model):
        raison.explain(model, "The film is lovely.", method=light(name))
    assert model_state_hash(model) == before and hf.training
    assert torch.equal(torch.random.get_rng_state(), random_state)
    assert torch.equal(
        hf.bert.embeddings.word_embeddings.weight.grad,
        torch.ones_like(hf.bert.embeddings.word_embeddings.weight),
    )


def test_mixed_calls_from_four_threads():
    """A third of them fails on purpose; every answer equals the single-threaded one, the model stays the same."""
    model = tiny_model("mistral", "causal")
    texts = [
        "The old town lies on a hill",
        "A dull story with good actors",
        "Nobody knows who built it first",
    ]
    names = [light(name) for name in fitting(model)]
    jobs = [(texts[i % 3], name, i % 3 == 2) for i in range(9) for name in names][: 2 * len(names)]
    expected = {(t, n): raison.explain(model, t, method=n).scores for t in texts for n in names}
    before = model_state_hash(model)
    wrong: list[str] = []
    during: set[str] = set()
    queue = list(jobs)
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                if not queue:
                    return
                text, name, fail = queue.pop()
            try:
                if fail:
                    with pytest.raises(RaisonError):
                        raison.explain(model, text, method=name, removal="nonsense")
                    with pytest.raises(RaisonError):
                        raison.explain(model, text, method=name, target=99)
                else:
                    found = raison.explain(model, text, method=name).scores
                    if not np.array_equal(found, expected[text, name]):
                        wrong.append(f"{name}: {np.abs(found - expected[text, name]).max()}")
                during.add(model_state_hash(model))
            except BaseException as error:
                wrong.append(f"{name}: {error!r}")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert during == {before} and model_state_hash(model) == before


def test_a_view_follows_weights_that_move():
    hf, tokenizer = tiny_hf("bert", "classification")
    model = raison.load(hf, tokenizer)
    first = raison.explain(model, "The film is lovely.").scores
    with torch.no_grad():
        hf.classifier.weight.mul_(2.0)  # in place: the view shares the storage
    np.testing.assert_allclose(
        raison.explain(model, "The film is lovely.", target=0).scores.shape, first.shape
    )
    doubled = raison.explain(model, "The film is lovely.", target=0).scores
    hf.float()  # the weights move: the view is made anew
    moved = raison.explain(model, "The film is lovely.", target=0).scores
    np.testing.assert_allclose(moved, doubled, rtol=1e-3, atol=1e-5)


def test_user_hooks_are_not_lost():
    hf, tokenizer = tiny_hf("gpt2", "causal")
    hook = hf.transformer.h[0].register_forward_hook(lambda m, a, o: o)
    model = raison.load(hf, tokenizer)
    raison.explain(model, "The old town")
    assert len(hf.transformer.h[0]._forward_hooks) == 1
    hook.remove()


def test_deepcopied_tokenizer_is_ours():
    hf, tokenizer = tiny_hf("gpt2", "causal")
    twin = copy.deepcopy(tokenizer)
    model = raison.load(hf, tokenizer)
    tokenizer.backend_tokenizer.enable_truncation(2)
    assert len(model.encode([raison.Example("The old town lies on a hill")])[0]) == len(
        twin("The old town lies on a hill").input_ids
    )


def test_a_pair_is_cut_evenly():
    model = tiny_model("bert", "classification")
    whole = model.codec("word " * 60, "other " * 10)
    found = model.encode([raison.Example("word " * 60, "other " * 10)], truncate=True)[0]
    assert len(found) == 64 and found.truncated == len(whole.ids) - 64
    kept = [int(((found.segment == s) & ~found.fixed).sum()) for s in (0, 1)]
    before = [int(((whole.segment == s) & ~whole.special).sum()) for s in (0, 1)]
    assert kept[1] == min(before[1], 64 - 3 - kept[0]) and abs(kept[0] - kept[1]) <= max(
        1, kept[0] - before[1]
    )


def test_a_language_model_keeps_the_end():
    model = tiny_model("gpt2", "causal")
    found = model.encode([raison.Example("word " * 100 + "the last one")], truncate=True)[0]
    assert len(found) == 64 and found.texts[0][found.start[-3] :].endswith("one")


def test_a_target_outside_the_vocabulary_is_refused():
    model = tiny_model("gemma", "causal")  # its tokenizer knows neither emoji nor bytes
    with pytest.raises(raison.RaisonError, match="not in the vocabulary"):
        raison.rationalize(model, "The old town", target=" 😀")


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_offsets_of_a_written_emoji_stay_in_the_text(family):
    model = tiny_model(family, "causal")
    longer, _ = model.resolve_targets(
        model.encode([raison.Example("The old town")])[0], TargetSpec(target=" 😀 日本!")
    )[0]
    new = longer.segment == len(longer.segments) - 1
    text = longer.texts[-1]
    assert (longer.start[new] >= 0).all() and (longer.start[new] < longer.end[new]).all()
    assert longer.end[new].max() <= len(text) and (np.diff(longer.end[new]) >= 0).all()
