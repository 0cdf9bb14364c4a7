"""Mistakes that a hostile reading found once, each kept from coming back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import raison
from raison.core.artifact import Artifact
from raison.core.errors import InputError, MethodFailed, ModelError
from raison.core.registry import methods
from raison.methods.base import Answer, Method
from raison.models.load import load
from raison.models.protocol import Question, TargetSpec
from raison.models.runner.batching import pieces_of_whole_texts
from raison.models.runner.whole_texts import outcomes_of
from raison.show.certificate import verdict
from raison.show.wording import headline, provenance
from raison.testing import tiny_hf, tiny_model
from raison.testing.checks import with_padding

TEXT = "The old town lies on a hill"


def test_a_view_follows_adapters_settings_and_weights():
    """The weights of a peft model do not move when another adapter is chosen; its settings change."""
    peft = pytest.importorskip("peft")
    hf, tokenizer = tiny_hf("gpt2", "causal")
    options = dict(r=2, target_modules=["c_attn"], init_lora_weights=False, fan_in_fan_out=True)
    torch.manual_seed(0)
    adapted = peft.get_peft_model(hf, peft.LoraConfig(**options)).double().eval()
    adapted.add_adapter("b", peft.LoraConfig(**options))
    adapted.double()
    model = raison.load(adapted, tokenizer)
    first = raison.explain(model, TEXT, target=-1).scores
    adapted.set_adapter("b")
    second = raison.explain(model, TEXT, target=-1).scores
    np.testing.assert_allclose(second, raison.explain(raison.load(adapted, tokenizer), TEXT, target=-1).scores)
    assert np.abs(first - second).max() > 1e-6
    with adapted.disable_adapter():
        plain = raison.explain(model, TEXT, target=-1).scores
    assert np.abs(second - plain).max() > 1e-6


def test_weights_changed_in_place_count_at_once():
    hf, tokenizer = tiny_hf("bert", "classification")
    model = raison.load(hf, tokenizer)
    before = raison.explain(model, TEXT, target=0).scores
    with torch.no_grad():
        hf.classifier.weight.mul_(2.0)
    np.testing.assert_allclose(raison.explain(model, TEXT, target=0).scores, 2 * before, rtol=1e-6)


def test_probabilities_of_several_tokens_are_not_added():
    model = tiny_model("gpt2", "causal")
    with pytest.raises(InputError, match="log_prob"):
        raison.explain(model, TEXT, target=" and a river", output="prob")
    with pytest.raises(InputError, match="log_prob"):
        raison.explain(tiny_model("bert", "qa"), ("Where?", TEXT), output="prob")


def test_a_contrast_is_read_from_the_same_words():
    model = tiny_model("gpt2", "causal")
    with pytest.raises(InputError, match=r"length|part before"):
        raison.explain(model, TEXT, target=[7, 8], contrast=[9, 10])
    found = raison.explain(model, TEXT, target=[7, 8], contrast=[7, 10])
    assert found.target.contrast == (7, 10)
    encoding, target = found.encoding, found.target
    (scored,) = model.score([Question(encoding, target, np.ones((1, len(encoding)), bool))])
    one, other = (
        model.score([Question(e, t, np.ones((1, len(e)), bool))])[0].value.sum()
        for e, t in (
            model.resolve_targets(model.encode([raison.Example(TEXT)])[0], TargetSpec(target=ids))[0]
            for ids in ([7, 8], [7, 10])
        )
    )
    assert abs(scored.value.sum() - (one - other)) < 1e-6


def test_the_headline_shows_the_targets_own_probability():
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.config.id2label = {0: "same", 1: "same", 2: "other"}
    model = raison.load(hf, tokenizer)
    shares = dict(enumerate(outcomes_of(model.runner, model.encode([raison.Example(TEXT)]))[0][0].softmax(-1).tolist()))
    for label in (0, 1, 2):
        found = raison.explain(model, TEXT, target=label)
        assert f"{100 * shares[label]:.1f} %" in headline(found)[0]
    with pytest.raises(InputError, match="several classes"):
        raison.explain(model, TEXT, target="same")


def test_numbers_that_are_no_probabilities_are_not_per_cent():
    single, tokenizer = tiny_hf("bert", "classification", labels=1)
    regression = raison.load(single, tokenizer)
    for found in (raison.explain(regression, TEXT), raison.explain(raison.load(lambda ts: [0.3] * len(ts)), TEXT)):
        assert "%" not in headline(found)[0]
    with pytest.raises(InputError, match="regression"):
        raison.explain(regression, TEXT, output="prob")


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("The old town", "lies", " lies"),
        ("The old town", " lies", " lies"),
        ("The old town", ".", "."),
        ("(", "it", "it"),
        ("日本の首都は", "東", "東"),
        ("The old town ", "lies", "lies"),
    ],
)
def test_a_continuation_gets_a_space_only_between_words(text, target, expected):
    model = tiny_model("gpt2", "causal")
    longer, goal = model.resolve_targets(model.encode([raison.Example(text)])[0], TargetSpec(target=target))[0]
    assert model.codec.text(goal.ids) == expected
    assert model.codec.text(longer.ids) == text + expected


def test_a_continuation_after_a_space_has_one_space():
    model = tiny_model("llama", "causal")
    longer, _ = model.resolve_targets(model.encode([raison.Example("The old ")])[0], TargetSpec(target="town"))[0]
    assert "  " not in model.codec.text(longer.ids[1:])


def test_a_decoder_with_its_own_vocabulary_is_seen():
    from transformers import MarianMTModel

    hf, tokenizer = tiny_hf("marian", "seq2seq")
    config = hf.config
    config.share_encoder_decoder_embeddings = False
    config.tie_word_embeddings = False
    torch.manual_seed(0)
    own = MarianMTModel(config).double().eval()
    with torch.no_grad():
        for weight in own.parameters():
            weight.copy_(torch.randn_like(weight) * 0.3)
    own.generation_config.max_new_tokens = 5
    model = raison.load(own, tokenizer)
    last = raison.explain(model, TEXT, "gradient_norm", target="all", units="token")[-1]
    written = last.units.of[last.encoding.segment > 0]
    assert (last.scores[written[written >= 0]] > 0).all()
    zero = raison.explain(model, TEXT, "leave_one_out", target="all", units="token", removal="zero")[-1]
    assert np.abs(zero.scores[written[written >= 0]]).min() > 0


def test_a_decoder_classifier_keeps_the_row_it_reads():
    model = tiny_model("gpt2", "classification")
    encoding = model.encode([raison.Example("A dull story [PAD]")])[0]
    last = np.flatnonzero(encoding.ids != model.hf.config.pad_token_id)[-1]
    assert last < len(encoding) - 1 and encoding.fixed[last] and not encoding.fixed[-1]
    found = raison.explain(model, "A dull story [PAD]", units="token")
    (deleted, masked) = (
        model.score([Question(encoding, found.target, np.arange(len(encoding))[None] != 0)], removal=r)[0].value
        for r in ("delete", "mask")
    )
    np.testing.assert_allclose(deleted, masked, atol=1e-9)


def test_padding_needs_a_padding_id():
    hf, tokenizer = tiny_hf("gpt2", "classification")
    hf.config.pad_token_id = None
    model = raison.load(hf, tokenizer)
    assert model.runner.task.paddings == ("exact",)
    with pytest.raises(raison.RaisonError, match="padding"):
        raison.explain(with_padding(model, "right"), TEXT)


def test_labels_that_differ_in_case():
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.config.id2label = {0: "A", 1: "a", 2: "b"}
    model = raison.load(hf, tokenizer)
    assert [raison.explain(model, TEXT, target=t).target.ids[0] for t in ("A", "a", "B")] == [0, 1, 2]


def test_a_tag_is_not_contrasted_with_itself():
    model = tiny_model("bert", "tagging")
    found = raison.explain(model, TEXT, target="all")[0]
    with pytest.raises(InputError, match="two tags"):
        raison.explain(model, TEXT, target=found.target.positions[0], contrast=model.labels[found.target.ids[0]])


def test_truncation_leaves_room_for_a_continuation():
    model = tiny_model("gpt2", "causal")
    found = raison.explain(model, "good " * 100, target=" dull story", truncate=True)
    assert len(found.encoding) == model.max_tokens and found.encoding.truncated > 0
    assert found.target.text == " dull story"


def test_source_and_target_have_limits_of_their_own():
    model = tiny_model("marian", "seq2seq")
    text = "good " * 24
    size = int((model.encode([raison.Example(text)])[0].segment == 0).sum())
    assert size + 45 > model.max_tokens > max(size, 46)
    found = raison.explain(model, text, target=[7] * 45, method="gradient_norm")
    assert len(found.target.ids) == 45


def test_targets_with_and_without_a_contrast_in_one_call():
    model = tiny_model("bert", "classification")
    encoding = model.encode([raison.Example(TEXT)])[0]
    keep = np.ones((1, len(encoding)), bool)
    plain, against = (model.resolve_targets(encoding, TargetSpec(target=1, contrast=c))[0][1] for c in (None, 2))
    together = model.score([Question(encoding, plain, keep), Question(encoding, against, keep)])
    alone = [model.score([Question(encoding, t, keep)])[0] for t in (plain, against)]
    for a, b in zip(together, alone, strict=True):
        assert a.value.tolist() == b.value.tolist() and a.margin.tolist() == b.margin.tolist()


def test_a_text_with_nothing_to_explain_is_refused_in_a_list_too():
    model = tiny_model("gpt2", "causal")
    for text in ("A", ["A", TEXT]):
        with pytest.raises(InputError, match="nothing to explain"):
            raison.explain(model, text)


def test_equal_results_are_equal_whatever_they_cost():
    model = tiny_model("bert", "classification")
    one, other = (raison.explain(model, TEXT) for _ in range(2))
    assert one == other and hash(one) == hash(other) and one.cost["cpu_seconds"] >= 0
    assert raison.Explanation.from_json(one.to_json()).cost == one.cost


def test_one_or_many():
    model = tiny_model("bert", "classification")
    assert isinstance(raison.explain(model, TEXT), raison.Explanation)
    assert isinstance(raison.explain(model, [TEXT]), list)
    assert isinstance(raison.explain(model, iter([TEXT])), list)
    assert isinstance(raison.explain(model, raison.Example(TEXT, target="all")), list)
    assert isinstance(raison.explain(tiny_model("bert", "tagging"), TEXT), list)


@pytest.mark.parametrize(
    "wrong",
    [{"method": 5}, {"method": ["random"]}, {"removal": 5}, {"seed": -1}, {"units": 7}, {"output": 3}],
)
def test_wrong_kinds_of_options(wrong):
    with pytest.raises(raison.RaisonError):
        raison.explain(tiny_model("bert", "classification"), TEXT, **wrong)


@pytest.mark.parametrize("text", [None, 3, b"bytes", ("a", "b", "c"), [], {"premise": "a"}, [None]])
def test_wrong_kinds_of_text(text):
    with pytest.raises(InputError):
        raison.explain(tiny_model("bert", "classification"), text)


def test_functions_that_raise_are_named():
    def broken(texts):
        raise KeyError("no such thing")

    with pytest.raises(ModelError, match="broken"):
        raison.explain(raison.load(broken), TEXT)


def test_devices_and_dtypes_are_not_ignored(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    with pytest.raises(InputError, match="in memory"):
        raison.load(hf, tokenizer, dtype="float64")
    hf.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="nonsense"):
        raison.load(str(tmp_path), device="nonsense")


def test_models_that_count_positions_their_own_way_have_a_limit():
    from transformers import AutoModelForSequenceClassification, MPNetConfig

    _, tokenizer = tiny_hf("bert", "classification")
    config = MPNetConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=66, pad_token_id=0,
    )  # fmt: skip
    model = raison.load(AutoModelForSequenceClassification.from_config(config).double(), tokenizer)
    assert np.isfinite(raison.explain(model, "good " * 90, "gradient_norm", truncate=True).scores).all()


def test_tiny_models_are_the_same_in_every_process():
    import subprocess
    import sys

    code = (
        "from raison.testing import tiny_hf; "
        "print([(k, tiny_hf(k, 'classification')[1]('The old town').input_ids) for k in ('bert', 'albert', 'llama')])"
    )
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)}
    assert len(runs) == 1 and "albert" in runs.pop()


def test_examples_may_change_their_budget():
    model = tiny_model("bert", "classification")
    small = with_padding(model, "exact")
    small.budget = replace(model.budget, tokens=16)
    np.testing.assert_allclose(raison.explain(small, TEXT).scores, raison.explain(model, TEXT).scores, atol=1e-9)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", ["gae", "gradient_norm", "attention_last", "lrp", "deeplift", "value_zeroing", "lime"])
def test_gradients_do_not_depend_on_the_mode_of_the_caller(mode, name):
    hf, tokenizer = tiny_hf("bert", "classification")
    with mode():
        inside = raison.explain(raison.load(hf, tokenizer), "The film is lovely", name)
    outside = raison.explain(raison.load(hf, tokenizer), "The film is lovely", name)
    np.testing.assert_allclose(inside.scores, outside.scores, rtol=1e-9, atol=1e-12)


def test_attcat_of_an_encoder_that_is_deeper_than_its_decoder():
    from transformers import BartConfig, BartForConditionalGeneration

    _, tokenizer = tiny_hf("bart", "seq2seq")
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=4, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id, forced_eos_token_id=None,
    )  # fmt: skip
    model = load(BartForConditionalGeneration(config).eval(), tokenizer)
    encoding, target = model.resolve_targets(
        model.encode([raison.Example("The film is lovely")])[0], TargetSpec(target=" good")
    )[0]
    ((_, trace),) = model.trace([encoding], [target], want=frozenset({"hidden"}))
    assert len(trace.hidden) == 5
    source = encoding.segment == encoding.segments.index("source")
    (prepared,) = model.runner.prepare(pieces_of_whole_texts([encoding], [target]))
    inputs = prepared.inputs
    with torch.no_grad():
        states = model.hf.get_encoder()(inputs["input_ids"], inputs["attention_mask"]).last_hidden_state[0]
    np.testing.assert_allclose(trace.hidden[-1][source], states, atol=1e-5)
    assert np.isfinite(raison.explain(model, "The film is lovely", "attcat", target=" good").scores).all()


def test_weights_that_are_not_numbers_give_no_explanation_of_zeros():
    hf, tokenizer = tiny_hf("bert", "classification")
    model = load(hf, tokenizer)
    with torch.no_grad():
        hf.classifier.weight[0, 0] = float("nan")
    for name in ("gradient_norm", "cam", "gradcam", "input_x_gradient"):
        with pytest.raises(InputError, match="not finite"):
            raison.explain(model, "The film is lovely", name, target=0)


def test_heads_that_are_not_chosen_make_a_difference_where_all_rows_are_read(sentiment):
    text = "i hated every minute of this pointless mess of a movie ."
    some = raison.explain(sentiment, text, "masked_lrp")
    none = raison.explain(sentiment, text, "masked_lrp(top=0, syntactic=1, positional=1)")
    every = raison.explain(sentiment, text, "transformer_attribution")
    assert not none.scores.any()  # without attention no token says anything about another
    assert some.scores.any()
    assert abs(some.scores - every.scores).max() > 0.01 * every.scores.max()


def test_a_hook_that_is_added_later_is_seen():
    hf, tokenizer = tiny_hf("bert", "classification")
    model = load(hf, tokenizer)
    before = raison.explain(model, "The film is lovely", "gradient_norm").scores
    handle = hf.bert.encoder.layer[0].register_forward_hook(
        lambda module, args, out: out / 2 if isinstance(out, torch.Tensor) else (out[0] / 2, *out[1:])
    )
    after = raison.explain(model, "The film is lovely", "gradient_norm").scores
    fresh = raison.explain(load(hf, tokenizer), "The film is lovely", "gradient_norm").scores
    handle.remove()
    assert abs(after - before).max() > 1e-6
    np.testing.assert_array_equal(after, fresh)


def test_a_window_longer_than_the_text_is_the_text():
    model = tiny_model("bert", "classification")
    wide = raison.explain(model, "The film is lovely", "occlusion(window=1000000000)")
    whole = raison.explain(model, "The film is lovely", "occlusion(window=4)")
    np.testing.assert_array_equal(wide.scores, whole.scores)


@pytest.mark.parametrize("spec", ["masked_lrp(heads=5)", "masked_lrp(heads='')", "masked_lrp(random='no')"])
def test_parameters_of_masked_lrp_are_checked(spec):
    with pytest.raises(InputError):
        methods.build(spec)


def test_a_broken_artifact_is_named(tmp_path):
    path = tmp_path / "heads.json"
    for text in ("", "{", "[" * 100_000):
        path.write_text(text)
        with pytest.raises(InputError, match="heads.json.*raison heads"):
            Artifact.open(path, "heads")
    with pytest.raises(InputError):
        Artifact.open("\x00", "heads")


@dataclass(frozen=True)
class Letters(Method):
    """Somebody's own method: so many letters has a word."""

    name = "letters"
    axis = "unit"
    wrong: str = ""

    def __call__(self, model, batch):
        if self.wrong == "raises":
            return [batch.units[0].nonsense]
        extra = ["more"] if self.wrong == "longer" else []
        return [Answer(np.array([float(len(name)) for name in [*units.names, *extra]])) for units in batch.units]


