"""Paths and noise: integrated gradients, SmoothGrad and expected gradients against slow, literal code."""

from __future__ import annotations

import gzip
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from scipy import stats

import raison
from raison.core.errors import InputError, Unsupported
from raison.core.registry import methods
from raison.methods import quadrature
from raison.methods.base import Batch
from raison.methods.baselines import Absent, Words
from raison.methods.gradient_shap import degrees_of_differences, standard_error
from raison.methods.margin import margin
from raison.methods.paths import Path, slopes_at
from raison.models.load import load
from raison.models.protocol import TargetSpec
from raison.testing import FAMILIES, tiny_hf, tiny_model
from raison.testing.precision import Float64

TEXT = "The film is a lovely surprise, isn't it?"
OTHER = "A dull story with good actors."
QUESTION = ("Where does it begin?", "The river begins in the hills above the town.")
TASKS = [(family, tasks[0]) for family, tasks in FAMILIES.items()]


@pytest.fixture(autouse=True)
def precise(request):
    """Float64 all the way, but for real models, which are float32."""
    with nullcontext() if request.node.get_closest_marker("registry") else Float64():
        yield


def explained(model, text=TEXT, method="integrated_gradients", **how):
    return raison.explain(model, text, method, **{"units": "token", **how})


def token_scores(found):
    return np.array(found.parts["token_scores"])


# -- the rule by itself --------------------------------------------------------------------------------------


def run(rule, value, slope):
    """Drive a rule over plain functions F and G; the integral, and how often it asked."""
    asked, wanted = [], next(rule)
    while True:
        asked.append(len(wanted))
        try:
            wanted = rule.send((value(wanted), slope(wanted)))
        except StopIteration as end:
            return end.value, asked


def step(place, width):
    """A smooth step, its slope (a bell), and the rise of the step from 0 to 1."""
    value = lambda a: np.tanh((np.asarray(a) - place) / width)  # noqa: E731
    slope = lambda a: (1 - value(a) ** 2) / width  # noqa: E731
    return value, slope, float(value(1.0) - value(0.0))


@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
def test_stretches_integrate_polynomials_exactly(order):
    places = np.sort(np.concatenate([[0, 1], np.random.default_rng(0).random(9)]))
    weights = quadrature.stretches(places, order)
    for power in range(order):
        expected = np.diff(places ** (power + 1)) / (power + 1)
        np.testing.assert_allclose(weights @ places**power, expected, atol=1e-12)
    assert abs((weights @ places**order).sum() - 1 / (order + 1)) > 1e-9  # and no more than that


def test_equal_steps_by_definition():
    value, slope, _ = step(0.3, 0.2)
    parts = lambda a: np.stack([slope(a), np.cos(5 * a)], 1)  # noqa: E731
    found, asked = run(quadrature.midpoint(10), value, parts)
    np.testing.assert_allclose(found.scores, sum(parts(np.array([(k + 0.5) / 10]))[0] for k in range(10)) / 10)
    assert (found.start, found.end, found.places, asked) == (value(0.0), value(1.0), 10, [12])
    found, asked = run(quadrature.reference(10), value, parts)
    np.testing.assert_allclose(found.scores, sum(parts(np.array([k / 10]))[0] for k in range(11)) / 11)
    assert (found.places, asked) == (11, [11])


@pytest.mark.parametrize("width", [0.3, 0.1, 0.03, 0.01, 0.003])
@pytest.mark.parametrize("place", [0.0, 0.18, 0.5, 0.77])
def test_adaptive_finds_bells_wherever_they_are(place, width):
    value, slope, rise = step(place, width)
    shares = np.array([0.5, -0.2, 0.7])
    found, asked = run(quadrature.adaptive(0.01), value, lambda a: slope(a)[:, None] * shares)
    assert found.settled and found.gap <= 0.01
    assert np.linalg.norm(found.scores - rise * shares) <= 0.01 * np.linalg.norm(rise * shares)
    assert found.places == sum(asked) <= 60
    if width <= 0.01:  # equal steps need many more: the bell falls between them
        coarse, _ = run(quadrature.midpoint(found.places), value, lambda a: slope(a)[:, None] * shares)
        assert coarse.gap > 2 * found.gap


def test_adaptive_sees_what_the_sum_hides():
    """Two tokens whose slopes cancel at every place: F is flat and knows nothing of their bells."""
    _, slope, rise = step(0.4, 0.04)
    parts = lambda a: np.stack([1 + slope(a), 1 - slope(a)], 1)  # noqa: E731
    found, _ = run(quadrature.adaptive(0.01), lambda a: 2 * np.asarray(a), parts)
    expected = np.array([1 + rise, 1 - rise])
    assert np.linalg.norm(found.scores - expected) <= 0.01 * np.linalg.norm(expected)
    blind, _ = run(quadrature.midpoint(9), lambda a: 2 * np.asarray(a), parts)
    assert blind.gap < 1e-12 and np.linalg.norm(blind.scores - expected) > 0.01  # a small gap alone proves nothing


