"""Attention, relevance, value and rescale methods against literal code that was written without seeing them."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import raison
from raison.core.artifact import Artifact
from raison.core.registry import methods
from raison.methods.deeplift import RESCALE
from raison.methods.lrp import ALPHA_BETA, ATTN_LRP, CP_LRP
from raison.models.load import load
from raison.models.probe import subject
from raison.models.relevance import rules
from raison.models.relevance.mode import Heads
from raison.studies.what_if import heads_of
from raison.testing import FAMILIES, tiny_hf, tiny_model
from raison.testing.checks import TEXTS, check_method, with_padding
from raison.testing.precision import Float64
from tests.oracles import attributions as literal

PAIRS = [(family, task) for family, tasks in FAMILIES.items() for task in tasks]
WRITERS = [family for family, tasks in FAMILIES.items() if "seq2seq" in tasks]
TASKS = {"bert": "classification", "gpt2": "causal"}
TEXT = TEXTS[0]


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


@pytest.fixture(scope="module", params=TASKS)
def model(request):
    """A tiny model whose norms have gains and shifts of their own: ones and zeros would hide mistakes."""
    tiny = tiny_model(request.param, TASKS[request.param])
    hf, _ = tiny_hf(request.param, TASKS[request.param])
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in hf.named_parameters():
            if "LayerNorm" in name or ".ln_" in name:
                noise = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
                weight.copy_(0.3 * noise + (1.0 if name.endswith("weight") else 0.0))
    return load(hf, tiny.tokenizer)


def asked(model):
    """Arguments of the literal functions, and the target's value that they differentiate."""
    encoding, target = model.resolve_targets(model.encode([raison.Example(TEXT)])[0])[0]
    ids = encoding.ids.tolist()
    types = None if encoding.types is None else encoding.types.tolist()
    return ids, target.ids[0], dict(types=types), dict(value=target.output)


def scores(model, spec, **request):
    found = raison.explain(model, TEXT, spec, units="token", **request)
    return np.array(found.parts["token_scores"]), found


def near(ours, theirs, tolerance=1e-9):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    scale = max(1e-12, np.abs(theirs).max())
    assert np.abs(ours - theirs).max() <= tolerance * scale, np.abs(ours - theirs).max() / scale
    assert np.abs(theirs).max() > 0


def deeplift_pair(model, encoding, target):
    """Arguments of the literal rescale rule: the same baseline."""
    from raison.methods.baselines import Absent, Words, moving

    return Absent(Words(model), "auto").rows(encoding, moving(encoding, target, "free")).numpy()


# -- attention ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attention_last", "attention_mean", "attention_rollout"])
def test_attention(model, name):
    ids, _, types, _ = asked(model)
    near(scores(model, name)[0], getattr(literal, name)(model.hf, ids, **types))


@pytest.mark.parametrize("name", ["gae", "cam", "gradcam", "attcat"])
def test_attention_and_gradients(model, name):
    goals = range(len(model.labels)) if model.task == "classification" else (7, 90, 150)
    for goal in goals:  # the positive part of a map may be zero for some
        target_spec = goal if model.task == "classification" else [goal]
        ids, _, types, value = asked(model)
        ours, theirs = (
            scores(model, name, target=target_spec)[0],
            getattr(literal, name)(model.hf, ids, goal, **types, **value),
        )
        if name == "gae":  # ours leaves the identity out
            theirs = theirs - np.eye(len(ids))[len(ids) - 1 if model.task == "causal" else 0]
        np.testing.assert_allclose(ours[: len(theirs)], theirs, atol=1e-9 * max(1e-3, np.abs(theirs).max()))
        if np.abs(theirs).max() > 0:
            return
    raise AssertionError("all targets have maps of zeros")


def test_attention_x_gradient(model):
    ids, goal, types, value = asked(model)
    weights = literal.attention_maps(model.hf, ids, **types)
    slopes = literal.gradients(model.hf, ids, goal, **types, **value).maps
    near(scores(model, "attention_x_gradient")[0], (weights * slopes).sum((0, 1, 2)))


