"""Mistakes in measuring that a hostile reading found once, each kept from coming back."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

import raison
from raison.core.errors import InputError, ModelError, Unsupported
from raison.core.evaluation import Cell, Column, EvaluatedText, Evaluation, target_probability
from raison.core.findings import PredictionSummary
from raison.core.records import Example, Span
from raison.metrics.randomisation import cascade
from raison.models.load import load
from raison.models.protocol import TargetSpec
from raison.models.runner.whole_texts import outcomes_of
from raison.show.html.evaluation import report
from raison.studies.audit.run import audit
from raison.studies.compare import compare
from raison.studies.evaluate import evaluate
from raison.studies.exchange import document_of, read_made, spans_of
from raison.studies.trust_verdict import judge
from raison.studies.what_if import outcome
from raison.testing import tiny_hf, tiny_model
from tests.test_attention_classifier import reviews

LONG = "The plot was okay I guess, and the rest went by as these things do on a quiet evening. Superb acting."


def counting(texts: list[str]) -> np.ndarray:
    """How often a text says superb and okay: a model whose right explanation is known."""
    return np.array([[3.0 * t.count("Superb") + 1.0 * t.count("okay"), 0.0] for t in texts])


def test_small_letters_find_the_nearest_word():
    """An uncased tokenizer's "the" is the sentence's first word, not the next one in small letters."""
    text = "The superb film was the best of the year"
    found = spans_of([w.lower() for w in text.split()], text)
    assert [text[a:b].lower() for a, b in found] == text.lower().split() and found[0] == (0, 3)


@pytest.mark.parametrize("units", ["word", "sentence"])
def test_what_is_exported_is_measured_again_with_the_same_numbers(units, tmp_path):
    """ERASER's white-space tokens alone would give a sentence the scores of all its words together."""
    data = [Example(LONG, id="a", gold=(Span(87, 93),)), Example("Okay, okay. Superb!", id="b", gold=(Span(0, 4),))]
    model = load(counting, labels=["much", "none"])
    metrics = ["loo_correlation", "comprehensiveness", "auprc"]
    first = evaluate(model, data, ["leave_one_out"], metrics, units=units, export=tmp_path / "x.jsonl")
    again = evaluate(model, data, metrics=metrics, units=units, explanations=tmp_path / "x.jsonl")
    for key in ("loo_correlation", "comprehensiveness", "auprc"):
        assert again.cell("leave_one_out", key).each == pytest.approx(first.cell("leave_one_out", key).each), key
    assert first.cell("leave_one_out", "loo_correlation").value == pytest.approx(1.0)