def test_adaptive_is_tighter_when_asked_and_admits_defeat():
    value, slope, rise = step(0.3, 0.05)
    places = []
    for tolerance in (0.1, 0.01, 1e-4, 1e-6):
        found, _ = run(quadrature.adaptive(tolerance), value, lambda a: slope(a)[:, None])
        assert found.settled and abs(found.scores[0] - rise) <= tolerance * rise
        places.append(found.places)
    assert places == sorted(places) and places[0] < places[-1]
    rough = lambda a: 50 * np.cos(300 * np.asarray(a) ** 2)  # noqa: E731
    found, asked = run(quadrature.adaptive(0.01, most=40), lambda a: np.asarray(a), lambda a: rough(a)[:, None])
    assert not found.settled and sum(asked) == found.places == 40


def test_a_jump_at_the_start_is_cut_out_finely():
    """What RMSNorm does near a zero baseline: all of the change happens at once."""
    value, slope, rise = step(0.0, 1e-4)
    found, _ = run(quadrature.adaptive(0.01), value, lambda a: slope(a)[:, None])
    assert found.settled and abs(found.scores[0] - rise) <= 0.01 * rise
    equal, _ = run(quadrature.midpoint(500), value, lambda a: slope(a)[:, None])
    assert equal.gap > 0.9


def test_a_gap_is_measured_against_something():
    plain = quadrature.Integral(np.array([0.5, 0.49]), 0.0, 1.0, 9)
    assert plain.error == pytest.approx(0.01) and plain.gap == pytest.approx(0.01)
    cancelling = quadrature.Integral(np.array([5.0, -5.0]), 0.0, 1e-6, 9)
    assert cancelling.scale == pytest.approx(0.1) and cancelling.gap == pytest.approx(1e-5)
    nothing = quadrature.Integral(np.zeros(2), 1.0, 1.0, 9)
    assert nothing.gap == 0.0
    found, asked = run(quadrature.adaptive(0.01), lambda a: np.ones(len(a)), lambda a: np.zeros((len(a), 3)))
    assert found.settled and asked == [9] and not found.scores.any()


# -- the literal oracle: plain transformers, hooks of its own -------------------------------------------------


class Literal:
    """f and ∂f/∂e of a raw transformers model at given word embeddings; nothing of raison's tracing."""

    def __init__(self, family, task):
        self.hf, self.tokenizer = tiny_hf(family, task)
        self.hf.set_attn_implementation("eager")
        self.task = task
        pair = task == "seq2seq"
        self.tables = [
            part.get_input_embeddings()
            for part in ([self.hf.get_encoder(), self.hf.get_decoder()] if pair else [self.hf])
        ]

    def streams(self, encoding, target):
        """Axis indices of each stream, as far as the model reads."""
        size = target.positions[-1] if target.generated else len(encoding)
        index = np.arange(size)
        if self.task != "seq2seq":
            return [index]
        source = encoding.segment[:size] == 0
        return [index[source], index[~source]]

    def rows(self, encoding, target):
        return [
            self.tables[s](torch.tensor(encoding.ids[i])).detach() for s, i in enumerate(self.streams(encoding, target))
        ]

    def slope(self, encoding, target, rows):
        """(f, gradients per stream) with the embeddings of each stream replaced."""
        leaves = [r.clone().requires_grad_(True) for r in rows]
        ids = [torch.tensor(encoding.ids[i])[None] for i in self.streams(encoding, target)]
        handles = [
            table.register_forward_hook(lambda module, args, out, leaf=leaf: leaf[None])
            for table, leaf in zip(self.tables, leaves, strict=True)
        ]
        try:
            names = ("input_ids", "decoder_input_ids") if self.task == "seq2seq" else ("input_ids",)
            extra = {}
            if encoding.types is not None:
                extra["token_type_ids"] = torch.tensor(encoding.types)[None]
            out = self.hf(**dict(zip(names, ids, strict=True)), attention_mask=torch.ones_like(ids[0]), **extra)
            value = self.value(out, encoding, target)
            return float(value.detach()), torch.autograd.grad(value, leaves)
        finally:
            for handle in handles:
                handle.remove()

    def value(self, out, encoding, target):
        if self.task == "classification":
            logits = out.logits[0]
            rival = 0.0 if target.contrast is None else logits[target.contrast[0]]
            return logits[target.ids[0]] - rival
        if self.task == "tagging":
            return sum(out.logits[0, p, i] for p, i in zip(target.positions, target.ids, strict=True))
        if self.task == "qa":
            first, last = target.positions
            return out.start_logits[0, first] + out.end_logits[0, last]
        before = int((encoding.segment == 0).sum()) if self.task == "seq2seq" else 0
        log_prob = out.logits[0].log_softmax(-1)
        return sum(log_prob[p - 1 - before, i] for p, i in zip(target.positions, target.ids, strict=True))

    def integrated(self, encoding, target, absent, moved, places):
        """[t] mean over places of ⟨e − e′, gradient⟩, one place at a time; and f(e), f(e′)."""
        streams, own = self.streams(encoding, target), self.rows(encoding, target)
        start = []
        for stream, (index, rows) in enumerate(zip(streams, own, strict=True)):
            rows = rows.clone()
            for place, t in enumerate(index):
                if moved[t]:
                    rows[place] = absent(self.tables[stream])
            start.append(rows)
        scores = np.zeros(len(encoding))
        for place in places:
            _, gradient = self.slope(encoding, target, [b + place * (e - b) for b, e in zip(start, own, strict=True)])
            for index, g, b, e in zip(streams, gradient, start, own, strict=True):
                scores[index] += ((e - b) * g).sum(-1).numpy() / len(places)
        return scores, self.slope(encoding, target, own)[0], self.slope(encoding, target, start)[0]