def test_what_heads_carry(model):
    """The page's table of heads: Σ |attention × gradient| of each, as a share of all."""
    ids, goal, types, value = asked(model)
    weights = literal.attention_maps(model.hf, ids, **types)
    slopes = literal.gradients(model.hf, ids, goal, **types, **value).maps
    each = np.abs(weights * slopes).sum((2, 3))
    found = heads_of(model, raison.explain(model, TEXT, "attention_x_gradient", units="token"))
    np.testing.assert_allclose(found["carried"], each / each.sum(), rtol=1e-6)


@pytest.mark.parametrize("family", WRITERS)
def test_gae_through_cross_attention(family):
    model = tiny_model(family, "seq2seq")
    encoding, target = model.resolve_targets(
        model.encode([raison.Example(TEXT)])[0], raison.models.protocol.TargetSpec(target=0)
    )[0]
    source = encoding.ids[encoding.segment == 0].tolist()
    prefix = encoding.ids[encoding.segment != 0][:1].tolist()
    expected = literal.seq2seq_gae(model.hf, source, prefix, target.ids[0], value=target.output)
    found = raison.explain(model, TEXT, "gae", target=0, units="token")
    expected[len(source)] -= 1  # the identity, which ours leaves out
    near(np.array(found.parts["token_scores"])[: len(expected)], expected)


def test_a_rollout_of_uniform_attention_is_uniform():
    """By hand: one layer, A = 1/t everywhere: ½ I + ½ A, so ½ + ½/t for oneself and ½/t for the others."""
    from raison.methods.rollout import lifted, normalised, rolled_out
    from raison.models.protocol import Map

    uniform = Map("self", 0, np.arange(4), np.arange(4), torch.full((1, 4, 4), 0.25))
    matrix = rolled_out([normalised(lifted(4, uniform, np.full((4, 4), 0.25)) + np.eye(4))], 4)
    np.testing.assert_allclose(matrix, np.eye(4) / 2 + 1 / 8)


# -- values ---------------------------------------------------------------------------------------------


def test_value_weighted_attention(model):
    ids, _, types, _ = asked(model)
    maps = literal.value_weighted_attention(model.hf, ids, **types)  # [l s t]
    row = len(ids) - 1 if model.task == "causal" else 0
    near(scores(model, 'value_weighted_attention(layers="last")')[0], maps[-1][row])
    near(scores(model, 'value_weighted_attention(layers="mean")')[0], maps.mean(0)[row])
    near(scores(model, "value_weighted_attention")[0], literal.rolled(maps, residual=True)[row])


def test_value_zeroing(model):
    ids, _, types, _ = asked(model)
    maps = literal.value_zeroing(model.hf, ids, **types)
    row = len(ids) - 1 if model.task == "causal" else 0
    near(scores(model, "value_zeroing")[0], literal.rolled(maps, residual=False)[row], 1e-7)


def test_alti(model):
    ids, _, types, _ = asked(model)
    near(scores(model, "alti")[0], literal.alti_scores(model.hf, ids, **types))


@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_what_is_written_adds_up(family, task):
    """Without biases a block's output is exactly the parts of its tokens and the row's own rest, in every family."""
    hf, _ = tiny_hf(family, task)
    with torch.no_grad():
        for name, weight in hf.named_parameters():
            if name.endswith("bias"):
                weight.zero_()
    model = load(hf, tiny_model(family, task).tokenizer)
    encoding, target = subject(model)
    ((_, trace),) = model.trace([encoding], [target], want=frozenset({"writes", "readout"}))
    assert len(trace.writes) == len(trace.maps) > 0
    for write in trace.writes:
        gap = (write.output - write.own() - write.parts().sum(1)).abs().max()
        assert gap < 1e-12 * max(1.0, float(write.output.abs().max()))


# -- relevance ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lrp", "partial_lrp"])
def test_relevance(model, name):
    ids, goal, types, _ = asked(model)
    near(scores(model, name)[0], getattr(literal, name)(model.hf, ids, goal, **types))


