"""Faithfulness metrics against literal code (oracles/metrics.py), closed forms, and what they promise."""

from __future__ import annotations

import copy
import functools
import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import raison
from raison.core.errors import InputError, RaisonError, Unsupported
from raison.core.records import Example, Span
from raison.core.registry import methods, metrics
from raison.engine import scores_again
from raison.metrics import runner
from raison.metrics.base import AveragedF1, Share, Subject
from raison.models.protocol import Budget, Trace
from raison.models.tasks.function import Function
from raison.testing import tiny_hf, tiny_model
from raison.testing.checks import state_of
from raison.testing.precision import Float64
from tests.helpers import cheap_specs
from tests.oracles import metrics as literal

TEXT = "The film is a lovely surprise, isn't it?"
LONG = "The river begins in the hills above the town, and nobody who lives there has ever seen where the water goes."
TEXTS = ["A dull story with good actors.", TEXT, "Nobody in town expected it."]
WORLDS = {"bert": literal.Bert, "gpt2": literal.Gpt2}
TASKS = {"bert": "classification", "gpt2": "causal"}
# asked by kept sets of units; each has a function of the same name in oracles/metrics.py
LITERAL = (
    "comprehensiveness sufficiency aopc lodds deletion insertion decision_flip decision_flip_first loo_correlation "
    "monotonicity infidelity completeness_gap"
).split()
SOFT = ["soft_sufficiency", "soft_comprehensiveness"]
SANITY = ["max_sensitivity", "randomisation"]
FAITHFUL = [*LITERAL, *SOFT, *SANITY]


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


@functools.cache
def tiny(family):
    return tiny_model(family, TASKS[family])


@functools.cache
def plain(family):
    """A separate eager model with the same weights, and its tokenizer."""
    hf, tokenizer = tiny_hf(family, TASKS[family])
    hf.set_attn_implementation("eager")
    return hf, tokenizer


def measure(model, subjects, chosen, removal=None) -> Any:
    return runner.measure(model, subjects, chosen, removal)


def build(*names):
    return [metrics.build(name) for name in names]


def numbers(model, explanation, names, removal=None, **known):
    """All numbers of some metrics for one explanation, by key."""
    (found,) = measure(model, [Subject(explanation, model=model, **known)], build(*names), removal)
    return {key: value for each in found for key, value in each.items()}


def scored(model, text, scores, **request):
    """An explanation with these scores: the scores themselves, or random ones with this seed; None: all equal."""
    found = raison.explain(model, text, "uniform", **request)
    if scores is None:
        return found
    if isinstance(scores, int):
        scores = np.random.default_rng(scores).normal(size=len(found.units))
    return replace(found, scores=scores)


def world_of(family, explanation, removal):
    hf, tokenizer = plain(family)
    return WORLDS[family](hf, explanation, removal, tokenizer.mask_token_id)


def sets_of(explanation, model, name):
    """The sets of units that a metric would remove; its first question is the whole text."""
    kept = next(metrics.build(name).ask(Subject(explanation, model=model))).units
    assert kept[0].all()
    return [{int(u) for u in np.flatnonzero(~row)} for row in kept[1:]]


def expected(world, explanation, model, samples=64):
    found = {}
    for name in LITERAL:
        if name == "lodds" and not model.probable:
            continue
        more = (
            {"removed": sets_of(explanation, model, f"infidelity(samples={samples})")} if name == "infidelity" else {}
        )
        found.update(getattr(literal, name)(world, explanation, **more))
    return found


def assert_literal(family, explanation, removal="delete", samples=16):
    model, world = tiny(family), world_of(family, explanation, removal)
    names = [f"infidelity(samples={samples})" if name == "infidelity" else name for name in LITERAL]
    found = numbers(model, explanation, names, removal)
    wanted = expected(world, explanation, model, samples)
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-9, atol=1e-9 * abs(world.p(world.units)), err_msg=key)


# -- 1. every number by another route ----------------------------------------------------------------------


@pytest.mark.parametrize("removal", ["delete", "mask", "mask_token"])
@pytest.mark.parametrize("units", ["word", "token"])
@pytest.mark.parametrize("family", WORLDS)
def test_literal(family, units, removal):
    """Random scores and a rationale, one forward pass for each set."""
    model = tiny(family)
    assert removal in model.removals
    assert_literal(family, scored(model, TEXT, 3, units=units), removal)
    enough = "drop(nats=0.05)" if family == "bert" else "argmax"  # this classifier needs no word for its first choice
    rationale = raison.rationalize(model, TEXT, units=units, removal=removal, sufficient=enough)
    assert 0 < rationale.selected.sum() < len(rationale.units)
    assert_literal(family, rationale, removal)


