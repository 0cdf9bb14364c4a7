"""Relevance propagation against literal code, and what it conserves."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import raison
from raison.methods.attn_lrp import ATTN_LRP
from raison.methods.cp_lrp import CP_LRP
from raison.methods.lrp import ALPHA_BETA
from raison.models.load import load
from raison.models.relevance.mode import Heads
from raison.testing import tiny_hf, tiny_model
from raison.testing.model_contract import TEXTS, model_with_padding
from raison.testing.precision import Float64
from tests.helpers.compared_scores import PAIRS, TEXT, asked, near, scores
from tests.oracles import attributions as literal


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


@pytest.mark.parametrize("name", ["lrp", "partial_lrp"])
def test_relevance(model, name):
    ids, goal, types, _ = asked(model)
    near(scores(model, name)[0], getattr(literal, name)(model.hf, ids, goal, **types))


@pytest.mark.parametrize(("name", "theirs"), [("attn_lrp", "attnlrp"), ("cp_lrp", "cp_lrp")])
def test_gradient_rules(model, name, theirs):
    ids, goal, types, _ = asked(model)
    near(scores(model, name)[0], getattr(literal, theirs)(model.hf, ids, goal, **types))


def test_cp_lrp_with_identities(model):
    ids, goal, types, _ = asked(model)
    near(
        scores(model, 'cp_lrp(activations="identity")')[0],
        literal.cp_lrp(model.hf, ids, goal, activation="identity", **types),
    )


def cuts_of(model, rules, texts=(TEXT,)):
    encodings = model.encode(
        [raison.Example(text) if isinstance(text, str) else raison.Example(*text) for text in texts]
    )
    aims = [model.resolve_targets(encoding)[0] for encoding in encodings]
    want = frozenset({"relevance", "attention", "cuts"})
    found = dict(model.trace([e for e, _ in aims], [t for _, t in aims], want=want, rules=rules))
    return [found[index] for index in range(len(aims))]


@pytest.mark.parametrize("masked", [False, True], ids=["all heads", "masked"])
@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_relevance_is_conserved_at_every_cut(family, task, masked):
    """1 ± 1e-9 between all blocks, per example, on every family, also through one head of each block."""
    model = tiny_model(family, task)
    texts = [("What is dull?", text) for text in TEXTS] if task == "qa" else TEXTS
    chosen = None
    if masked:
        maps = len(cuts_of(model, ALPHA_BETA, texts[:1])[0].maps)
        syntactic = np.eye(2, dtype=bool)[np.arange(maps) % 2]
        positional = np.zeros((maps, 2), bool)
        positional[-1] = True
        chosen = Heads(syntactic, positional)
    traces = cuts_of(model, ALPHA_BETA.through(chosen), texts)
    for trace in traces:
        assert not trace.strange
        np.testing.assert_allclose([*trace.cuts, float(trace.relevance.sum())], 1.0, atol=1e-9)
        assert len(trace.cuts) >= 3
        if masked:
            for number, each in enumerate(trace.maps[:-1]):
                assert not each.relevance[
                    1 - number % 2
                ].any()  # nothing is saved for a head that is left out
    for trace, text in zip(traces, texts, strict=True):
        (single,) = cuts_of(model, ALPHA_BETA.through(chosen), [text])
        gap = float((trace.relevance - single.relevance).abs().max())
        assert gap <= 1e-9 * max(1.0, float(single.relevance.abs().max()))


@pytest.mark.parametrize(
    "rules", [ATTN_LRP, CP_LRP["identity", "half"]], ids=["attn_lrp", "cp_lrp"]
)
@pytest.mark.parametrize("family", ["llama", "mistral", "qwen", "gemma"])
def test_gradient_rules_conserve_where_there_are_no_biases(family, rules):
    """CP-LRP with identities gives the logit exactly; AttnLRP loses what the softmax's first-order step leaves out."""
    model = tiny_model(family, "classification")
    (trace,) = cuts_of(model, rules)
    if rules is not ATTN_LRP:
        assert abs(float(trace.relevance.sum()) - trace.value) < 1e-9
    np.testing.assert_allclose(trace.cuts[0], trace.value, atol=1e-9)


