"""Whether attention explains: every number of an audit beside its formula."""

from __future__ import annotations

import copy
import json
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

import raison
from raison.attention_models.adapter import adapted
from raison.cli.app import app, assemble
from raison.core.errors import InputError, RaisonError, Unsupported
from raison.core.records import Example
from raison.metrics.attention import (
    information_of_states,
    jensen_shannon,
    kendall_defined,
    kendall_tau,
    permuted_attention,
    total_variation,
)
from raison.metrics.statistics import mean_interval
from raison.models.load import load
from raison.show.audit import rows_of
from raison.show.html.audit import audit_page
from raison.studies.audit.adversary import Adversary, answers, reattended, trained_adversary
from raison.studies.audit.diagnostics import chosen_short
from raison.studies.audit.divergence import jsd, tvd
from raison.studies.audit.importance import influence, real_tokens, state_gradients, state_removals
from raison.studies.audit.instance import (
    CLOSE,
    STARTS,
    corners,
    instance_divergence,
    pairs,
    searched,
    shares_of,
)
from raison.studies.audit.run import Audit, Spread, audit
from raison.testing import tiny_hf
from raison.training.class_data import Line, padded
from raison.training.f1 import f1_of
from raison.training.seeds import generator
from tests.test_attention_classifier import DESIGNS, SMALL, built, reviews

TEXT = "a lovely film and a very dull ending"


def model_of(**design):
    hf = built(**design)
    return adapted(hf, hf.tokenizer, "tiny")


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    from raison.attention_models.train import train_classifier

    folder = tmp_path_factory.mktemp("taught")
    train_classifier(reviews(300), out=folder / "m", design={"width": 16}, lesson=SMALL)
    return folder / "m"


# -- importance and influence ----------------------------------------------------------------------------------


@pytest.mark.parametrize("design", DESIGNS)
def test_importance_of_states_is_the_formula(design):
    model = model_of(**design)
    encodings = model.encode([Example(TEXT), Example("it is dull"), Example(TEXT + " and loud")])
    gradients, removals = state_gradients(model, encodings), state_removals(model, encodings)
    for number, encoding in enumerate(encodings):
        ids = torch.tensor(encoding.ids)[None]
        told = model.hf(ids)
        read = told.read.detach().requires_grad_()
        scores = model.hf.scorer(read)
        logits = model.hf.decoder((model.hf.normalizer(scores, told.real)[:, None] @ read)[:, 0])
        best = int(logits.argmax())
        logits.softmax(-1)[0, best].backward()
        sizes = read.grad[0, 1:-1].norm(dim=-1).numpy()
        np.testing.assert_allclose(gradients[number], sizes / sizes.sum(), atol=1e-9)
        moved = []
        for i in range(1, len(encoding) - 1):
            left = told.real.clone()
            left[0, i] = False
            weights = model.hf.normalizer(told.scores, left)
            alone = model.hf.decoder((weights[:, None] @ told.read)[:, 0]).softmax(-1)[0, best]
            moved.append(abs(float(told.logits.softmax(-1)[0, best] - alone)))
        np.testing.assert_allclose(removals[number], np.array(moved) / sum(moved), atol=1e-9)


@pytest.mark.parametrize("design", DESIGNS[:3])
def test_influence_is_the_formula(design):
    model = model_of(**design)
    (encoding,) = model.encode([Example(TEXT)])
    ids = torch.tensor(encoding.ids)[None]
    n = len(encoding) - 2
    sizes, facets = np.zeros((n, n)), np.zeros((n, n))
    table = model.hf.words
    leaf = table(ids).detach().requires_grad_()
    there = torch.ones_like(ids, dtype=torch.bool)
    told = {"none": lambda h: h, "concat": lambda h: torch.cat([h, leaf], -1)}[design.get("combine", "none")]
    states = told(model.hf.encoder(leaf, there, None))[0]  # what attention reads
    for p in range(n):
        (slope,) = torch.autograd.grad(states[p + 1].norm(), leaf, retain_graph=True)
        sizes[p] = slope[0, 1:-1].norm(dim=-1).numpy()
        for f in range(states.shape[-1]):
            (slope,) = torch.autograd.grad(states[p + 1, f], leaf, retain_graph=True)
            facets[p] += slope[0, 1:-1].square().sum(-1).numpy()
    # behind a fresh LayerNorm all states are of one size, so its slopes are little more than rounding
    rough = 1e-2 if design.get("encoder") == "transformer" else 1e-7
    np.testing.assert_allclose(influence(model, encoding), sizes / sizes.sum(1, keepdims=True), rtol=rough, atol=1e-9)
    facets = np.sqrt(facets)
    np.testing.assert_allclose(
        influence(model, encoding, facets=True), facets / facets.sum(1, keepdims=True), atol=1e-9
    )