def test_a_single_rationale_of_a_pair_is_about_the_text_with_gold(tmp_path):
    """In CoS-E the document is the question, which is the first text; the choices are no document."""
    first = Example("Where is the pen kept ?", "A) desk B) sky", id="q1", label="A", gold=(Span(13, 16, "first"),))
    second = Example("Is it so ?", "the pen is here", id="q2", label="A", gold=(Span(4, 7, "second"),))
    assert (document_of(first), document_of(second), document_of(Example("a", "b"))) == (0, 1, 1)
    lines = [
        {"annotation_id": "q1", "rationales": [{"hard_rationale_predictions": [{"start_token": 3, "end_token": 4}]}]},
        {"annotation_id": "q2", "rationales": [{"hard_rationale_predictions": [{"start_token": 1, "end_token": 2}]}]},
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert [made.about for made in read_made(tmp_path / "x.jsonl", {"q1": first, "q2": second})] == [0, 1]
    found = evaluate(None, [first, second], metrics=["token_f1_macro"], explanations=tmp_path / "x.jsonl")
    assert found.cell("elsewhere", "token_f1_macro").each == (1.0, 1.0)  # and no model is needed for a pair


def test_the_probability_of_another_class_is_not_the_targets():
    other = PredictionSummary("good", is_target=False, probability=0.4)
    assert target_probability(other) is None
    assert target_probability(replace(other, is_target=True)) == 0.4
    assert target_probability(replace(other, target_probability=0.002)) == 0.002


def test_runs_tell_the_targets_probability(tmp_path):
    """With more classes than a record lists, a rare gold class has no probability of its own there."""
    from raison.runs.export import rows_of

    record = {
        "example": {"id": "1", "text": "x", "pair": None, "label": "c3"}, "method": "gae", "key": "k", "index": 0,
        "explanations": [
            {
                "target": {"text": "c3"}, "removal": None, "units": {"level": "word", "names": ["x"]}, "scores": [1.0],
                "selected": None, "order": None,
                "prediction": {"text": "c4", "probability": 0.36, "is_target": False},
            }
        ],
    }  # fmt: skip
    (row,) = rows_of(record)
    assert row["probability"] is None and row["predicted"] == "c4"


def test_shared_blocks_are_shuffled_behind_the_head():
    """ALBERT's blocks stand in a list of one: no number of the config is its length."""
    model = tiny_model("albert", "classification")
    plain = dict(model.hf.named_parameters())
    moved = [
        {
            name
            for name, value in other.hf.named_parameters()
            if not np.array_equal(value.detach(), plain[name].detach())
        }
        for other in cascade(model, 3, 0)
    ]
    assert moved[0] and all("classifier" in name for name in moved[0] if "pooler" not in name)
    assert any("albert_layers" in name for name in moved[-1]) and moved[0] < moved[-1]


def test_gold_that_was_cut_off_shortens_nobodys_rationale():
    model = tiny_model("bert", "classification")
    there = Example("good bad good bad", id="a", label="negative", gold=(Span(0, 4), Span(9, 13)))
    gone = Example("word " * 400 + "good", id="b", label="negative", gold=(Span(2000, 2004),))
    alone = evaluate(model, [there], ["leave_one_out"], ["token_f1_macro"])
    beside = evaluate(model, [there, gone], ["leave_one_out"], ["token_f1_macro"])
    assert beside.cell("leave_one_out", "token_f1_macro").each == (
        alone.cell("leave_one_out", "token_f1_macro").each[0],
        None,
    )


def test_a_number_is_no_decision():
    one = load(lambda texts: np.array([float(len(t)) for t in texts]))
    for name in ("decision_flip", "decision_flip_first"):
        with pytest.raises(Unsupported, match="waits for another decision"):
            evaluate(one, ["a good film", "bad"], ["leave_one_out"], [name])
    flips = evaluate(load(counting), [LONG], ["leave_one_out"], ["decision_flip_first"])
    assert flips.cell("leave_one_out", "decision_flip_first").value is not None


def test_a_value_is_not_called_a_probability():
    found = raison.explain(load(counting), LONG, "leave_one_out")
    part = {"this": 1.0, "random": 2.0, "leave_one_out": 5.0, "chance": 0.5}
    numbers = dict.fromkeys(("order", "deletion", "insertion", "sufficiency", "comprehensiveness"), part)
    told = " ".join(judge(found, numbers, None)[1])
    assert "the value falls by" in told and "probability" not in told


def test_a_label_among_several_is_yes_or_no():
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.config.problem_type = "multi_label_classification"
    model = raison.load(hf, tokenizer)
    target = model.definition.target_of(1)
    assert outcome(model, target, np.array([0])) == f"not {target.text}"
    assert outcome(model, target, np.array([1])) == target.text


def table(level: float) -> Evaluation:
    rng = np.random.default_rng(0)
    made = {"a": rng.normal(0.1, 1, 60), "b": rng.normal(0.0, 1, 60)}
    cells = tuple(Cell(m, "aopc", float(v.mean()), None, None, tuple(v.tolist())) for m, v in made.items())
    texts = tuple(EvaluatedText(str(k), str(k)) for k in range(60))
    return Evaluation(
        "m", "d", ("a", "b"), (Column("aopc", "aopc", True),), cells, texts, settings={"level": level, "seed": 0}
    )


def test_a_difference_has_the_interval_that_was_asked_for():
    wide, narrow = (compare(table(level), "a", "b")[0] for level in (0.95, 0.5))
    assert wide.low < narrow.low < narrow.difference < narrow.high < wide.high


def test_an_audit_trains_adversaries_on_the_texts_that_it_is_given(tmp_path):
    from raison.attention_models.train import train_classifier

    train_classifier(reviews(120), out=tmp_path / "m", design={"width": 16}, lesson={"epochs": 1, "batch": 16})
    settings = {"adversaries": ["frozen"], "epochs": 1, "deep": 4, "show": 0, "permutations": 1}
    test = reviews(30, seed=5)
    one, other = reviews(48, seed=1), reviews(48, seed=2)
    audit(tmp_path / "m", test, train=one, keep=tmp_path / "kept", **settings)
    with pytest.raises(InputError, match="keeps an audit with another settings"):
        audit(tmp_path / "m", test, train=other, keep=tmp_path / "kept", **settings)


def test_a_decoder_with_a_classifying_head_can_be_audited():
    hf, tokenizer = tiny_hf("gpt2", "classification")
    model = raison.load(hf, tokenizer)
    data = [Example(e.text, label=model.labels[k % len(model.labels)]) for k, e in enumerate(reviews(12))]
    assert audit(model, data, deep=3, show=0, permutations=1).count == 12


def test_the_curve_of_randomised_blocks_is_named():
    model = tiny_model("bert", "classification")
    found = evaluate(model, ["a good film"], ["gradient_norm"], ["randomisation", "aopc"])
    told = report(found)
    assert "randomisation by share of randomised blocks" in told and "aopc by share of units" in told


WRITTEN = ("cam", "gradcam", "attcat", "value_weighted_attention", "alti", "value_zeroing")


@pytest.mark.parametrize("method", WRITTEN)
@pytest.mark.parametrize("family, task", [("llama", "causal"), ("gpt2", "causal"), ("t5", "seq2seq")])
def test_maps_of_a_written_token_end_before_it(family, task, method):
    """Targets of one text share a pass, as long as the last of them needs: no mean may run over the rows behind."""
    model = tiny_model(family, task)
    text = "The old town lies on a hill above the river"
    every = raison.explain(model, text, method, target="all", units="token")
    assert len(every) > 5  # so that some stand behind those that are looked at
    for number in (2, 4):
        one = every[number]
        place = one.target.positions[0] if task == "causal" else number  # of what an encoder-decoder writes
        other = raison.explain(model, text, method, target=place, units="token")
        assert (one.target.ids, one.target.positions) == (other.target.ids, other.target.positions)
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4, atol=1e-7)