@pytest.mark.parametrize("family", WORLDS)
def test_literal_of_ties_and_long_texts(family):
    """Equal scores are ranked as they stand in the text; areas of many units are asked at twenty steps."""
    model = tiny(family)
    whole = scored(model, LONG, 5)
    assert len(whole.units) > 20
    assert_literal(family, whole)
    assert_literal(family, replace(whole, scores=whole.scores.round()))


@pytest.mark.parametrize("share", ["none", "one", "some", "all", "without order"])
def test_literal_of_selections(share):
    found = scored(tiny("bert"), TEXT, 4)
    size = len(found.units)
    chosen = {"none": [], "one": [size - 1], "all": list(range(size))}.get(share, [1, 5, 2])
    selected = np.isin(np.arange(size), chosen)
    order = None if share == "without order" else np.array(chosen[::-1], np.int64)
    assert_literal("bert", replace(found, selected=selected, order=order))


@pytest.mark.parametrize("target", [0, 1, 2])
def test_literal_of_one_unit(target):
    """Whether the only word speaks for the label or against it."""
    assert_literal("bert", scored(tiny("bert"), "Good", 0, target=target))


@pytest.mark.parametrize("output", ["logit", "log_prob", "prob"])
def test_literal_of_other_outputs(output):
    """f is in the unit of the explanation; p is a probability whatever that unit is."""
    assert_literal("bert", scored(tiny("bert"), TEXT, 6, target=2, output=output))


def test_literal_of_a_contrast():
    """The probability of the one outcome among both."""
    assert_literal("bert", scored(tiny("bert"), TEXT, 6, target=0, contrast=1))


def test_literal_of_pairs():
    assert_literal("bert", scored(tiny("bert"), (TEXT, "A dull story."), 6))


def test_literal_of_written_text():
    """Several tokens: the product of their probabilities, however small it is."""
    explanation = scored(tiny("gpt2"), TEXT, 6, target=" good actors")
    assert len(explanation.target.ids) > 1
    assert_literal("gpt2", explanation)


@pytest.mark.parametrize("units", ["word", "token"])
@pytest.mark.parametrize(
    "family, text, target",
    [("bert", TEXT, 1), ("gpt2", LONG[:45], None), ("gpt2", TEXT, " good actors")],
    ids=["label", "token", "text"],
)
def test_literal_soft(family, text, target, units):
    """The same draws, one forward pass for each of them."""
    model = tiny(family)
    for scores in (3, None):
        explanation = scored(model, text, scores, units=units, target=target)
        found = numbers(model, explanation, SOFT)
        draws = Subject(explanation, model=model).generator("soft")
        wanted = literal.soft(world_of(family, explanation, "delete"), explanation, draws, 8)
        assert 0 < wanted["soft_sufficiency"] < 1 and 0 < wanted["soft_comprehensiveness"] < 1  # nothing trivial
        for key, value in wanted.items():
            assert abs(found[key] - value) < 1e-9, key


def test_random_sets_are_fair_and_the_same_for_all_methods():
    model = tiny("bert")
    one, other = (scored(model, LONG, seed) for seed in (1, 2))
    sets = sets_of(one, model, "infidelity(samples=512)")
    assert len(sets) == 512 and sets == sets_of(other, model, "infidelity(samples=512)")
    drawn = np.array([[u in gone for u in range(len(one.units))] for gone in sets])
    assert np.abs(drawn.mean(0) - 0.5).max() < 0.1  # 4.5 standard deviations
    pairs = np.corrcoef(drawn.T) - np.eye(len(one.units))
    assert np.abs(pairs).max() < 0.25


# -- 2. direction ------------------------------------------------------------------------------------------

WORDS = "grand lovely clever bright plain long grey old slow loud dull bad".split()
WEIGHTS = np.array([3.0, 2.2, 1.9, 1.4, 0.3, 0.2, -0.1, -0.4, -0.9, -1.3, -1.6, -2.6])
BIAS = -1.0  # the sum of all weights is 2.1: without the best word the other output is larger
BEST = 4  # words that a person would mark


def total(text: str) -> float:
    return BIAS + sum(WEIGHTS[WORDS.index(word)] for word in text.split())


def additive(texts: list[str]) -> list[list[float]]:
    return [[total(text), 0.0] for text in texts]