def test_influence_in_parts_is_the_same(monkeypatch):
    from raison.studies.audit import importance

    model = model_of()
    (encoding,) = model.encode([Example(TEXT)])
    whole = influence(model, encoding)
    monkeypatch.setattr(importance, "ROWS", 1)
    np.testing.assert_allclose(influence(model, encoding), whole, atol=1e-12)
    bert = load(*tiny_hf("bert", "classification"))
    (encoding,) = bert.encode([Example(raison.testing.tiny.TEXTS[0])])
    found = influence(bert, encoding)
    np.testing.assert_allclose(found.sum(1), 1)


# -- adversaries -----------------------------------------------------------------------------------------------


def test_facets_are_of_texts_that_do_not_take_minutes():
    assert chosen_short([*range(10, 50)]) == list(range(10, 18))  # not the shortest
    assert chosen_short([200, 30, 200, 64, 65]) == [1, 3] and chosen_short([202, 190, 202]) == [1]
    assert chosen_short([20] * 10 + [200] * 90) == list(range(2, 10)) and chosen_short([]) == []


def test_divergences_are_those_of_the_metrics():
    p, q = (torch.rand(4, 6, generator=generator(k), dtype=torch.float64) for k in (1, 2))
    p[0, :3] = 0
    q[1, 2:] = 0
    p, q = p / p.sum(-1, keepdim=True), q / q.sum(-1, keepdim=True)
    np.testing.assert_allclose(jsd(p, q).numpy(), jensen_shannon(p.numpy(), q.numpy()), atol=1e-12)
    np.testing.assert_allclose(tvd(p, q).numpy(), total_variation(p.numpy(), q.numpy()), atol=1e-12)
    one, two = torch.eye(6, dtype=torch.float64)[0], torch.eye(6, dtype=torch.float64)[1]
    assert float(jsd(one, two)) == pytest.approx(np.log(2)) and float(jsd(one, one)) == 0
    leaf = p.clone().requires_grad_()
    jsd(leaf, q).sum().backward()
    assert torch.isfinite(leaf.grad).all()


def farthest(own, words, step=0.02):
    """The largest JSD of all attentions on a grid that give the same answer."""
    n = len(own)
    axes = np.meshgrid(*[np.arange(0, 1 + 1e-9, step)] * (n - 1), indexing="ij")
    some = np.stack([*axes, 1 - sum(axes)], -1).reshape(-1, n)
    some = some[some[:, -1] > -1e-9].clip(0)
    same = total_variation(shares_of(some @ words), np.broadcast_to(shares_of(own @ words), (len(some), len(words[0]))))
    kept = some[same <= CLOSE]
    return max([0.0, *jensen_shannon(kept, np.broadcast_to(own, kept.shape))]) if len(kept) else 0.0


@pytest.mark.parametrize("number", range(12))
def test_two_classes_have_their_farthest_attention_in_a_corner(number):
    """No grid finds anything farther, and a fine one comes near."""
    rng = np.random.default_rng(number)
    own = rng.dirichlet([0.7] * 3)
    words = rng.normal(size=(3, 2)) * rng.choice([0.3, 2.0, 6.0])
    exact, found = corners(own, words[:, 1] - words[:, 0]), farthest(own, words, 0.005)
    assert found - 1e-9 <= exact <= found + 0.03
    four, more = rng.dirichlet([0.7] * 4), rng.normal(size=(4, 2)) * 2
    assert corners(four, more[:, 1] - more[:, 0]) >= farthest(four, more) - 1e-9