CASES = [
    ("bert", "classification", TEXT, {"target": 1}),
    ("bert", "classification", (TEXT, OTHER), {"target": 0, "contrast": 2}),
    ("albert", "classification", TEXT, {}),
    ("deberta", "classification", TEXT, {}),
    ("llama", "classification", TEXT, {}),
    ("modernbert", "tagging", OTHER, {}),
    ("distilbert", "qa", QUESTION, {}),
    ("gpt2", "causal", TEXT, {}),
    ("gemma", "causal", TEXT, {"target": 5}),
    ("qwen", "causal", "The old town", {"target": "lies on a hill"}),
    ("t5", "seq2seq", OTHER, {}),
    ("bart", "seq2seq", OTHER, {"target": 2}),
    ("marian", "seq2seq", OTHER, {}),
]


@pytest.mark.parametrize(("family", "task", "text", "how"), CASES)
def test_midpoints_one_by_one(family, task, text, how):
    """Every place by itself on the raw model; the baseline keeps what may not be removed."""
    model, literal = tiny_model(family, task), Literal(family, task)
    found = explained(model, text, "integrated_gradients(steps=7)", **how)
    found = found[0] if isinstance(found, list) else found
    encoding, target = found.encoding, found.target
    mask = literal.tokenizer.mask_token_id
    absent = lambda table: table(torch.tensor(mask)).detach()  # noqa: E731
    free = target.free(encoding)
    places = (np.arange(7) + 0.5) / 7
    scores, value, start = literal.integrated(encoding, target, absent, free, places)
    scale = np.abs(scores).max()
    assert scale > 1e-3 and free.any()
    np.testing.assert_allclose(token_scores(found), scores, atol=1e-8 * scale)
    assert not token_scores(found)[~free].any()
    told = found.diagnostics
    assert (told["baseline"], told["points"]) == ("mask", 7)
    assert told["value"] == pytest.approx(value, abs=1e-8) and told["baseline_value"] == pytest.approx(start, abs=1e-8)
    assert told["completeness_error"] == pytest.approx(value - start - scores.sum(), abs=1e-7)
    difference = max(abs(value - start), np.abs(scores).sum() / 100)
    assert told["completeness_gap"] == pytest.approx(abs(value - start - scores.sum()) / difference, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(("family", "task"), [("gpt2", "causal"), ("bert", "classification")])
def test_the_released_quadrature(family, task):
    """P0: baseline zero, every token moves, α = i/N for i = 0..N, the mean of N + 1 gradients."""
    model, literal = tiny_model(family, task), Literal(family, task)
    spec = "integrated_gradients(steps=20, rule=reference, baseline=zero, moved=all)"
    found = explained(model, TEXT, spec)
    moved = found.target.scope(len(found.encoding))
    nothing = lambda table: torch.zeros(table.embedding_dim, dtype=torch.float64)  # noqa: E731
    scores, *_ = literal.integrated(found.encoding, found.target, nothing, moved, np.arange(21) / 20)
    np.testing.assert_allclose(token_scores(found), scores, atol=1e-9 * np.abs(scores).max())
    assert token_scores(found)[-1] != 0  # P0 moves the last token as well
    assert found.diagnostics["points"] == 21


def test_captum_agrees_on_integrated_gradients():
    captum = pytest.importorskip("captum.attr")
    model = tiny_model("bert", "classification")
    hf, tokenizer = tiny_hf("bert", "classification")
    found = explained(model, TEXT, "integrated_gradients(steps=20)", target=1)
    ids = torch.tensor(found.encoding.ids)[None]
    baseline = torch.where(torch.tensor(found.encoding.fixed)[None], ids, tokenizer.mask_token_id)
    layer = captum.LayerIntegratedGradients(lambda i: hf(input_ids=i).logits, hf.bert.embeddings.word_embeddings)
    expected, delta = layer.attribute(
        ids, baselines=baseline, target=1, n_steps=20, method="riemann_middle", return_convergence_delta=True
    )
    expected = expected.sum(-1)[0].detach().numpy()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(token_scores(found), expected, atol=1e-6)
    assert found.diagnostics["completeness_error"] == pytest.approx(-float(delta), abs=1e-6)


def test_captum_agrees_on_smoothgrad_without_noise_and_on_expected_gradients():
    """GradientShap with a single baseline: the mean of twenty of its runs lies within both standard errors of ours."""
    captum = pytest.importorskip("captum.attr")
    model = tiny_model("bert", "classification")
    hf, tokenizer = tiny_hf("bert", "classification")
    found = explained(model, OTHER, "gradient_shap(samples=60, baselines=mask)", target=1)
    embed = hf.get_input_embeddings()
    ids = torch.tensor(found.encoding.ids)[None]
    absent = torch.where(torch.tensor(found.encoding.fixed)[None], ids, tokenizer.mask_token_id)
    torch.manual_seed(0)
    np.random.seed(0)  # captum draws its points on the line from numpy's global generator
    shap = captum.GradientShap(lambda e: hf(inputs_embeds=e).logits)
    full, none = embed(ids).detach(), embed(absent).detach()
    runs = [shap.attribute(full, none, n_samples=60, target=1).sum(-1)[0].numpy() for _ in range(20)]
    free = ~found.encoding.fixed
    expected, theirs = np.mean(runs, 0)[free], np.std(runs, 0, ddof=1)[free] / np.sqrt(len(runs))
    error = np.hypot(np.array(found.parts["standard_error"])[free], theirs)
    apart = np.abs(token_scores(found)[free] - expected)
    assert (apart <= 4 * error).all()
    assert error.max() < 0.1 * np.abs(expected).max()


# -- properties ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "task"), TASKS)
def test_embeddings_are_those_of_a_trace(family, task):
    model = tiny_model(family, task)
    encoding, target = model.resolve_targets(model.encode([raison.Example(TEXT)])[0])[0]
    ((_, trace),) = model.trace([encoding], [target], want=frozenset())
    read = target.inputs(len(encoding))
    assert torch.equal(Words(model).of(encoding)[read], trace.embeddings[read])


@pytest.mark.parametrize(("family", "task"), TASKS)
def test_scores_add_up(family, task):
    """Midpoints get there at last, and adaptive ends within its tolerance or says that it does not."""
    model = tiny_model(family, task)
    fine = explained(model, OTHER, "integrated_gradients(steps=400)")
    total = fine.diagnostics["value"] - fine.diagnostics["baseline_value"]
    assert abs(fine.scores.sum() - total) <= 1e-2 * abs(total)  # random weights are rough, ReLU has kinks
    found = explained(model, OTHER)
    told = found.diagnostics
    assert told["completeness_gap"] <= 0.01 and "notes" not in told
    assert np.linalg.norm(found.scores - fine.scores) <= 0.01 * np.linalg.norm(fine.scores)
    assert told["points"] == found.cost["forwards"] < 300


def test_a_hundred_midpoints_are_complete_on_a_toy_gpt2():
    """The reference quadrature is off by a share of 1/N, midpoints by far less (methods of P0, 1.8)."""
    model = tiny_model("gpt2", "causal")
    middle, both = (
        explained(model, TEXT, f"integrated_gradients(steps=100, rule={rule})") for rule in ("midpoint", "reference")
    )
    assert middle.diagnostics["completeness_gap"] < 1e-3 < both.diagnostics["completeness_gap"]


def linear_model():
    """Logits that are linear in the word embeddings: no blocks, no norms, the mean of the tokens, one matrix."""
    from raison.models.mean_pooled_bert import MeanPooledBert

    hf, tokenizer = tiny_hf("bert", "classification")
    config = hf.config
    config.num_hidden_layers, config.num_labels = 0, 2
    torch.manual_seed(0)
    plain = MeanPooledBert(config).double().eval()
    plain.bert.embeddings.LayerNorm = torch.nn.Identity()
    with torch.no_grad():
        plain.bert.embeddings.word_embeddings.weight.normal_()
        plain.classifier.weight.normal_()
    return plain, raison.load(plain, tokenizer)


@pytest.mark.parametrize(
    "method", ["integrated_gradients(steps=1)", "integrated_gradients", "gradient_shap(baselines=mask)"]
)
def test_a_linear_model_needs_one_step(method):
    hf, model = linear_model()
    found = explained(model, TEXT, method, target=1)
    table = hf.bert.embeddings.word_embeddings.weight
    change = table[torch.tensor(found.encoding.ids)] - table[model.codec.mask_id]
    expected = (change @ hf.classifier.weight[1] / len(found.encoding)).detach().numpy()
    expected[found.encoding.fixed] = 0
    np.testing.assert_allclose(token_scores(found), expected, atol=1e-12)
    if "shap" in method:
        assert found.diagnostics["standard_error"] < 1e-12
    else:
        assert found.diagnostics["completeness_gap"] < 1e-10
        assert found.diagnostics["points"] == (9 if method == "integrated_gradients" else 1)


def test_an_irrelevant_word_gets_nothing():
    """Sensitivity and its converse: only what the model reads has a score."""
    hf, model = linear_model()
    encoding = model.encode([raison.Example(TEXT)])[0]
    dead = int(encoding.ids[3])
    with torch.no_grad():  # one word gets the embedding of absence: it changes nothing
        hf.bert.embeddings.word_embeddings.weight[dead] = hf.bert.embeddings.word_embeddings.weight[model.codec.mask_id]
    found = explained(model, TEXT)
    assert (token_scores(found)[found.encoding.ids == dead] == 0).all() and found.scores.any()


def test_adaptive_scores_do_not_depend_on_neighbours():
    model = tiny_model("llama", "causal")
    texts = [TEXT, OTHER, "Nobody in town expected it.", "The old town"]
    together = explained(model, texts)
    for text, found in zip(texts, together, strict=True):
        alone = explained(model, text)
        np.testing.assert_allclose(found.scores, alone.scores, atol=1e-10)
        assert found.diagnostics["points"] == alone.diagnostics["points"]
    again = explained(model, texts)
    assert all((a.scores == b.scores).all() for a, b in zip(together, again, strict=True))


def test_every_target_has_its_own_path():
    """Tokens behind a target and the row that it is read from stay where they are."""
    model = tiny_model("gpt2", "causal")
    found = explained(model, "The old town lies on a hill", "integrated_gradients(steps=5)", target="all")
    for one in found:
        free = one.target.free(one.encoding)
        assert not token_scores(one)[~free].any()
        if free.any():
            alone = explained(
                model, "The old town lies on a hill", "integrated_gradients(steps=5)", target=one.target.positions[0]
            )
            np.testing.assert_allclose(alone.scores, one.scores, atol=1e-10)


def test_points_are_made_one_at_a_time():
    """The points of a path are asked for when they run, and never held together."""
    model = tiny_model("bert", "classification")
    made = []

    class Watched(Path):
        def at(self, place):
            made.append(place)
            return super().at(place)

    encoding = model.encode([raison.Example(TEXT)])[0]
    target = model.resolve_targets(encoding)[0][1]
    words = Words(model)
    path = Watched(Absent(words, "mask").rows(encoding, target.free(encoding)), words.of(encoding))
    small = type(model.budget)(tokens=3 * len(encoding))
    model.budget = small
    batch = Batch([encoding], [target], [])
    places = list(np.linspace(0, 1, 9))
    seen = []
    for slope in slopes_at(model, batch, [0] * 9, [path] * 9, places):
        seen.append(len(made))
        assert places[slope.point] in made
    assert seen == [3, 3, 3, 6, 6, 6, 9, 9, 9]
    assert torch.equal(path.at(0.0), path.start) and torch.equal(path.at(1.0), path.end)


# -- baselines -------------------------------------------------------------------------------------------------


def test_the_default_baseline_is_what_the_model_has():
    hf, tokenizer = tiny_hf("llama", "causal")
    pad = tokenizer.pad_token_id
    assert Absent(Words(raison.load(hf, tokenizer)), "auto").name == "mask"
    tokenizer.mask_token = None
    assert Absent(Words(raison.load(hf, tokenizer)), "auto").name == "pad"
    with torch.no_grad():
        hf.get_input_embeddings().weight[pad] = 0  # zero by another name
    assert Absent(Words(raison.load(hf, tokenizer)), "auto").name == "mean"
    tokenizer.pad_token = None
    model = raison.load(hf, tokenizer)
    assert Absent(Words(model), "auto").name == "mean"
    for name in ("mask", "pad"):
        with pytest.raises(Unsupported, match=f"has no {name} token to be a baseline: use"):
            explained(model, TEXT, f"integrated_gradients(baseline={name})")


@pytest.mark.parametrize("family", ["bart", "t5", "marian"])
def test_baselines_of_two_streams(family):
    """Each stream takes absence from its own table; Marian's encoder scales its embeddings, and so does absence."""
    model, literal = tiny_model(family, "seq2seq"), Literal(family, "seq2seq")
    encoding, target = model.resolve_targets(model.encode([raison.Example(OTHER)])[0], TargetSpec(target=2))[0]
    free = target.free(encoding)
    assert free[encoding.segment == 0].any() and free[encoding.segment == 1].any()
    own = Words(model).of(encoding)
    for name in ("mean", "mask", "zero", "pad"):
        rows = Absent(Words(model), name).rows(encoding, free)
        assert torch.equal(rows[~free], own[~free])
        for stream, table in enumerate(literal.tables):
            whole = table(torch.arange(table.num_embeddings)).detach()
            token = {"mask": literal.tokenizer.mask_token_id, "pad": literal.tokenizer.pad_token_id}.get(name)
            expected = (
                whole.mean(0) if name == "mean" else torch.zeros_like(whole[0]) if name == "zero" else whole[token]
            )
            here = free & (encoding.segment == stream)
            np.testing.assert_allclose(rows[here], expected.expand(int(here.sum()), -1), atol=1e-12)


def test_a_text_as_baseline():
    model = tiny_model("bert", "classification")
    encoding = model.encode([raison.Example(TEXT)])[0]
    free = model.resolve_targets(encoding)[0][1].free(encoding)
    words = Words(model)
    ids = model.codec("the town", special=False).ids
    rows = Absent(words, "text:the town").rows(encoding, free)
    laid = np.resize(ids, int(free.sum()))
    assert torch.equal(rows[free], words.rows(0, laid))
    assert torch.equal(rows[~free], words.of(encoding)[~free])
    found = explained(model, TEXT, "integrated_gradients(baseline='text:the town', steps=3)")
    assert found.diagnostics["baseline"] == "text:the town"
    same = explained(model, TEXT, f"integrated_gradients(baseline={'text:' + TEXT!r}, steps=3)")
    assert not same.scores.any()  # a text against itself
    cut = explained(model, "the town", "integrated_gradients(baseline='text:a dull story with actors', steps=3)")
    assert any("of which only the first" in note for note in cut.notes)


def test_zero_makes_rmsnorm_jump_and_the_note_says_so():
    """Any share of an embedding is normalised to the same length, so that equal steps never see the jump at zero."""
    model = tiny_model("llama", "causal")
    gaps = []
    for steps in (16, 64, 256):
        found = explained(model, TEXT, f"integrated_gradients(baseline=zero, moved=all, steps={steps})")
        gaps.append(found.diagnostics["completeness_gap"])
    assert min(gaps) > 0.01
    assert any(note.startswith("The scores miss what they should add up to") for note in found.notes)
    assert explained(model, TEXT, "integrated_gradients(steps=256)").diagnostics["completeness_gap"] < 0.01


def test_notes_about_cancelling_and_unsettled_paths():
    model = tiny_model("bert", "classification")
    method = methods.build("integrated_gradients")
    close = quadrature.Integral(np.array([1.0, -1.0]), 0.5, 0.5001, 12)
    (note,) = method.doubts(close)
    assert "hardly differs from the baseline's" in note
    (note,) = method.doubts(quadrature.Integral(np.array([1.0]), 0.0, 1.001, 243, settled=False))
    assert "had not settled after 243 points" in note
    (note,) = method.doubts(quadrature.Integral(np.array([1.0]), 0.0, 1.5, 30))
    assert note.endswith("by 33 %, 0.5: the model computes no more exactly.")
    found = explained(model, TEXT, "integrated_gradients(tolerance=1e-9, most=11)")
    assert found.diagnostics["points"] <= 11 and len(found.notes) == 1


# -- SmoothGrad --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["gradient_norm", "input_x_gradient"])
@pytest.mark.parametrize(("family", "task"), [("bert", "classification"), ("t5", "seq2seq"), ("gpt2", "causal")])
def test_smoothgrad_without_noise_is_the_map_itself(base, family, task):
    model = tiny_model(family, task)
    found = explained(model, TEXT, f"smooth_grad(noise=0, of={base})")
    plain = explained(model, TEXT, base)
    np.testing.assert_allclose(found.scores, plain.scores, atol=1e-12)
    assert found.diagnostics["aggregation"] == plain.diagnostics["aggregation"]
    assert methods.build(f"smooth_grad(of={base})").signed == methods.build(base).signed


@pytest.mark.parametrize("base", ["gradient_norm", "input_x_gradient"])
@pytest.mark.parametrize(("family", "task"), [("bert", "classification"), ("marian", "seq2seq")])
def test_smoothgrad_copy_by_copy(base, family, task):
    """The same noise, drawn again and run one copy at a time on the raw model."""
    model, literal = tiny_model(family, task), Literal(family, task)
    found = explained(model, OTHER, f"smooth_grad(samples=5, of={base})", seed=3)
    encoding, target = found.encoding, found.target
    streams, own = literal.streams(encoding, target), literal.rows(encoding, target)
    everything = torch.cat(own)
    sigma = 0.15 * float(everything.max() - everything.min())
    assert found.diagnostics["sigma"] == pytest.approx(sigma)
    seeds = Batch([encoding], [target], [], seed=3).generator(0).integers(2**63, size=5)
    maps = []
    for seed in seeds:
        drawn = torch.from_numpy(np.random.default_rng(seed).standard_normal((len(encoding), everything.shape[1])))
        noisy = [rows + sigma * drawn[index] for rows, index in zip(own, streams, strict=True)]
        _, gradient = literal.slope(encoding, target, noisy)
        scores = np.zeros(len(encoding))
        for index, rows, slope in zip(streams, noisy, gradient, strict=True):
            scores[index] = slope.norm(dim=-1) if base == "gradient_norm" else (slope * rows).sum(-1)
        maps.append(scores)
    np.testing.assert_allclose(token_scores(found), np.mean(maps, 0), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.parts["standard_error"], np.std(maps, 0, ddof=1) / np.sqrt(5), atol=1e-9)
    other = explained(model, OTHER, f"smooth_grad(samples=5, of={base})", seed=4)
    assert not np.allclose(other.scores, found.scores)


def test_smoothgrad_of_a_token_ignores_what_follows():
    """The range of the embeddings is that of what the target may see."""
    model = tiny_model("gpt2", "causal")
    words = "The old town lies on a hill"
    inside, alone = (
        explained(model, text, "smooth_grad(samples=3)", target=3).diagnostics["sigma"] for text in (words, words[:16])
    )
    assert inside == alone


# -- expected gradients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "task"), [("bert", "classification"), ("gpt2", "causal"), ("t5", "seq2seq")])
def test_expected_gradients_of_one_baseline_are_integrated_gradients(family, task):
    model = tiny_model(family, task)
    exact = explained(model, OTHER, "integrated_gradients(steps=300)")
    found = explained(model, OTHER, "gradient_shap(samples=300, baselines=mask)")
    error = np.array(found.parts["standard_error"])[found.units.of >= 0]
    assert (np.abs(found.scores - exact.scores) <= 4 * error + 1e-9).all()
    assert np.linalg.norm(found.scores - exact.scores) < 0.15 * np.linalg.norm(exact.scores)
    assert np.abs(found.diagnostics["total"] - exact.scores.sum()) <= 4 * found.diagnostics["total_standard_error"]


def test_the_standard_error_is_one():
    """Over many seeds the scores scatter as the standard error says; stratified, if anything, less."""
    model = tiny_model("bert", "classification")
    scores, errors = [], []
    for seed in range(30):
        found = explained(model, OTHER, "gradient_shap(samples=12)", seed=seed)
        scores.append(found.scores)
        errors.append(np.array(found.parts["standard_error"])[found.units.of >= 0])
    scatter, told = np.std(scores, 0, ddof=1), np.sqrt(np.mean(np.square(errors), 0))
    assert (scatter > 0).all()
    assert 0.5 < np.mean(scatter / told) < 1.3
    mean, _ = np.mean(scores, 0), np.mean(errors, 0)
    fine = explained(model, OTHER, "gradient_shap(samples=400)", seed=99)
    apart = np.abs(fine.scores - mean) / np.sqrt(scatter**2 / 30 + scatter**2 * 12 / 400)
    assert np.sqrt(np.mean(apart**2)) < 2


def test_margins_of_differences_of_neighbours_cover_95_percent():
    """A variance from differences of neighbours has fewer degrees of freedom than one from deviations."""
    for count in (2, 4, 8, 50):
        draws = np.random.default_rng(0).normal(size=(count, 20_000))
        within = np.abs(draws.mean(0)) <= margin(standard_error(draws), degrees_of_differences(count))
        assert 0.945 < within.mean() < 0.975


@pytest.mark.parametrize(
    ("method", "degrees"),
    [("gradient_shap(samples=12)", 7), ("smooth_grad(samples=5)", 4), ("smooth_grad(noise=0)", 1)],
)
def test_averages_of_gradients_have_margins(method, degrees):
    found = explained(tiny_model("bert", "classification"), OTHER, method)
    wanted = stats.t.ppf(0.975, degrees) * np.array(found.parts["standard_error"])
    np.testing.assert_allclose(found.parts["margin_95"], wanted, rtol=1e-9)


def test_one_noisy_copy_has_no_margin():
    found = explained(tiny_model("bert", "classification"), OTHER, "smooth_grad(samples=1)")
    assert "margin_95" not in found.parts


def test_several_baselines_are_drawn_equally_often():
    model = tiny_model("bert", "classification")
    _, linear = linear_model()
    parts = [explained(linear, TEXT, f"gradient_shap(samples=8, baselines={name})").scores for name in ("mask", "mean")]
    both = explained(linear, TEXT, "gradient_shap(samples=8, baselines=('mask', 'mean'))")
    np.testing.assert_allclose(both.scores, np.mean(parts, 0), atol=1e-12)  # exact where G does not depend on α
    assert both.diagnostics["baseline"] == "mask, mean"
    default = explained(model, TEXT, "gradient_shap(samples=3)")
    assert default.diagnostics["baseline"] == "words"
    assert default.method == "gradient_shap(samples=3)"


def test_random_words_are_words():
    model = tiny_model("llama", "causal")
    known = Words(model).known[0]
    assert not set(known) & set(model.codec.special_ids) and known.max() < len(model.tokenizer)


# -- what a user may get wrong ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("integrated_gradients(steps=0)", "steps is a whole number from 1 up, not 0."),
        ("integrated_gradients(steps=2.5)", "steps is a whole number from 1 up, not 2.5."),
        ("integrated_gradients(baseline=maen)", "There is no baseline 'maen'. Did you mean 'mean'?"),
        ("integrated_gradients(baseline='text: ')", "The text of the baseline is empty"),
        ("integrated_gradients(rule=simpson, steps=3)", "rule is one of midpoint, reference, not 'simpson'."),
        ("integrated_gradients(rule=reference)", "The rule 'reference' needs a number of steps"),
        ("integrated_gradients(tolerance=0)", "tolerance is a number above 0 and at most 1, not 0."),
        ("integrated_gradients(most=3)", "most is a whole number from 9 up, not 3."),
        ("integrated_gradients(moved=some)", "moved is one of free, all, not 'some'."),
        ("smooth_grad(samples=0)", "samples is a whole number from 1 up, not 0."),
        ("smooth_grad(noise=-1)", "noise is a number from 0 up, not -1."),
        ("smooth_grad(of=attention)", "of is one of gradient_norm, input_x_gradient, not 'attention'."),
        ("gradient_shap(samples=1)", "samples is a whole number from 2 up, not 1."),
        ("gradient_shap(baselines=())", "baselines names at least one baseline"),
        ("gradient_shap(baselines=('mask', 'wrods'))", "There is no baseline 'wrods'."),
        (
            "gradient_shap(samples=2, baselines=('mask', 'pad', 'mean'))",
            "3 baselines need at least as many samples, not 2.",
        ),
    ],
)
def test_bad_parameters(spec, sentence):
    with pytest.raises(InputError) as caught:
        methods.build(spec)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