class Transparent(Function):
    """The same sum as a probability, with embeddings whose entries add up to the weights."""

    offers = frozenset({"score", "gradients"})
    probable = True
    width = 8

    def __init__(self):
        super().__init__(self.logs, "transparent")

    def logs(self, texts):
        sums = np.array([total(text) for text in texts])
        return np.stack([-np.logaddexp(0, -sums), -np.logaddexp(0, sums)], axis=1)

    def trace(self, encodings, targets, *, want, embeddings=None, heads=None, rules=None):
        for i, (encoding, target) in enumerate(zip(encodings, targets, strict=True)):
            assert target.ids == (0,) and target.output == "log_prob"
            weights = [WEIGHTS[WORDS.index(word)] for word in encoding.tokens]
            rows = torch.tensor(weights)[:, None].expand(-1, self.width) / self.width if embeddings is None else None
            rows = embeddings[i] if rows is None else rows
            yield i, Trace(encoding, target, float(-np.logaddexp(0, -(BIAS + float(rows.sum())))), embeddings=rows)


DIRECTED = [
    name for name in metrics if metrics[name].keys[0].direction is not None and "again" not in metrics[name].needs
]
# a text of twelve units is shorter than the default k; the size of scores has no direction; draws cost nothing here
FITTING = {"micro_recall_at_k": "micro_recall_at_k(k=4)", "gold_mass": "gold_mass(sign=positive)"}
FITTING |= {name: f"{name}(samples=64)" for name in SOFT}


@pytest.mark.parametrize("name", DIRECTED)
def test_direction(name):
    """The true weights are better than random scores, and the reverse of them is worse."""
    chosen = metrics.build(FITTING.get(name, name))
    model: Any = Transparent() if "probability" in chosen.needs else raison.load(additive)
    text = " ".join(WORDS)
    example = Example(text, gold=(Span(0, len(" ".join(WORDS[:BEST]))),))
    random = np.random.default_rng(0)
    tried = [WEIGHTS, -WEIGHTS, *random.normal(size=(40, len(WORDS)))]
    subjects = [
        Subject(scored(model, text, scores, target=0), example, model, gold_share=BEST / len(WORDS)) for scores in tried
    ]
    found = measure(model, subjects, [chosen])
    key = chosen.keys[0]
    oracle, reverse, *chance = [float(each[0][key.name]) * (1 if key.direction == "higher" else -1) for each in found]
    assert oracle > np.mean(chance) > reverse
    if "gold" not in chosen.needs and name not in SOFT:  # for a sum, no other scores can do better
        assert oracle >= max(chance)


def test_closed_form():
    """A sum: what each number must be, by hand."""
    model = raison.load(additive)
    text = " ".join(WORDS)
    right = numbers(model, scored(model, text, WEIGHTS, target=0), [n for n in LITERAL if n != "lodds"])
    assert right["loo_correlation"] == pytest.approx(1) and right["monotonicity"] == 1
    assert right["monotone_steps"] == pytest.approx(6 / 12)  # the positive weights
    assert right["completeness_gap"] < 1e-12 and right["infidelity"] < 1e-12 and right["raw_infidelity"] < 1e-12
    assert right["decision_flip"] == pytest.approx(1 / 12) and right["decision_flip_first"] == 1
    first = [WEIGHTS[:k].sum() for k in (1, 1, 2, 3, 6)]  # ⌈q·12⌉ of q = 1, 5, 10, 20, 50 %
    assert right["comprehensiveness"] == pytest.approx(np.mean(first))
    assert right["sufficiency"] == pytest.approx(np.mean(WEIGHTS.sum() - np.array(first)))
    wrong = numbers(model, scored(model, text, -WEIGHTS, target=0), [n for n in LITERAL if n != "lodds"])
    assert wrong["loo_correlation"] == pytest.approx(-1) and wrong["monotonicity"] == 0
    assert wrong["completeness_gap"] == pytest.approx(1) and wrong["decision_flip_first"] == 0
    sets = sets_of(scored(model, text, WEIGHTS, target=0), model, "infidelity")
    drops = np.array([sum(WEIGHTS[u] for u in gone) for gone in sets])
    assert wrong["raw_infidelity"] == pytest.approx(np.mean((2 * drops) ** 2))


@pytest.mark.parametrize("removal", ["delete", "mask", "mask_token"])
def test_an_evaluation_removes_as_it_is_told(removal):
    from raison.studies.evaluate import evaluate

    model = tiny("bert")
    explanation = raison.explain(model, LONG, "leave_one_out", removal=removal)
    found = evaluate(model, [Example(LONG)], ["leave_one_out"], ["aopc"], removal=removal)
    literally = literal.aopc(world_of("bert", explanation, removal), explanation)["aopc"]
    assert found.cell("leave_one_out", "aopc").each[0] == pytest.approx(literally, rel=1e-9)