def test_corners_that_are_known():
    one = np.array([1.0, 0, 0, 0])
    assert corners(one, np.zeros(4)) == pytest.approx(np.log(2))  # all words say the same
    # a word that decides everything and has all attention: of another only as much as leaves the answer alone
    assert 0 < corners(one, np.array([60.0, -60, -60, -60])) < 0.3
    assert corners(np.ones(1), np.zeros(1)) == 0


def test_more_classes_are_searched():
    rng = np.random.default_rng(3)
    for number in range(4):
        own, words = rng.dirichlet([0.7] * 3), rng.normal(size=(3, 3))
        starts = torch.randn(STARTS, 3, generator=generator(number), dtype=torch.float64)
        found = max(pairs(own, words), searched([own], [words], [starts], 300)[0])
        best = farthest(own, words, 0.01)
        assert best - 0.08 <= found <= best + 0.02
    # the same words twice in a class that nobody says: two classes again
    own, words = rng.dirichlet([0.7] * 5), rng.normal(size=(5, 2))
    three = np.concatenate([words, np.full((5, 1), -50.0)], 1)
    exact = corners(own, words[:, 1] - words[:, 0])
    assert exact - 0.05 <= pairs(own, three) <= exact
    # words that all say the same: the search goes as far as it can
    start = torch.randn(STARTS, 4, generator=generator(3), dtype=torch.float64)
    assert searched([np.array([1.0, 0, 0, 0])], [np.zeros((4, 3))], [start], 1200)[0] > 0.6


@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "so", "yes")])
def test_a_text_is_searched_as_if_it_were_alone(labels):
    model = model_of(labels=labels)
    encodings = model.encode(reviews(6))
    real = [real_tokens(encoding, model) for encoding in encodings]
    found, most = instance_divergence(model, encodings, real, steps=60)
    assert ((found >= 0) & (found <= most + 1e-9)).all() and (most <= np.log(2)).all() and (found > 0.1).any()
    for k in range(6):
        alone, _ = instance_divergence(model, encodings[k : k + 1], real[k : k + 1], steps=60)
        assert alone[0] == pytest.approx(found[k], abs=1e-6)


def test_trained_adversaries(taught):
    model = load(taught)
    lines = [
        Line(tuple(model.tokenizer(e.text)["input_ids"]), model.labels.index(e.label)) for e in reviews(160, seed=3)
    ]
    before = {name: weight.clone() for name, weight in model.hf.state_dict().items()}
    settings = {"epochs": 6, "batch": 16, "lr": 1e-2}
    none = trained_adversary(model, lines[:128], lines[128:], kind="frozen", lam=0.0, **settings)
    frozen = trained_adversary(model, lines[:128], lines[128:], kind="frozen", lam=5.0, **settings)
    free = trained_adversary(model, lines[:128], lines[128:], kind="unfrozen", lam=0.5, **settings)
    assert none.tvd < 0.1 and frozen.jsd > 0.1 and frozen.accuracy < 0.8  # answers go where attention goes
    assert free.jsd > 0.3 and free.tvd < 0.2 and free.accuracy > 0.9  # a new model says the same by other attention
    assert all(torch.equal(before[name], weight) for name, weight in model.hf.state_dict().items())