def test_transformer_attribution(model):
    ids, goal, types, value = asked(model)
    near(
        scores(model, "transformer_attribution")[0],
        literal.transformer_attribution(model.hf, ids, goal, **types, **value),
    )


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


def some_heads(model, tmp_path, syntactic, positional):
    """A file from which exactly these heads are chosen."""
    maps, heads = np.shape(syntactic)
    relations = ["nsubj", "obj", "amod", "advmod"]
    alpha = {name: np.where(syntactic, 1.0, 0.0).tolist() for name in relations}
    share = np.where(positional, 1.0, 0.0)
    data = {
        "shape": {"self": [maps, heads]},
        "kinds": ["self"] * maps,
        "parsed": ["self"],
        "relations": relations,
        "alpha": alpha,
        "lambda": {name: {"1": 0.5} for name in relations},
        "lambda_max": dict.fromkeys(relations, 0.5),
        "counts": dict.fromkeys(relations, 100),
        "positional": {"offset": np.full((maps, heads), -1).tolist(), "alpha": share.tolist()},
        "thresholds": {"syntactic": 0.1, "positional": 0.8},
    }
    path = tmp_path / "heads.json"
    Artifact("heads", data, model.name).save(path)
    return path


MASKS = {
    "some": ([[1, 0], [0, 1]], [[0, 1], [0, 0]]),
    "both": ([[1, 0], [1, 1]], [[1, 0], [0, 1]]),
    "a block without": ([[0, 0], [1, 0]], [[0, 0], [0, 0]]),
}


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("masks", MASKS)
def test_masked_lrp(model, tmp_path, masks, variant):
    ids, goal, types, value = asked(model)
    syntactic, positional = (np.array(mask, bool) for mask in MASKS[masks])
    path = some_heads(model, tmp_path, syntactic, positional)
    ours, found = scores(model, f'masked_lrp(heads="{path}", top=0, variant="{variant}")')
    theirs = literal.masked_lrp(
        model.hf, ids, goal, syntactic=syntactic, positional=positional, variant=variant, **types, **value
    )
    near(ours, theirs)
    assert found.artifacts["heads"] == Artifact.open(path, "heads").content()
    if variant == "paper":
        assert found.diagnostics["conservation_error"] < 1e-9


def test_all_heads_are_no_mask(model, tmp_path):
    ones = np.ones((2, 2), bool)
    path = some_heads(model, tmp_path, ones, ~ones)
    np.testing.assert_array_equal(
        scores(model, f'masked_lrp(heads="{path}", top=0)')[0], scores(model, "transformer_attribution")[0]
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
                assert not each.relevance[1 - number % 2].any()  # nothing is saved for a head that is left out
    for trace, text in zip(traces, texts, strict=True):
        (single,) = cuts_of(model, ALPHA_BETA.through(chosen), [text])
        gap = float((trace.relevance - single.relevance).abs().max())
        assert gap <= 1e-9 * max(1.0, float(single.relevance.abs().max()))


@pytest.mark.parametrize("rules", [ATTN_LRP, CP_LRP["identity", "half"]], ids=["attn_lrp", "cp_lrp"])
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
    found = raison.explain(tiny_model("bert", "classification"), TEXT, name)
    told = found.diagnostics
    rest = told["logit"] - told["relevance_sum"] - told["relevance_of_constants"]
    assert told["conservation_error"] == pytest.approx(abs(rest)) and abs(rest) > 0.01
    (note,) = found.notes
    assert note.startswith("Of the logit ") and note.endswith(f"; the rule for {why} does not conserve the rest.")


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
        product = gate.detach() * up if gates == "constant" else (gate.detach() * up + gate * up.detach()) / 2
        return self.down_proj(product)

    def norm(self, x):
        return self.weight * (x * (x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon).rsqrt().detach())

    plain = torch.nn.functional.softmax
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(hf.model.layers[0].mlp), "forward", mlp)
        patch.setattr(type(hf.model.norm), "forward", norm)
        patch.setattr(torch.nn.functional, "softmax", lambda *args, **kwargs: plain(*args, **kwargs).detach())
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
    padded = raison.explain(with_padding(model, side), list(TEXTS), "lrp", units="token")
    for one, other in zip(plain, padded, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-9)