def test_normalised_sufficiency_has_the_other_direction():
    """Plain sufficiency is a loss; its normalised form is what survives."""
    model = raison.load(additive)
    text = " ".join(WORDS)
    right, wrong = (numbers(model, scored(model, text, sign * WEIGHTS, target=0), ["sufficiency"]) for sign in (1, -1))
    assert right["sufficiency"] < wrong["sufficiency"]
    assert right["normalised_sufficiency"] > wrong["normalised_sufficiency"]


@pytest.mark.parametrize("power", [-80, 40])
def test_numbers_without_a_unit_do_not_depend_on_the_scale(power):
    """A function times a power of two, and so the scores: exactly the same shares, correlations and flips."""
    names = "loo_correlation monotonicity infidelity completeness_gap decision_flip sufficiency comprehensiveness"
    text = " ".join(WORDS)
    for seed in range(3):
        found = []
        for factor in (1.0, 2.0**power):
            model = raison.load(lambda texts, factor=factor: np.array(additive(texts)) * factor)
            explanation = scored(model, text, seed, target=0)
            explanation = replace(explanation, scores=explanation.scores * factor)
            found.append(numbers(model, explanation, names.split()))
        units = {"raw_infidelity", "sufficiency", "comprehensiveness"}
        assert all(found[0][key] == found[1][key] for key in set(found[0]) - units), found


def test_rounding_does_not_break_ties():
    """Five words of weight 0.1 and five of 0.2: their effects are two numbers, though sums of them are rounded."""
    words = dict(zip("a b c d e f g h i j".split(), [0.1, 0.2] * 5, strict=True))
    model = raison.load(lambda texts: [[sum(words[word] for word in text.split()), 0.0] for text in texts])
    explanation = scored(model, " ".join(words), np.array(list(words.values())), target=0)
    found = numbers(model, explanation, ["loo_correlation", "monotonicity"])
    assert found["loo_correlation"] == pytest.approx(1)
    assert found["monotonicity"] == found["monotone_steps"] == 1


# -- 3. curves ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", WORLDS)
def test_curves_begin_and_end_alike(family):
    """Everything removed is the same for all methods; deletion goes from p(x) to p(nothing), insertion back."""
    model = tiny(family)
    names = ["uniform", "random", "position", "leave_one_out", "input_x_gradient", "attention_rollout"]
    for removal in ("delete", "mask_token"):
        explanations = [raison.explain(model, TEXT, name) for name in names]
        world = world_of(family, explanations[0], removal)
        p, nothing = world.p(world.units), world.p(())
        chosen = build("aopc", "lodds", "deletion", "insertion")
        found = measure(model, [Subject(e, model=model) for e in explanations], chosen, removal)
        merged = [{key: value for each in row for key, value in each.items()} for row in found]
        assert len({row["aopc_curve"][-1] for row in merged}) == 1  # the very same number
        assert len({row["lodds_curve"][-1] for row in merged}) == 1
        assert len({round(row["aopc"], 12) for row in merged}) > 1
        for row in merged:
            assert row["aopc_curve"][-1] == pytest.approx(p - nothing, abs=1e-12)
            assert row["lodds_curve"][-1] == pytest.approx(math.log(nothing / p), abs=1e-9)
            np.testing.assert_allclose(row["deletion_curve"][[0, -1]], [p, nothing], atol=1e-12)
            np.testing.assert_allclose(row["insertion_curve"][[0, -1]], [nothing, p], atol=1e-12)


# -- 4. constant models ------------------------------------------------------------------------------------


def subject(model, text, method, seed=0, **known):
    """An explanation by a method that can be asked again."""
    chosen = methods.build(method)
    found = raison.explain(model, text, chosen, seed=seed)
    again = functools.partial(scores_again, method=chosen, explanation=found, seed=seed)
    return Subject(found, model=model, seed=seed, again=again, **known)


def test_constant_function():
    """Every method and metric that a function allows: finite numbers, and no warning (warnings are errors)."""
    model = raison.load(lambda texts: [[0.2, 0.5, 0.3]] * len(texts))
    example = Example(TEXT, gold=(Span(4, 8),))
    chosen = [m for m in build(*metrics) if m.needs <= {"score", "gold", "choice"}]
    assert {m.name for m in chosen} >= set(LITERAL) - {"lodds"}
    names = cheap_specs.fitting(model)
    assert "leave_one_out" in names
    subjects = [subject(model, example, cheap_specs.light(name), example=example) for name in names]
    for row in measure(model, subjects, chosen):
        assert_finite(row)