def test_what_adversaries_take_from_the_base_is_what_it_says(taught):
    model = load(taught)
    lines = [Line(tuple(model.tokenizer(e.text)["input_ids"]), 0) for e in reviews(20, seed=4)]
    ids, there, _ = padded(lines)
    other = copy.deepcopy(model.hf)
    torch.manual_seed(0)
    for parameter in other.scorer.parameters():
        torch.nn.init.normal_(parameter)
    with torch.no_grad():
        told, mine = model.hf(ids, attention_mask=there), other(ids, attention_mask=there)
        logits, weights = reattended(other, told.read, told.real)
    assert torch.equal(logits, mine.logits) and torch.equal(weights, mine.weights)
    assert not torch.allclose(weights, told.weights, atol=0.01)
    known, more = answers(model.hf, lines, batch=7), answers(model.hf, lines, batch=7, states=True)
    for row, (line, said, own) in enumerate(zip(lines, told.logits.softmax(-1), told.weights, strict=True)):
        assert torch.allclose(known[id(line)][0], said, atol=1e-6) and len(known[id(line)]) == 2
        assert torch.allclose(known[id(line)][1], own[: len(line)], atol=1e-6) and not own[len(line) :].any()
        _, same, read, real = more[id(line)]
        assert torch.equal(same, known[id(line)][1]) and real.tolist() == told.real[row, : len(line)].tolist()
        assert torch.allclose(read, told.read[row, : len(line)], atol=1e-6)


# -- the audit -------------------------------------------------------------------------------------------------


def test_an_audit_tells_what_its_parts_tell(taught):
    model = load(taught)
    data = reviews(40, seed=5)
    found = audit(model, data, permutations=12, show=3, texts=["a lovely film", "dull"])
    encodings = model.encode(data)
    said = np.array([p.target.ids[0] for p in model.predict(encodings)])
    gold = np.array([model.labels.index(e.label) for e in data])
    assert found.accuracy == (said == gold).mean() and found.f1 == f1_of(said, gold, 2)
    flat = asked(model, encodings, [np.ones(len(e) - 2) / (len(e) - 2) for e in encodings])
    assert found.replaced["uniform"]["f1"] == pytest.approx(f1_of(flat.argmax(-1), gold, 2))
    own = model.own(encodings)
    masks = [np.arange(len(e)) % (len(e) - 1) > 0 for e in encodings]
    drawn = [
        [
            permuted_attention(weights, mask, seed=1 + 100_003 * number + index)[1:-1]
            for index, (weights, mask) in enumerate(zip(own, masks, strict=True))
        ]
        for number in range(12)
    ]
    f1s = [f1_of(asked(model, encodings, weights).argmax(-1), gold, 2) for weights in drawn]
    assert found.replaced["permuted"]["f1"] == pytest.approx(np.mean(f1s))
    assert found.replaced["permuted"]["versions"] == 12
    assert found.replaced["permuted"]["f1 drop"] == pytest.approx(found.f1 - np.mean(f1s))
    assert found.replaced["uniform"]["accuracy drop"] == pytest.approx(
        found.accuracy - (flat.argmax(-1) == gold).mean()
    )
    gradients = raison.explain(model, [e.text for e in data], method="gradient_norm", units="token", output="prob")
    taus = [kendall_tau(a[1:-1], np.abs(g.scores)) for a, g in zip(own, gradients, strict=True)]
    assert found.agreement["gradient of words"].mean == pytest.approx(np.mean(taus))
    removed = raison.explain(model, [e.text for e in data], method="leave_one_out", units="token", output="prob")
    others = {
        "leaving words out": [np.abs(each.scores) for each in removed],
        "gradient of states": state_gradients(model, encodings),
        "leaving states out": state_removals(model, encodings),
    }
    for name, rows in others.items():
        taus = [
            kendall_tau(a[1:-1], b) for a, b in zip(own, rows, strict=True) if kendall_defined(a[1:-1], np.asarray(b))
        ]
        assert found.agreement[name].mean == pytest.approx(np.mean(taus)), name
    assert len({round(each.mean, 6) for each in found.agreement.values()}) == 4
    for name, rows in (("attention", [a[1:-1] for a in own]), ("gradient of words", [g.scores for g in gradients])):
        each = [stats.entropy(np.abs(row)) / np.log(len(row)) for row in rows if len(row) > 1]
        assert found.entropy[name].mean == pytest.approx(np.mean(each), abs=1e-6), name
    likely, words, states = [], [], []
    for encoding, label, right in zip(encodings, said, said == gold, strict=True):
        ids = torch.tensor([encoding.ids.tolist()])
        with torch.no_grad():
            told = model.hf(ids, attention_mask=torch.ones_like(ids))
            alone = model.hf.decoder(told.read).softmax(-1)[0, 1:-1, label]
        words.append(told.embeddings[0, 1:-1].numpy())
        states.append(told.read[0, 1:-1].numpy())
        likely += [float(alone.mean())] if right else []
    assert found.token_probability.mean == pytest.approx(np.mean(likely), abs=1e-6)
    order = [owner for each in model.passes(encodings) for owner in each.owners]
    told = information_of_states(*(np.concatenate([rows[k] for k in order]) for rows in (words, states)), seed=0)
    known = found.information["frequent words"]
    assert known["value"] == pytest.approx(told.value, abs=1e-6) and (known["pairs"], known["k"]) == (
        told.pairs,
        told.k,
    )
    assert set(found.entropy) >= {"attention", "gradient of words", "influence", "influence, by facet"}
    assert 0 < found.token_probability.mean <= 1 and 20 < found.instance.count < 40
    assert found.instance.count + found.instance.left_out == 40  # some texts are too short for attention to move far
    assert len(found.texts) == 5 and all(len(each.probability) == len(each.tokens) for each in found.texts)
    assert {found.texts[0].tokens, found.texts[1].tokens} == {("a", "lovely", "film"), ("dull",)}
    assert "explanation" in found.verdict()[-1]
    assert json.loads(found.to_json())["count"] == 40
    page = audit_page(found)
    assert page.count("<svg") >= 8 and found.verdict()[-1] in page and "<script" not in page


