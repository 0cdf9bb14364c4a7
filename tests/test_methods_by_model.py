"""Every method on every kind of model: it runs, or is refused in a sentence; no pair of the two is left out."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest

import raison
from raison.core.errors import Unsupported
from raison.core.registry import methods
from raison.testing import tiny_model
from raison.testing.method_contract import with_remembered_answers
from raison.testing.model_contract import float64_for_exact_models, model_state_hash

pytestmark = pytest.mark.registry

# each kind of model with a short text and what is asked about it
CASES = {
    "sentiment": ("A lovely film with a dull ending.", None),
    "smollm2": ("The capital of Japan is the city of", None),  # the next token
    "qa": (
        ("Who left early?", "She said it was bad, and they left."),
        None,
    ),  # methods that show gains only find some
    "tagger": ("The old town lies on a hill.", "town"),
    "opus": ("中国的首都是北京。", 3),  # "capital"
    "function": ("A lovely film with a dull ending.", None),  # which offers nothing but its answers
}
PAIRS = list(product(methods, CASES))
LIGHT = {  # what draws many samples draws fewer here
    "gradient_shap": "gradient_shap(samples=4)",
    "integrated_gradients": "integrated_gradients(steps=8)",
    "kernel_shap": "kernel_shap(samples=48)",
    "lime": "lime(samples=48)",
    "shapley_sampling": "shapley_sampling(permutations=2)",
    "smooth_grad": "smooth_grad(samples=4)",
}
# what knows nothing of the model may give nothing
QUIET = ("raison.methods.random", "raison.methods.uniform", "raison.methods.position")

ran: set[tuple[str, str]] = set()
refused: set[tuple[str, str]] = set()
absent: set[str] = set()  # real models that can't be had here; pytest says so for each
states: dict[
    str, str
] = {}  # of the models when they were opened: hashing real weights for each method would take long


def by_words(texts: list[str]) -> list[list[float]]:
    """A model without an inside: more lovely than dull."""
    return [
        [float(text.count("dull")), 2.0 * text.count("lovely") + 0.1 * len(text.split())]
        for text in texts
    ]


@pytest.fixture(scope="module")
def model_of(request):
    """Models by name, each opened once."""
    opened = {}

    def get(where):
        try:
            if where not in opened:
                model = make(request, where)
                opened[where] = with_remembered_answers(
                    model
                )  # predictions and translations are the same for all methods
                states[where] = "" if where == "function" else model_state_hash(model)
        except pytest.skip.Exception:
            absent.add(where)
            raise
        return opened[where]

    return get


def make(request, where):
    if where == "function":
        return raison.load(by_words, labels=["negative", "positive"])
    if where in ("qa", "tagger"):
        return tiny_model("bert", {"qa": "qa", "tagger": "tagging"}[where])
    return request.getfixturevalue(where)


@pytest.mark.parametrize(("name", "where"), PAIRS)
def test_a_method_runs_or_is_refused(model_of, name, where):
    model = model_of(where)
    text, target = CASES[where]
    chosen = methods.build(LIGHT.get(name, name))
    if not chosen.needs <= model.offers:
        with pytest.raises(Unsupported) as caught:
            raison.explain(model, text, method=name, target=target)
        sentence = str(caught.value)
        assert name in sentence and sentence.endswith(".") and "use one of" in sentence
        named = set(sentence.partition("use one of ")[2].rstrip(".").split(", "))
        assert named == {other for other in methods if methods.build(other).needs <= model.offers}
        refused.add((name, where))
        return

    def explained():
        found = raison.explain(model, text, method=chosen, target=target)
        return (
            found[0] if isinstance(found, list) else found
        )  # a tagger answers for all words of that name

    with nullcontext() if where == "function" else float64_for_exact_models(model):
        found, again = explained(), explained()
    assert len(found.scores) == len(found.units) == len(found.tokens) > 0
    assert np.isfinite(found.scores).all()
    assert chosen.signed or (found.scores >= 0).all()
    assert np.abs(found.scores).max() > 0 or type(chosen).__module__ in QUIET
    assert raison.Explanation.from_json(found.to_json()) == found
    assert (again.scores == found.scores).all() and again == found  # what it cost apart
    assert found.method == LIGHT.get(name, name) and found.model == model.name
    ran.add((name, where))


def test_nothing_has_touched_the_models(model_of):
    assert {
        where: model_state_hash(model_of(where)) for where, state in states.items() if state
    } == {where: state for where, state in states.items() if state}


def test_no_pair_was_left_out(request):
    """After the tests above: all pairs ran or were refused, but for models that pytest reports as skipped."""
    planned = [
        (item.callspec.params["name"], item.callspec.params["where"])
        for item in request.session.items
        if getattr(item, "originalname", "") == test_a_method_runs_or_is_refused.__name__
    ]
    assert sorted(planned) == sorted(product(methods, CASES))
    if hasattr(request.config, "workerinput"):
        return  # other processes have run some of them; there pytest alone sees that each has passed
    assert not ran & refused
    missing = {pair for pair in set(planned) - ran - refused if pair[1] not in absent}
    assert not missing, f"neither run nor refused: {sorted(missing)}"
    assert refused and {where for _, where in ran | refused} == set(CASES) - absent