def test_constant_transformer():
    """A classifier whose weights are zero says the same of every text; its gradients are zero."""
    hf, tokenizer = tiny_hf("bert", "classification")
    model = raison.load(hf, tokenizer)
    assert "gradients" in model.offers
    with torch.no_grad():
        hf.classifier.weight.zero_()
    example = Example(TEXT, gold=(Span(4, 8),))
    # as many draws as it takes; what they cost is not the point here
    few = {"max_sensitivity": "max_sensitivity(samples=1)", "randomisation": "randomisation(levels=1)"}
    chosen = build(*(few.get(name, name) for name in metrics))
    shared: dict = {}
    subjects = [
        subject(model, example, cheap_specs.light(name), example=example, cache=shared)
        for name in cheap_specs.fitting(model)
    ]
    for row in measure(model, subjects, chosen):
        assert_finite(row)
        found = {key: value for each in row for key, value in each.items()}
        assert found["comprehensiveness"] == found["sufficiency"] == found["aopc"] == found["lodds"] == 0
        assert found["decision_flip"] == 1 and found["decision_flip_first"] == 0
        assert found["loo_correlation"] == 0 and found["infidelity"] == 0
        assert found["normalised_sufficiency"] == found["soft_sufficiency"] == 1
        assert found["normalised_comprehensiveness"] == found["soft_comprehensiveness"] == 0


def assert_finite(row):
    for each in row:
        for key, value in each.items():
            assert np.isfinite(np.asarray(float(value) if isinstance(value, (Share, AveragedF1)) else value)).all(), key


# -- 5. contract of every metric ---------------------------------------------------------------------------


@functools.cache
def measured_subjects():
    """Two methods and a rationale on two texts with a gold rationale, and on one text of a single unit."""
    model = tiny("bert")
    shared: dict = {}
    found = []
    for text in TEXTS[:2]:
        example = Example(text, gold=(Span(2, 12),))
        found += [
            subject(model, example, name, example=example, gold_share=0.3, cache=shared)
            for name in ("leave_one_out", "random")
        ]
        rationale = raison.rationalize(model, text)
        found.append(replace(found[-1], explanation=rationale))
    example = Example("Good", gold=(Span(0, 4),))
    found.append(subject(model, example, "leave_one_out", example=example, gold_share=0.3, cache=shared))
    return found