@pytest.mark.parametrize("gates", ["constant", "half"])
@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_words_and_constants_share_the_whole_logit_under_rules_that_conserve(family, task, gates):
    text = ("What is dull?", TEXT) if task == "qa" else TEXT
    name = f'cp_lrp(activations="identity", gates="{gates}")'
    found = raison.explain(tiny_model(family, task), text, name)
    found = found[0] if isinstance(found, list) else found
    told = found.diagnostics
    assert found.notes == ()
    whole = told["relevance_sum"] + told["relevance_of_constants"]
    assert whole == pytest.approx(told["logit"], abs=1e-6) and told["conservation_error"] < 1e-6
    assert abs(told["logit"]) > 0.1


@pytest.mark.parametrize(("name", "why"), [("attn_lrp", "softmax"), ("cp_lrp", "activations")])
def test_rules_that_do_not_conserve_say_so(name, why):
    explanation = raison.explain(tiny_model("bert", "classification"), TEXT, name)
    told = explanation.diagnostics
    rest = told["logit"] - told["relevance_sum"] - told["relevance_of_constants"]
    assert told["conservation_error"] == pytest.approx(abs(rest)) and abs(rest) > 0.01
    (note,) = explanation.notes
    assert note.startswith("Of the logit ") and note.endswith(
        f"; the rule for {why} does not conserve the rest."
    )


def test_functions_without_a_rule_are_named():
    """An activation that no table knows: its gradient is taken, and the result names it."""

    class Odd(torch.nn.Module):
        def forward(self, x):
            return torch.logaddexp(x, torch.zeros_like(x)) - 0.69

    hf, tokenizer = tiny_hf("bert", "classification")
    for layer in hf.bert.encoder.layer:
        layer.intermediate.intermediate_act_fn = Odd()
    model = load(hf, tokenizer)
    for name in ("attn_lrp", "cp_lrp", "lrp"):
        notes = " ".join(raison.explain(model, TEXT, name).notes)
        assert "There is no rule for logaddexp in this model" in notes


@pytest.mark.parametrize("gates", ["constant", "half"])
def test_cp_lrp_of_gated_models_is_the_gradient_with_gates_as_told(gates):
    """A copy of LLaMA in which softmax and norms' deviations, and the gate or half of each factor, are constants."""
    model = tiny_model("llama", "causal")
    hf = copy.deepcopy(model.hf)
    hf.set_attn_implementation("eager")
    (encoding,) = model.encode([raison.Example(TEXT)])
    encoding, target = model.resolve_targets(encoding)[0]

    def mlp(self, x):
        gate, up = self.act_fn(self.gate_proj(x)), self.up_proj(x)
        product = (
            gate.detach() * up
            if gates == "constant"
            else (gate.detach() * up + gate * up.detach()) / 2
        )
        return self.down_proj(product)

    def norm(self, x):
        return self.weight * (
            x * (x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon).rsqrt().detach()
        )

    plain = torch.nn.functional.softmax
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(hf.model.layers[0].mlp), "forward", mlp)
        patch.setattr(type(hf.model.norm), "forward", norm)
        patch.setattr(
            torch.nn.functional, "softmax", lambda *args, **kwargs: plain(*args, **kwargs).detach()
        )
        ids = torch.from_numpy(encoding.ids.copy())[None]
        words = hf.get_input_embeddings()(ids).detach().requires_grad_()
        logit = hf(inputs_embeds=words).logits[0, -1, target.ids[0]]
        (slope,) = torch.autograd.grad(logit, words)
    expected = (slope * words).sum(-1)[0].detach().numpy()
    found = raison.explain(model, TEXT, f'cp_lrp(gates="{gates}")', units="token")
    np.testing.assert_allclose(found.parts["token_scores"], expected, atol=1e-9)
    if gates == "constant":
        assert np.sum(found.parts["token_scores"]) == pytest.approx(float(logit.detach()), abs=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
def test_relevance_does_not_see_padding(side):
    model = tiny_model("llama", "causal")
    plain = raison.explain(model, list(TEXTS), "lrp", units="token")
    padded = raison.explain(model_with_padding(model, side), list(TEXTS), "lrp", units="token")
    for one, other in zip(plain, padded, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-9)