def test_learned_prompts_are_refused():
    """They live in peft's wrapper: the bare model would be explained in their place."""
    peft = pytest.importorskip("peft")
    hf, tokenizer = tiny_hf("gpt2", "causal")
    options = {"task_type": "CAUSAL_LM", "num_virtual_tokens": 3}
    for config in (peft.PromptTuningConfig(**options), peft.PrefixTuningConfig(**options)):
        with pytest.raises(Unsupported, match="learned tokens in front of a text"):
            raison.load(peft.get_peft_model(copy.deepcopy(hf).float(), config), tokenizer)


def test_a_compiled_model_is_the_model_inside():
    import torch

    hf, tokenizer = tiny_hf("bert", "classification")
    assert raison.load(torch.compile(hf), tokenizer).hf is hf


def test_a_contrast_far_behind_the_target_of_a_function():
    def score(texts):
        return [[1.0 * ("good" in t), 0.2, 0.1, 0.05] for t in texts]

    for search in ("greedy", "refined", "exact"):
        found = raison.rationalize(load(score), "this is a very good film", search, target=0, contrast=3)
        assert found.certificate is not None


def test_no_rationale_found_is_not_no_rationale():
    """Where the whole text is not enough, a part may still be: greedy can't know."""

    def score(texts):
        words = [set(t.split()) for t in texts]
        return [[1.0 if w == {"x", "y"} else -5.0 if w and w < {"x", "y"} else -1.0, 0.0] for w in words]

    found = raison.rationalize(load(score), "x y p q r", "greedy", target=0, sufficient="argmax")
    from raison.show.certificate import warnings

    assert "this search found no part that is" in warnings(found)[0]
    assert raison.rationalize(load(score), "x y p q r", "exact", target=0, sufficient="argmax").selected.sum() == 2