def same(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_array_equal(as_array(value), as_array(other[key]), err_msg=key)
    return True


def as_array(value):
    if isinstance(value, Share):
        return np.array([value.part, value.whole])
    return np.array(value.sums) if isinstance(value, AveragedF1) else np.asarray(value)


@pytest.mark.parametrize("name", list(metrics))
def test_contract(name):
    """Keys, range, kinds of numbers, and the same numbers from a second call."""
    (chosen,) = build(name)
    keys = {key.name: key for key in chosen.keys}
    assert chosen.keys[0].name.startswith(name) and len(keys) == len(chosen.keys)
    for key in chosen.keys:
        assert key.direction in ("higher", "lower", None) and key.range.low < key.range.high
    subjects = measured_subjects()
    found = [row[0] for row in measure(tiny("bert"), subjects, [chosen])]
    for each in found:
        assert tuple(each) == tuple(keys)
        for name_of_key, value in each.items():
            key = keys[name_of_key]
            assert key.pooled == isinstance(value, (Share, AveragedF1)), key
            if isinstance(value, Share):
                assert 0 <= value.part <= value.whole
                continue
            assert key.curve == (np.ndim(value) == 1)
            assert key.curve == key.name.endswith("_curve")
            number = float(value) if key.pooled else value
            assert np.isfinite(number).all() or "gold" in chosen.needs  # what has no gold may be undefined
            limits = key.range_for(probabilities=True)  # a classifier gives probabilities
            assert limits.low <= np.min(number) and np.max(number) <= limits.high, key
    curves = {key.name: {np.shape(each[key.name]) for each in found} for key in chosen.curve_keys()}
    assert all(len(shapes) == 1 for shapes in curves.values())  # one grid for texts of any length
    again = [row[0] for row in measure(tiny("bert"), subjects, [metrics.build(name)])]
    assert all(same(one, other) for one, other in zip(found, again, strict=True))


OTHERS = {int: 3, float: 0.6, tuple: (0.3, 0.7), type(None): 3}


@pytest.mark.parametrize("name", list(metrics))
def test_specs(name):
    """A metric is what its spec says, with and without parameters."""
    (chosen,) = build(name)
    assert str(chosen.spec()) == name and metrics.build(str(chosen.spec())) == chosen
    for item in fields(chosen):
        if type(item.default) not in OTHERS:
            continue
        other = replace(chosen, **{item.name: OTHERS[type(item.default)]})
        assert other != chosen and item.name in str(other.spec())
        assert metrics.build(str(other.spec())) == other


@pytest.mark.parametrize(
    "spec",
    [
        *(f"{name}(steps={value})" for name in ("aopc", "lodds", "deletion", "insertion") for value in (0, -1, 1.5)),
        *(f"{name}(samples={value})" for name in ("infidelity", *SOFT, "max_sensitivity") for value in (0, 2.5)),
        *(f"{name}(shares={value})" for name in ("comprehensiveness", "sufficiency") for value in ("()", "(0,)", "2")),
        *(f"{name}(shares={value})" for name in ("comprehensiveness", "sufficiency") for value in ("(1.5,)", "(-.1,)")),
        "max_sensitivity(radius=0)",
        "max_sensitivity(radius=-1)",
        "randomisation(levels=0)",
        "aopc(stepz=3)",
    ],
)
def test_parameters_that_make_no_sense(spec):
    with pytest.raises(InputError) as caught:
        metrics.build(spec)
    assert_sentence(caught.value)


def test_company_does_not_matter():
    """Alone or with all other metrics and subjects: the same bits, where a row of a batch is a batch of its own."""
    model = copy.copy(tiny("bert"))
    model.budget = Budget(tokens=1)
    subjects = [replace(each, model=model) for each in measured_subjects()[1:5]]
    few = {name: f"{name}(samples=2)" for name in ("infidelity", *SOFT)}
    chosen = [m for m in build(*(few.get(name, name) for name in metrics)) if "again" not in m.needs]
    together = measure(model, subjects, chosen)
    for row, one in zip(together, subjects, strict=True):
        for i, metric in enumerate(chosen):
            assert same(row[i], measure(model, [one], [metric])[0][0])
    assert all(
        same(row[i], other[-1 - i])
        for row, other in zip(together, measure(model, subjects[::-1], chosen[::-1])[::-1], strict=True)
        for i in range(len(chosen))
    )


@pytest.mark.parametrize("family", WORLDS)
def test_company_of_the_same_text_in_a_template_does_not_matter(family):
    """The same tokens twice, once with parts that may not be removed: two questions, not one."""
    model = tiny(family)
    example = Example.from_template("Review: {body} Verdict", body="a lovely surprise")
    found = [raison.explain(model, text, "random") for text in (example, example.text)]
    assert len(found[0].units) < len(found[1].units) and found[0].target == found[1].target
    subjects = [Subject(each, model=model) for each in found]
    for order in (subjects, subjects[::-1]):
        for one, row in zip(order, measure(model, order, build(*LITERAL)), strict=True):
            for each, alone in zip(row, measure(model, [one], build(*LITERAL))[0], strict=True):
                for key, value in alone.items():
                    np.testing.assert_allclose(each[key], value, atol=1e-12, err_msg=key)


def test_company_of_a_function_does_not_matter():
    model = raison.load(additive)
    texts = [" ".join(WORDS), " ".join(WORDS[::2]), " ".join(WORDS)]
    subjects = [Subject(scored(model, text, seed, target=0), model=model) for seed, text in enumerate(texts)]
    chosen = [m for m in build(*metrics) if m.needs == {"score"}]
    together = measure(model, subjects, chosen)
    for row, one in zip(together, subjects, strict=True):
        assert all(same(row[i], measure(model, [one], [metric])[0][0]) for i, metric in enumerate(chosen))


@pytest.mark.parametrize("family", WORLDS)
def test_batches_change_the_last_digits_at_most(family):
    model = tiny(family)
    subjects = [Subject(raison.explain(model, text, "leave_one_out"), model=model) for text in TEXTS]
    chosen = build(*LITERAL)
    together = measure(model, subjects, chosen)
    for row, one in zip(together, subjects, strict=True):
        for each, metric in zip(row, chosen, strict=True):
            alone = measure(model, [one], [metric])[0][0]
            for key, value in alone.items():
                np.testing.assert_allclose(each[key], value, atol=1e-12)


@pytest.mark.parametrize("family", WORLDS)
def test_one_call_for_everything(family, monkeypatch):
    """All metrics that ask about sets, of several methods and texts: one call, in which no set stands twice."""
    model = tiny(family)
    asked = []

    def score(questions, **how):
        asked.append(questions)
        return answer(questions, **how)

    names = ("leave_one_out", "random", "uniform")
    subjects = [Subject(raison.explain(model, text, name), model=model) for text in TEXTS for name in names]
    answer = model.score
    monkeypatch.setattr(model, "score", score)
    measure(model, subjects, build(*LITERAL))
    assert len(asked) == 1
    (questions,) = asked
    outputs = {(q.encoding.texts, q.target.output) for q in questions}
    assert len(outputs) == len(questions) == len(TEXTS) * len({output for _, output in outputs})
    for question in questions:
        assert len(np.unique(question.keep, axis=0)) == len(question.keep)
        assert question.keep[:, question.target.given(question.encoding)].all()
    asked.clear()
    measure(model, subjects[:1], build("aopc"))
    assert len(asked) == 1 and len(asked[0]) == 1
    counts = {0, *literal.removed_counts(len(subjects[0].units), 9)}
    assert len(asked[0][0].keep) == len(counts)


# -- methods that are asked again --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["uniform", "random", "position"])
def test_methods_that_look_at_nothing(method):
    """Moving embeddings or shuffling weights can't change what doesn't depend on them."""
    found = measure(tiny("bert"), [subject(tiny("bert"), TEXT, method)], build(*SANITY))[0]
    assert found[0] == {"max_sensitivity": 0}
    assert found[1]["randomisation"] == 1 and (found[1]["randomisation_curve"] == 1).all()


@pytest.mark.parametrize("family", WORLDS)
def test_methods_that_look(family):
    """Sensitive to embeddings (by the radius) and to weights; deterministic; the user's model is untouched."""
    model = tiny(family)
    before = state_of(model)
    for method in ("input_x_gradient", "leave_one_out"):
        names = ["max_sensitivity(radius=0.0002)", "max_sensitivity(radius=0.0001)", "randomisation(levels=2)"]
        double, once, mixed = measure(model, [subject(model, TEXT, method)], build(*names))[0]
        assert 0 < once["max_sensitivity"] < 0.1
        assert double["max_sensitivity"] / once["max_sensitivity"] == pytest.approx(2, rel=0.05)
        assert -1 <= mixed["randomisation"] < 0.95
        assert mixed["randomisation_curve"][-1] == mixed["randomisation"]
        again = measure(model, [subject(model, TEXT, method)], build(*names))[0]
        assert all(same(one, other) for one, other in zip((double, once, mixed), again, strict=True))
    assert state_of(model) == before


def watched(one):
    """The same subject, and the models and scores of every time that it is explained again."""
    seen = []

    def again(model):
        seen.append((model, one.again(model)))
        return seen[-1][1]

    return replace(one, again=again), seen


@pytest.mark.parametrize("family", WORLDS)
def test_literal_max_sensitivity(family):
    """The largest change of the scores; embeddings of the text move by up to the radius, and nothing else moves."""
    model = tiny(family)
    one, seen = watched(subject(model, TEXT, "input_x_gradient"))
    ((found,),) = measure(model, [one], build("max_sensitivity(radius=0.1, samples=5)"))
    assert len(seen) == 5
    changes = [math.dist(scores, one.scores) / math.hypot(*one.scores) for _, scores in seen]
    assert found["max_sensitivity"] == pytest.approx(max(changes), rel=1e-12)
    ids = sorted({int(number) for number in one.explanation.encoding.ids})
    table = model.hf.get_input_embeddings().weight.detach()
    size = math.sqrt(mean_square(table[ids]))
    moves = torch.stack([other.hf.get_input_embeddings().weight.detach() - table for other, _ in seen])  # [n v d]
    rest = [number for number in range(len(table)) if number not in ids]
    assert (moves[:, rest] == 0).all() and (moves[:, ids] != 0).all()
    assert 0.09 * size < moves.abs().max() <= 0.1 * size * (1 + 1e-9)
    assert mean_square(moves[:, ids]) == pytest.approx((0.1 * size) ** 2 / 3, rel=0.1)  # uniform in ±0.1
    inside = {name: weight for name, weight in model.hf.named_parameters() if weight.shape != table.shape}
    for other, _ in seen:
        assert all(torch.equal(dict(other.hf.named_parameters())[name], weight) for name, weight in inside.items())


def mean_square(tensor):
    return float(tensor.double().square().mean())


@pytest.mark.parametrize("family", WORLDS)
def test_literal_randomisation(family):
    """Spearman's ρ by scipy; every weight is a permutation of its own entries, from the output down, in the end all."""
    model = tiny(family)
    one, seen = watched(subject(model, TEXT, "gradient_norm"))
    ((found,),) = measure(model, [one], build("randomisation(levels=2)"))
    assert len(seen) == 2
    expected = [stats.spearmanr(one.scores, scores).statistic for _, scores in seen]
    np.testing.assert_allclose(found["randomisation_curve"], expected, atol=1e-12)
    changed = []
    for other, _ in seen:
        names = set()
        for (name, old), (same_name, new) in zip(model.hf.named_parameters(), other.hf.named_parameters(), strict=True):
            assert name == same_name and torch.equal(old.flatten().sort().values, new.flatten().sort().values)
            if not torch.equal(old, new):
                names.add(name)
        changed.append(names)
    varied = {name for name, weight in model.hf.named_parameters() if len(weight.unique()) > 1}
    upper, whole = changed
    assert whole == varied and upper < whole
    blocks = [{part for name in names for part in name.split(".") if part.isdigit()} for names in changed]
    assert blocks == [{"1"}, {"0", "1"}]  # of two blocks the last comes first
    assert not any("embed" in name or "wte" in name or "wpe" in name for name in upper)


def test_a_cache_shared_by_subjects_changes_nothing():
    model = tiny("bert")
    shared: dict = {}
    texts = TEXTS[:2]
    chosen = build("randomisation(levels=2)", "max_sensitivity(samples=2)")
    together = measure(model, [subject(model, text, "gradient_norm", cache=shared) for text in texts], chosen)
    for text, row in zip(texts, together, strict=True):
        alone = measure(model, [subject(model, text, "gradient_norm")], chosen)[0]
        assert all(same(one, other) for one, other in zip(row, alone, strict=True))


def test_shuffled_weights_forget():
    """With all weights shuffled, a gradient says something else: beaten by no control (which stays at 1)."""
    model = tiny("bert")
    found = [
        measure(model, [subject(model, text, "input_x_gradient")], build("randomisation"))[0][0]["randomisation"]
        for text in TEXTS
    ]
    assert np.mean(found) < 0.7


def test_another_seed_gives_other_draws():
    model = tiny("bert")
    explanation = scored(model, TEXT, 3, target=1)
    names = ["infidelity", *SOFT]
    one, other = (numbers(model, explanation, names, seed=seed) for seed in (0, 1))
    assert all(one[key] != other[key] for key in one)


# -- 6. needs ----------------------------------------------------------------------------------------------


def assert_sentence(error: RaisonError):
    text = str(error)
    assert text.endswith(".") and "\n" not in text and text.count(". ") <= 1, text
    assert len(text) > 20 and "None" not in text and "object" not in text, text


@pytest.mark.parametrize("name", [name for name in metrics if "gold" in metrics[name].needs])
def test_needs_gold(name):
    explanation = scored(tiny("bert"), TEXT, 0)
    for example in (None, Example(TEXT)):
        with pytest.raises(InputError, match="no human rationale") as caught:
            measure(tiny("bert"), [Subject(explanation, example, tiny("bert"))], build(name))
        assert_sentence(caught.value)


@pytest.mark.parametrize("name", [name for name in metrics if metrics[name].needs & {"probability", "gradients"}])
def test_functions_have_no_probabilities_and_no_inside(name):
    model = raison.load(additive)
    with pytest.raises(Unsupported, match=name) as caught:
        measure(model, [subject(model, " ".join(WORDS), "random")], build(name))
    assert_sentence(caught.value)


def test_regressions_have_no_probabilities():
    model = tiny_model("bert", "classification", labels=1)
    explanation = scored(model, TEXT, 0)
    for name in ("lodds", *SOFT):
        with pytest.raises(Unsupported, match="probabilities") as caught:
            numbers(model, explanation, [name])
        assert_sentence(caught.value)
    found = numbers(model, explanation, ["completeness_gap", "aopc"])
    whole, nothing = (float(model.score([q])[0].value[0, 0]) for q in ends(explanation))
    assert found["aopc_curve"][-1] == pytest.approx(whole - nothing, abs=1e-9)  # of what it predicts


def ends(explanation):
    from raison.models.protocol import Question

    given = explanation.target.given(explanation.encoding)
    return [Question(explanation.encoding, explanation.target, keep[None]) for keep in (given | True, given)]


@pytest.mark.parametrize("name", SANITY)
def test_scores_from_elsewhere_cannot_be_made_again(name):
    with pytest.raises(Unsupported, match=f"{name} .*method") as caught:
        numbers(tiny("bert"), scored(tiny("bert"), TEXT, 0), [name])
    assert_sentence(caught.value)


@pytest.mark.parametrize("name", FAITHFUL)
def test_faithfulness_needs_a_model(name):
    with pytest.raises(Unsupported, match=f"{name} has to ask the model") as caught:
        measure(None, [Subject(scored(tiny("bert"), TEXT, 0))], build(name))
    assert_sentence(caught.value)


def test_unknown_removals_are_refused():
    explanation = scored(tiny("bert"), TEXT, 0)
    with pytest.raises(InputError, match="mask_token") as caught:
        numbers(tiny("bert"), explanation, ["aopc"], removal="eraser")
    assert_sentence(caught.value)
    model = raison.load(additive)
    with pytest.raises(Unsupported, match="deleted"):
        numbers(model, scored(model, " ".join(WORDS), 0, target=0), ["aopc"], removal="mask_token")