# -- one rule at a time, by hand ------------------------------------------------------------------------


def pulled(rule, function, *args):
    signals = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]
    result = rule(function, args, {})
    with torch.no_grad():
        assert torch.allclose(result, function(*args))
    return lambda relevance: torch.autograd.grad(result, signals, relevance, retain_graph=True)


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_linear_rule_by_hand():
    x, weight = leaf([[1.0, -2.0]]), torch.tensor([[1.0, 1.0], [2.0, -1.0]], dtype=torch.float64)
    (found,) = pulled(rules.linear, torch.nn.functional.linear, x, weight, torch.ones(2, dtype=torch.float64))(
        torch.tensor([[3.0, 8.0]], dtype=torch.float64)
    )
    # row 0: contributions 1 and −2, so all 3 to x_0; row 1: 2 and 2, so 4 and 4; the bias takes nothing
    assert torch.allclose(found, torch.tensor([[7.0, 4.0]], dtype=torch.float64))
    (lost,) = pulled(rules.linear, torch.nn.functional.linear, leaf([[1.0, 3.0]]), -weight[:1].abs())(
        torch.tensor([[8.0]], dtype=torch.float64)
    )
    assert torch.allclose(lost, torch.tensor([[2.0, 6.0]], dtype=torch.float64))  # nothing positive: by size