def test_a_spread_is_a_mean_with_its_interval():
    values = [0.1, 0.9, 0.4, 0.35, float("nan"), 0.8]
    known = [v for v in values if v == v]
    found = Spread.of(values, seed=5)
    assert found.mean == pytest.approx(np.mean(known)) and (found.count, found.left_out) == (5, 1)
    assert found.deviation == pytest.approx(np.std(known, ddof=1))
    sure = mean_interval(known, level=0.95, seed=5)
    assert (found.low, found.high) == (sure.low, sure.high)


def test_special_tokens_that_somebody_typed_are_no_words(taught):
    model = load(taught)
    found = audit(
        model, [Example("the lovely [SEP] film [PAD] is dull", label="positive"), Example("dull", label="negative")]
    )
    assert found.texts[0].tokens == ("the", "lovely", "film", "is", "dull")
    assert sum(found.texts[0].attention) == pytest.approx(1, abs=1e-3)
    assert found.instance.count == 1 and found.instance.left_out == 1
    assert "NaN" not in found.to_json()


def asked(model, encodings, weights):
    """[n c] the whole model with other attention, a text at a time."""
    rows = []
    for encoding, row in zip(encodings, weights, strict=True):
        given = torch.zeros(1, len(encoding))
        given[0, 1:-1] = torch.from_numpy(row)
        with torch.no_grad():
            rows.append(model.hf(torch.tensor(encoding.ids)[None], weights=given).logits[0].numpy())
    return np.array(rows)


def test_encoders_of_transformers_have_what_is_defined_for_them():
    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    model = load(hf, tokenizer)
    data = [Example(text, label=model.labels[k % 2]) for k, text in enumerate(raison.testing.tiny.TEXTS)]
    found = audit(model, data)
    assert not found.replaced and found.instance is None and found.token_probability is None
    assert set(found.agreement) == {"gradient of words", "leaving words out"} and found.entropy["influence"].count
    assert audit_page(found)


def spread_of(mean, values=(), low=None, high=None, count=90):
    return Spread(mean, mean if low is None else low, mean if high is None else high, 0.0, count, 0, values)