# -- real models -------------------------------------------------------------------------------------------------------


def sentences(data_dir, count):
    with gzip.open(data_dir / "sst2" / "dev.tsv.gz", "rt", encoding="utf-8") as file:
        return [line.split("\t")[0] for line in file][:count]


@pytest.mark.registry
def test_adaptive_on_a_real_classifier(sentiment):
    texts = ["a wonderful surprise .", "the jokes are stale ."]
    found = raison.explain(sentiment, texts, "integrated_gradients")
    fine = raison.explain(sentiment, texts, "integrated_gradients(steps=100)")
    for one, other in zip(found, fine, strict=True):
        assert one.diagnostics["baseline"] == "mask" and one.diagnostics["completeness_gap"] <= 0.01
        assert one.diagnostics["points"] < 45
        assert np.linalg.norm(one.scores - other.scores) <= 0.01 * np.linalg.norm(other.scores)


@pytest.mark.full
@pytest.mark.registry
def test_adaptive_on_a_hundred_sentences(sentiment, data_dir, record_property):
    texts = sentences(data_dir, 100)
    found = raison.explain(sentiment, texts, "integrated_gradients")
    fine = raison.explain(sentiment, texts, "integrated_gradients(steps=500)")
    apart = [np.linalg.norm(a.scores - b.scores) / np.linalg.norm(b.scores) for a, b in zip(found, fine, strict=True)]
    totals = [a.diagnostics["value"] - a.diagnostics["baseline_value"] for a in found]
    gaps = [abs(a.diagnostics["completeness_error"] / total) for a, total in zip(found, totals, strict=True)]
    record_property("gaps, mean and largest", f"{np.mean(gaps):.4f}, {max(gaps):.4f}")
    record_property("from 500 steps, largest", f"{max(apart):.4f}")
    record_property("points, mean", f"{np.mean([a.diagnostics['points'] for a in found]):.1f}")
    assert max(gaps) < 0.01 and np.mean(gaps) <= 0.003 and max(apart) < 0.01


def test_a_baseline_at_which_the_gradient_is_not_finite_is_refused():
    hf, tokenizer = tiny_hf("llama", "causal")
    for module in hf.modules():
        if hasattr(module, "variance_epsilon"):
            module.variance_epsilon = 0.0  # an RMS norm of zeros is then 0 / 0
    with pytest.raises(InputError, match="not finite on the way from the baseline 'zero'.*steps=50"):
        raison.explain(load(hf, tokenizer), "the film is", "integrated_gradients(baseline=zero)")
    found = raison.explain(load(hf, tokenizer), "the film is", "integrated_gradients(baseline=zero, steps=5)")
    assert np.isfinite(found.scores).all()