def test_texts_with_brackets_are_printed_as_they_are(tmp_path):
    from typer.testing import CliRunner

    from raison.cli.app import app, assemble

    data = tmp_path / "c.jsonl"
    data.write_text('{"text": "a film [/b] see [red]this[/red]"}\n{"text": "plain"}\n')
    run = CliRunner()
    assemble()
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    made = run.invoke(
        app, ["run", "-m", str(tmp_path / "m"), "-d", str(data), "-M", "random", "--out", str(tmp_path / "r")]
    )
    assert made.exit_code == 0, made.output
    told = run.invoke(app, ["store", "query", str(tmp_path / "r"), "select text from explanations order by text"])
    assert told.exit_code == 0 and "[/b] see [red]this[/red]" in told.output
    struct = run.invoke(
        app, ["store", "query", str(tmp_path / "r"), "select {'a': 'nan'::double} as s limit 1", "--json"]
    )
    assert struct.exit_code == 0 and json.loads(struct.output) == [{"s": {"a": None}}]


def test_soft_metrics_of_a_first_written_token():
    from raison.metrics.base import Subject
    from raison.metrics.soft import token_weights

    model = tiny_model("gpt2", "causal")
    first = raison.explain(model, "The old town", "leave_one_out", target="all", units="token")[0]
    assert not len(first.units)
    assert (token_weights(Subject(first, model)) == 1).all()


def test_a_contrast_behind_punctuation_keeps_its_space():
    model = tiny_model("gpt2", "causal")
    text = "The film is a lovely surprise, and nobody"
    (encoding,) = model.encode([Example(text)])
    place = next(k for k, (a, b) in enumerate(zip(encoding.start, encoding.end, strict=True)) if text[a:b] == " and")
    found = raison.explain(model, text, "gradient_norm", target=place, contrast="the")
    assert model.codec.text(found.target.contrast) == " the"


def test_heads_that_stay_on_are_not_called_off():
    """deeplift and value zeroing run passes of their own, and some families attend where nobody reaches."""
    from raison.studies.what_if import muted

    model = tiny_model("bert", "classification")
    found = raison.explain(model, "a good film", "gradient_norm")
    every = [(layer, head) for layer in range(2) for head in range(2)]
    off = muted(model, raison.core.registry.methods.build("gradient_norm"), found, every)
    assert off.diagnostics["value_without_heads"] != off.diagnostics["value_before"]
    for name in ("deeplift", "value_zeroing"):
        with pytest.raises(Unsupported, match="without some heads"):
            muted(model, raison.core.registry.methods.build(name), found, every)
    other = tiny_model("deberta", "classification")
    assert other.bypasses_tap
    with pytest.raises(Unsupported, match="not switched off"):
        muted(other, raison.core.registry.methods.build("gradient_norm"), raison.explain(other, "a good film"), every)