def test_a_verdict_follows_the_numbers():
    def told(drop, tau, mixed, far, **more):
        return Audit(
            "m", "d", 90, 0.9, 0.9,
            replaced={"permuted": {"f1 drop": drop}},
            agreement={"gradient of words": spread_of(tau)},
            entropy={"influence": spread_of(mixed)},
            instance=spread_of(far, (far,) * 90),
            **more,
        ).verdict()  # fmt: skip

    assert told(0.3, 0.7, 0.2, 0.1)[-1] == "Its attention can be read as an explanation of its answers."
    assert told(0.0, 0.1, 0.9, 0.6)[-1] == "Its attention should not be read as an explanation of its answers."
    assert told(0.3, 0.7, 0.9, 0.1)[-1].endswith("with care only: not all tests agree.")
    assert told(0.03, 0.3, 0.5, 0.1)[-1].endswith("with care only: only one test speaks for it.")
    assert told(0.3, 0.7, 0.2, 0.6)[-1] == "Its attention can be read as an explanation of its answers."
    assert "as it is with nearly every model" in told(0.3, 0.7, 0.2, 0.6)[3]
    assert told(-0.03, 0.7, 0.2, 0.1)[0].startswith(
        "With its attention weights shuffled among the words F1 rises by 3.0"
    )
    assert "F1 does not fall" in told(-0.0001, 0.7, 0.2, 0.1)[0]
    assert "falls by 5.0 points: answers depend on" in told(0.0496, 0.7, 0.2, 0.1)[0]  # what is compared is printed
    frozen = Adversary("frozen", 1.0, 0.6, 0.1, 0.7, 0.7)
    assert told(0.3, 0.7, 0.2, 0.1, adversaries=(frozen,))[-2].endswith("(JSD 0.60) costs 20.0 points of accuracy.")
    assert "not all tests agree" in told(0.3, 0.7, 0.2, 0.1, adversaries=(replace(frozen, accuracy=0.9),))[-1]
    assert told(0.3, 0.7, 0.2, 0.1, commonest=0.89)[0].endswith("would be on 89%: there is little to explain.")


def test_a_verdict_says_what_is_not_decided():
    none = spread_of(float("nan"), count=0)
    replaced = {"permuted": {"f1 drop": float("nan"), "accuracy drop": 0.06}}
    only = Audit(
        "m", "d", 30, 1.0, float("nan"), replaced=replaced, instance=none, agreement={"gradient of words": none}
    )
    assert only.verdict()[0].endswith("accuracy falls by 6.0 points: answers depend on where attention looks.")
    assert len(only.verdict()) == 2 and only.verdict()[-1].endswith("only one test speaks for it.")
    assert "nan" not in " ".join(only.verdict())
    three = replace(only, count=3).verdict()
    assert "depend somewhat" in three[0] and three[-1].endswith("no test decides.")
    few = Audit("m", "d", 4, 1.0, 1.0, agreement={"gradient of words": spread_of(0.55, low=0.06, high=0.8, count=4)})
    assert few.verdict()[0].endswith("agrees in part with the words' importance by gradients (mean τ-b 0.55, 0.06 to "
                                     "0.80 on 4 texts).")  # fmt: skip
    assert few.verdict()[-1].endswith("no test decides.")
    assert Audit("m", "d", 4, 1.0, 1.0).verdict()[-1].startswith("Too little is defined")


def test_texts_of_one_class_and_texts_without_words(taught):
    model = load(taught)
    negative = [e for e in reviews(40) if e.label == "negative"]
    found = audit(model, negative, deep=4, show=0)
    assert np.isnan(found.f1) and found.accuracy == 1 and json.loads(found.to_json())["f1"] is None
    rows = {row.name: (row.value, row.about) for row in rows_of(found)}
    assert rows["F1"] == ("–", "not defined: no text is positive") and "F1 with uniform attention" not in rows
    assert "accuracy with uniform attention" in rows and "nan" not in " ".join(found.verdict())
    empty = [Example("[SEP] [CLS]", label="negative"), Example("[PAD]", label="positive")]
    wordless = audit(model, empty, deep=2, show=0)
    assert wordless.replaced["permuted"]["accuracy drop"] == 0 and wordless.instance.count == 0
    assert "nan" not in " ".join(wordless.verdict()) and audit_page(wordless)