def test_mistakes_of_a_method_from_elsewhere_are_told_as_its_own():
    model = tiny_model("bert", "classification")
    assert raison.explain(model, "a lovely film", Letters()).scores.tolist() == [1, 6, 4]
    sentence = r"'letters' failed in line \d+ of test_findings.py \(AttributeError: .*mend it"
    with pytest.raises(MethodFailed, match=sentence):
        raison.explain(model, "a lovely film", Letters("raises"))
    with pytest.raises(InputError, match="4 scores of letters.* do not fit 3 units"):
        raison.explain(model, "a lovely film", Letters("longer"))


def test_a_model_that_is_nearly_known_is_suggested(monkeypatch):
    from raison.models import hub

    monkeypatch.setattr(hub, "reachable", lambda: False)
    with pytest.raises(ModelError, match="no model 'sentimnt' here .* Did you mean 'sentiment'?"):
        raison.load("sentimnt")


def test_against_a_contrast_numbers_are_differences():
    model = tiny_model("bert", "classification")
    found = raison.rationalize(model, "a lovely film", target=0, contrast=1)
    assert "value: log odds" in provenance(found)
    found = raison.explain(model, "a lovely film", target=0, contrast=1)
    assert "value: logit difference" in provenance(found)


def test_a_rationale_of_nothing_is_followed_by_advice_that_helps(sentiment):
    found = raison.rationalize(sentiment, "The pacing is dull, but the ending is wonderful.")
    assert not found.selected.any()
    (note,) = found.notes
    assert note.endswith("It is as sure of it without the text: scores (raison explain) tell what each part adds.")
    found = raison.rationalize(sentiment, "A wonderful, warm and funny film.")
    assert not found.selected.any() and found.notes[0].endswith("ask for probability(tau=0.9).")
    found = raison.rationalize(sentiment, "A wonderful, warm and funny film.", sufficient="probability(tau=0.9)")
    assert found.selected.any()
    whole = found.certificate.full_probability
    assert f"enough from {90 * whole:.1f} % on" in verdict(found)


@pytest.mark.parametrize("context", ["\x00", "\u200b"])
def test_a_context_without_a_word_that_is_read_is_refused(context):
    with pytest.raises(InputError, match="context"):
        raison.explain(tiny_model("bert", "qa"), ("who wrote it", context))