def test_a_forced_first_token_stands_before_the_target():
    """BART's settings force `<s>`, mBART's and NLLB's a language: the model decides what comes behind it."""
    import torch

    hf, tokenizer = tiny_hf("bart", "seq2seq")
    plain = load(hf, tokenizer)
    forced = copy.deepcopy(hf)
    forced.generation_config.forced_bos_token_id = 7
    model = load(forced, tokenizer)
    (encoding,) = model.encode([Example("The film is lovely")])
    start = plain.encode([Example("The film is lovely")])[0].ids[-1]
    assert encoding.ids[-2:].tolist() == [start, 7]
    (found,) = model.resolve_targets(encoding, TargetSpec(target=" good film"))
    source = torch.tensor([encoding.ids[:-2].tolist()])
    rest = torch.tensor([[int(start), 7, *found[1].ids]])
    with torch.no_grad():
        logits = forced(input_ids=source, decoder_input_ids=rest[:, :-1]).logits.log_softmax(-1)[0, 1:]
    expected = [float(logits[k, i]) for k, i in enumerate(found[1].ids)]
    (told,) = outcomes_of(model.runner, [found[0]], [found[1]])
    own = told.log_softmax(-1)
    np.testing.assert_allclose([float(own[k, i]) for k, i in enumerate(found[1].ids)], expected, atol=1e-5)
    with torch.no_grad():
        whole = forced.generate(input_ids=source, max_new_tokens=6, num_beams=1, do_sample=False)[0].tolist()
    assert whole[:2] == [start, 7]
    assert model.write(encoding, 5) == [i for i in whole[2:] if i != forced.generation_config.eos_token_id]


def test_a_view_that_answers_differently_from_the_users_model_is_refused():
    """Falcon's eager attention adds its ALiBi twice, the fused one that users run adds it once."""
    import torch
    from transformers import FalconConfig, FalconForCausalLM

    _, tokenizer = tiny_hf("gpt2", "causal")
    for alibi in (False, True):
        torch.manual_seed(0)
        config = FalconConfig(
            vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, alibi=alibi,
            bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        hf = FalconForCausalLM(config).double().eval()
        for weight in hf.parameters():
            if weight.dim() > 1:
                torch.nn.init.normal_(weight, std=0.4)
        if alibi:
            with pytest.raises(ModelError, match="does not give the model's own answers"):
                load(hf, tokenizer)
        else:
            assert load(hf, tokenizer).removals


def small(kind, tokenizer, **settings):
    """A model of a family that has no place of its own among the tests."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        pad_token_id=0, **settings,
    )  # fmt: skip
    task = "ForCausalLM" if "eos_token_id" in settings else "ForSequenceClassification"
    return getattr(transformers, kind + task)(config).double().eval()


def test_a_branch_that_is_scaled_by_a_number_is_followed():
    """Granite multiplies what attention adds by a setting."""
    _, tokenizer = tiny_hf("gpt2", "causal")
    hf = small("Granite", tokenizer, residual_multiplier=0.3, bos_token_id=0, eos_token_id=0)
    model = load(hf, tokenizer)
    encoding, target = model.resolve_targets(model.encode([Example("The old town lies on a hill")])[0])[0]
    ((_, trace),) = model.trace([encoding], [target], want=frozenset({"writes", "readout"}))
    assert len(trace.writes) == 2
    for write in trace.writes:
        assert (write.output - write.own() - write.parts().sum(1)).abs().max() < 1e-12
    assert raison.explain(model, "The old town lies on a hill", "alti").scores.any()


def test_values_that_heads_share_are_zeroed():
    """Falcon's heads read the values of one."""
    _, tokenizer = tiny_hf("gpt2", "causal")
    hf = small("Falcon", tokenizer, alibi=False, multi_query=True, bos_token_id=0, eos_token_id=0)
    model = load(hf, tokenizer)
    text = "The old town lies on a hill"
    found = raison.explain(model, text, "value_zeroing", units="token")
    assert np.isfinite(found.scores).all() and found.scores.any()
    with pytest.raises(Unsupported, match="can't be followed: choose a method"):
        raison.explain(model, text, "alti")


def test_heads_that_meet_in_no_projection_are_told():
    """ConvBERT joins its heads with a convolution."""
    _, tokenizer = tiny_hf("bert", "classification")
    model = load(small("ConvBert", tokenizer, embedding_size=16, head_ratio=1), tokenizer)
    for name in ("alti", "value_weighted_attention"):
        with pytest.raises(Unsupported, match="can't be followed: choose a method"):
            raison.explain(model, "a good film", name)