def test_what_is_done_is_kept_and_not_done_again(taught, tmp_path, monkeypatch):
    model, texts = load(taught), reviews(24)
    asked_for = {"deep": 4, "show": 1, "adversaries": ["frozen"], "train": reviews(40, seed=7), "epochs": 2}
    plain = audit(model, texts, **asked_for)
    with monkeypatch.context() as broken:  # somebody pulls the plug while the adversary learns

        def stopped(*args, **kwargs):
            raise KeyboardInterrupt

        broken.setattr("raison.studies.audit.diagnostics.trained_adversary", stopped)
        with pytest.raises(KeyboardInterrupt):
            audit(model, texts, keep=tmp_path / "kept", **asked_for)
    there = {path.stem for path in (tmp_path / "kept").iterdir()}
    assert {
        "replaced",
        "agreement",
        "entropy",
        "information",
        "instance",
    } <= there and "adversary-frozen-1" not in there
    with monkeypatch.context() as idle:
        for name in ("agreement", "entropy", "replaced", "instance", "information"):
            idle.setattr(f"raison.studies.audit.diagnostics.Looked.{name}", None)
        found = audit(model, texts, keep=tmp_path / "kept", **asked_for)
    assert found == plain and found.to_json() == plain.to_json()
    (tmp_path / "kept" / "entropy.json").write_text("{")  # damaged: made again
    assert audit(model, texts, keep=tmp_path / "kept", **asked_for) == plain
    with pytest.raises(InputError, match="keeps an audit with another settings: delete it"):
        audit(model, texts, keep=tmp_path / "kept", **{**asked_for, "deep": 5})
    with pytest.raises(InputError, match="keeps an audit with another model"):
        audit(model, texts[:20], keep=tmp_path / "kept", **asked_for)
    with pytest.raises(InputError, match="holds something else than an audit"):
        audit(model, texts, keep=taught, **asked_for)


def test_a_stopped_adversary_says_what_is_kept(taught, tmp_path, monkeypatch):
    lines = [Line(tuple(load(taught).tokenizer(e.text)["input_ids"]), 0) for e in reviews(64, seed=3)]

    @contextmanager
    def impatient():
        calls = iter(range(100))
        yield lambda: next(calls) > 2

    settings = {"kind": "frozen", "lam": 1.0, "epochs": 4, "batch": 16}
    whole = trained_adversary(load(taught), lines[:48], lines[48:], **settings, folder=tmp_path / "whole")
    assert not (tmp_path / "whole").exists()
    with monkeypatch.context() as patched:
        patched.setattr("raison.training.fit.stop_asked", impatient)
        with pytest.raises(RaisonError, match="nothing of this audit is kept: with --keep FOLDER it could go on"):
            trained_adversary(load(taught), lines[:48], lines[48:], **settings)
        with pytest.raises(RaisonError, match="the same command goes on from there"):
            trained_adversary(load(taught), lines[:48], lines[48:], **settings, folder=tmp_path / "half")
    assert trained_adversary(load(taught), lines[:48], lines[48:], **settings, folder=tmp_path / "half") == whole


def test_what_adversaries_learn_from(taught, tmp_path):
    model = load(taught)
    with pytest.raises(InputError, match="or give them \\(--train\\)"):
        audit(model, reviews(9), adversaries=["frozen"], deep=2, show=0)
    with pytest.raises(InputError, match="labelled texts, and there are none, or some without a label"):
        audit(model, reviews(9), adversaries=["frozen"], train=[Example("a film")], deep=2, show=0)
    file = tmp_path / "few.csv"
    file.write_text("\n".join(["text,label", *(f"{e.text},{e.label}" for e in reviews(10)), ",positive"]))
    few = {"adversaries": ["unfrozen"], "train": file, "epochs": 1, "deep": 2, "show": 0, "skip_broken": True}
    assert audit(model, reviews(9), **few).adversaries[0].kind == "unfrozen"  # fewer than a batch