def test_addition_rule_by_hand():
    a, b = leaf([[1.0, 2.0], [1.0, 1.0]]), leaf([[3.0, -1.0], [-1.0, 1.0]])
    r_a, r_b = pulled(rules.added, torch.add, a, b)(torch.tensor([[4.0, 1.0], [5.0, 6.0]], dtype=torch.float64))
    # example 0: shares (1, 2) and (3, −1), totals 3 and 2 of 5; example 1: a + b = 0 in the first place gives nothing
    assert torch.allclose(r_a[0], torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert torch.allclose(r_b[0], torch.tensor([3.0, -1.0], dtype=torch.float64))
    assert torch.isfinite(r_a).all() and torch.isfinite(r_b).all()
    assert torch.allclose(r_a[1].sum() + r_b[1].sum(), torch.tensor(11.0, dtype=torch.float64))
    r_a, r_b = pulled(rules.added, torch.sub, leaf([[6.0]]), leaf([[2.0]]))(torch.tensor([[8.0]], dtype=torch.float64))
    assert torch.allclose(r_a + r_b, torch.tensor([[8.0]], dtype=torch.float64)) and float(r_a) == 6.0  # |12| : |−4|


def test_product_rules_by_hand():
    a, b = leaf([[[1.0, 2.0]]]), leaf([[[3.0], [4.0]]])  # z = 11
    r_a, r_b = pulled(rules.multiplied, torch.matmul, a, b)(torch.tensor([[[22.0]]], dtype=torch.float64))
    assert torch.allclose(r_a, torch.tensor([[[3.0, 8.0]]], dtype=torch.float64))
    assert torch.allclose(r_b, torch.tensor([[[3.0], [8.0]]], dtype=torch.float64))
    halves = pulled(rules.halved, torch.mul, leaf([[2.0]]), leaf([[5.0]]))(torch.tensor([[3.0]], dtype=torch.float64))
    assert [float(half) for half in halves] == [1.5, 1.5]


def test_pooling_rule_by_hand():
    x = leaf([[[1.0], [3.0]]])
    (found,) = pulled(rules.summed, torch.mean, x, 1)(torch.tensor([[8.0]], dtype=torch.float64))
    assert torch.allclose(found, torch.tensor([[[2.0], [6.0]]], dtype=torch.float64))


def test_norm_rule_is_linear_in_its_input():
    x = leaf(np.random.default_rng(0).normal(size=(2, 5)).tolist())
    weight = torch.arange(1.0, 6.0, dtype=torch.float64)
    pull = pulled(rules.standardised, torch.nn.functional.layer_norm, x, (5,), weight)
    jacobian = torch.stack([pull(torch.eye(5, dtype=torch.float64)[i].expand(2, 5))[0] for i in range(5)], 1)  # [2 i j]
    result = torch.nn.functional.layer_norm(x.detach(), (5,), weight)
    assert torch.allclose(torch.einsum("bij,bj->bi", jacobian, x.detach()), result, atol=1e-4)  # up to its ε


# -- finite differences ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_rescale_is_complete_on_every_family(family, task):
    """Contributions add up to the change of the value, whichever value it is, through every function of the model."""
    from dataclasses import replace

    model = tiny_model(family, task)
    encoding, target = subject(model)
    for output in ("logit", "log_prob", "prob"):
        if output == "prob" and len(target.ids) > 1:
            continue
        aimed = replace(target, output=output)
        ((_, trace),) = model.trace([encoding], [aimed], want=frozenset({"gradients"}))
        order = torch.randperm(len(encoding), generator=torch.Generator().manual_seed(0))
        pair = torch.stack([trace.embeddings, trace.embeddings[order]])
        ((_, found),) = model.trace([encoding], [aimed], want=frozenset(), rules=RESCALE, embeddings=[pair])
        assert not found.strange
        assert abs(found.value - trace.value) < 1e-9
        assert abs(float(found.relevance.sum()) - found.cuts[0]) < 1e-9 * max(1.0, float(found.relevance.abs().sum()))


def test_deeplift(model):
    ids, goal, types, value = asked(model)
    encoding, target = model.resolve_targets(model.encode([raison.Example(TEXT)])[0])[0]
    ours, found = scores(model, "deeplift")
    baseline = deeplift_pair(model, encoding, target)
    near(ours, literal.deeplift_rescale(model.hf, ids, goal, baseline=baseline, **types, **value))
    assert found.diagnostics["completeness_gap"] < 1e-9


def test_unknown_functions_are_named():
    """A model with a function that no rule is for says so, and that relevance was not conserved."""
    model = tiny_model("bert", "classification")
    hf, _ = tiny_hf("bert", "classification")

    class Odd(torch.nn.Module):
        def forward(self, x):
            return torch.sinh(x)

    hf.bert.pooler.activation = Odd()
    found = raison.explain(load(hf, model.tokenizer), TEXT, "lrp")
    assert any("sinh" in note for note in found.notes)


@pytest.mark.parametrize("name", ["masked_lrp"])
def test_masked_lrp_keeps_its_contract(name, tmp_path):
    """With a file of its own, since tiny models bring no heads along."""
    model = tiny_model("bert", "classification")
    path = some_heads(model, tmp_path, np.array([[1, 0], [0, 0]], bool), np.array([[0, 0], [0, 1]], bool))
    for more in ("", ", random=1", ", corruption=0.5"):
        check_method(methods.build(f'masked_lrp(heads="{path}"{more})'), model)


def test_masked_lrp_without_heads_says_how_to_make_them():
    with pytest.raises(raison.core.errors.Unsupported, match="raison heads"):
        raison.explain(tiny_model("bert", "classification"), TEXT, "masked_lrp")


def test_heads_of_another_model_are_refused(tmp_path):
    model = tiny_model("bert", "classification")
    path = some_heads(model, tmp_path, np.ones((3, 2), bool), np.zeros((3, 2), bool))
    with pytest.raises(raison.core.errors.InputError, match="3 x 2 heads"):
        raison.explain(model, TEXT, f'masked_lrp(heads="{path}")')


def test_corruption_keeps_the_kind_of_chosen_heads():
    synt, pos = np.array([[1, 0], [0, 0]], bool), np.array([[0, 1], [0, 0]], bool)
    more = methods.build("masked_lrp(corruption=1.0)").varied((synt, pos), np.random.default_rng(0))
    np.testing.assert_array_equal(more[0], synt)
    np.testing.assert_array_equal(more[1], [[False, True], [True, True]])