def test_a_file_that_the_model_was_trained_on_is_said(tmp_path):
    from raison.attention_models.train import train_classifier

    file, other = tmp_path / "data.csv", tmp_path / "other.csv"
    for place, seed in ((file, 0), (other, 1)):
        place.write_text("\n".join(["text,label", *(f"{e.text},{e.label}" for e in reviews(60, seed=seed))]))
    train_classifier(str(file), out=tmp_path / "m", design={"width": 8}, lesson={**SMALL, "epochs": 1})
    said = "The model was trained on this file"
    assert any(note.startswith(said) for note in audit(tmp_path / "m", str(file), deep=2, show=0).notes)
    found = audit(tmp_path / "m", str(other), deep=2, show=0)
    assert not any(note.startswith(said) for note in found.notes) and found.data == "other.csv"


def test_a_text_of_the_users_own_is_looked_at_before_the_long_work(taught, monkeypatch):
    monkeypatch.setattr("raison.studies.audit.diagnostics.Looked.replaced", None)
    with pytest.raises(InputError, match="empty"):
        audit(load(taught), reviews(9), texts=["fine", ""])


def test_labels_are_known_in_any_case_and_broken_records_can_be_left_out(taught, tmp_path):
    model, file = load(taught), tmp_path / "data.csv"
    rows = [f"{e.text},{str(e.label).upper()}" for e in reviews(20)]
    file.write_text("\n".join(["text,label", *rows, ",positive"]))
    with pytest.raises(InputError, match="skip-broken"):
        audit(model, file, deep=2, show=0)
    found = audit(model, file, deep=2, show=0, skip_broken=True)
    plain = audit(model, reviews(20), deep=2, show=0)
    assert (found.accuracy, found.count, found.f1_of) == (plain.accuracy, 20, "positive")
    assert "1 broken records were left out." in found.notes
    told = {row.name: row.about for row in rows_of(found)}
    assert told["F1"] == "of positive"


def test_bad_input_is_told_in_one_sentence(taught, tmp_path):
    model = load(taught)
    with pytest.raises(InputError, match="have no label, which an audit needs"):
        audit(model, [Example("a film")])
    with pytest.raises(InputError, match="m has no class 'neutral'. Its classes are: negative, positive"):
        audit(model, [Example("a film", label="neutral")])
    with pytest.raises(InputError, match="There are no texts"):
        audit(model, [])
    with pytest.raises(InputError, match="frozen or unfrozen, not 'melted'"):
        audit(model, reviews(5), adversaries=["melted"])
    for wrong, sentence in (({"seed": -1}, "seed"), ({"deep": 0}, "deep"), ({"lambdas": [float("nan")]}, "λ of an")):
        with pytest.raises(InputError, match=sentence):
            audit(model, reviews(5), **wrong)
    with pytest.raises(InputError, match="name a data set with a train part"):
        audit(model, reviews(5), adversaries=["frozen"])
    with pytest.raises(Unsupported, match=r"does not explain itself, which own reads: train a model that does"):
        raison.explain(load(*tiny_hf("bert", "classification")), "a film", method="own")
    with pytest.raises(Unsupported, match="no text classifier"):
        audit(load(*tiny_hf("gpt2", "causal")), reviews(5))
    with pytest.raises(Unsupported, match="raison's own attention classifiers"):
        audit(load(*tiny_hf("bert", "classification")), reviews(5), adversaries=["frozen"])
    file = tmp_path / "data.csv"
    file.write_text("text,label\n" + "\n".join(f"{e.text},{e.label}" for e in reviews(20)))
    assemble()
    args = ["audit", "-m", str(taught), "--data", str(file), "--html", str(tmp_path / "page.html")]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0 and "explanation" in done.stdout and (tmp_path / "page.html").stat().st_size > 5000
    wrong = CliRunner().invoke(app, [*args, "--permutations", "0"])
    assert wrong.exit_code == 2 and "--permutations is a whole number from 1 up" in wrong.stderr
