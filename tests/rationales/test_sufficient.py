"""When a part is enough: the rules, and contrasts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.core.registry import rules
from raison.models.tasks.base import outcomes_of_texts
from tests.helpers.searches import (
    TEXT,
    brute,
    drawn,
    found_by,
    rationale,
    tiny,
    verify,
)

# -- E. when is it enough? ---------------------------------------------------------------------------------------


RULES = [
    "argmax",
    "probability(tau=0.5)",
    "probability(tau=1)",
    "share(tau=0.8)",
    "top(k=3)",
    "drop(nats=0.5)",
]
RULES += ["penalty(weight=0.2)", "penalty(weight=2)"]


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_holds_for_what_it_certifies(rule, search, precise):
    model, generator = tiny("gpt2"), np.random.default_rng(5)
    for about in found_by(
        search, model, [drawn(model, generator, 7, 9) for _ in range(4)], sufficient=rule
    ):
        claim = verify(model, about)
        least, _ = brute(model, about)
        assert claim.sufficient and rules.build(claim.rule) == rules.build(rule)
        weight = rules.build(rule).weight if rule.startswith("penalty") else None
        cost = weight * about.size - claim.value if weight else about.size
        assert cost >= least - 1e-9
        if search == "exact" or claim.optimal:
            assert cost == pytest.approx(least, abs=1e-9) and claim.optimal
        if not weight:
            assert claim.lower_bound <= least


def test_a_penalty_on_values_above_zero():
    """λ|S| − value has no floor where values are no log-probabilities; exact may not stop early."""

    def score(texts):
        return [10.0 if {"b", "e"} == set(text.split()) else 0.0 for text in texts]

    about = rationale(score, "a b c d e f", "exact", sufficient="penalty(weight=0.5)")
    least, _ = brute(raison.load(score), about)
    assert (
        not about.certificate.optimal
        or 0.5 * about.size - about.certificate.value == pytest.approx(least)
    )


@pytest.mark.parametrize(
    "wrong",
    "probability(tau=0) probability(tau=1.5) probability(tau=-1) probability(tau=high) share(tau=0) top(k=0) "
    "top(k=1.5) top(k=many) drop(nats=-1) penalty(weight=0) penalty(weight=-0.1) argmax(tau=1) nonsense "
    "probability(tau= probability(0.9,0.8)".split(),
)
def test_wrong_rules_are_refused_with_a_sentence(wrong):
    with pytest.raises(InputError) as refused:
        raison.rationalize(tiny("gpt2"), TEXT, sufficient=wrong)
    assert str(refused.value).endswith((".", "?"))


@pytest.mark.parametrize("search", ["greedy", "refined", "exact"])
def test_a_contrast_asks_what_makes_one_beat_the_other(search, precise):
    """The target need not be the model's choice, as long as it beats the contrast."""
    model = tiny("gpt2")
    (encoding,) = model.encode([raison.Example("The old town")])
    logits = outcomes_of_texts(model.runner, [encoding], [model.next_target(encoding, 0)])[0][0]
    ranked = [int(i) for i in logits.argsort(descending=True)]
    for better, worse in (
        (ranked[3], ranked[20]),
        (ranked[1], ranked[2]),
        (ranked[0], ranked[300]),
    ):
        about = rationale(model, "The old town", search, target=[better], contrast=[worse])
        claim = verify(model, about)
        assert (
            claim.rule == "argmax"
            and claim.is_prediction
            and claim.sufficient
            and claim.probability is None
        )
        kept = [
            *np.flatnonzero(np.isin(about.units.of, np.flatnonzero(about.selected))),
            len(encoding) - 1,
        ]
        row = logits_of(model, encoding.ids, kept)
        assert row[better] > row[worse]
        assert search != "exact" or brute(model, about)[0] == about.size
    other = rationale(model, "The old town", search, target=[ranked[20]], contrast=[ranked[3]])
    assert not verify(model, other).is_prediction and other.notes


def logits_of(model, ids, kept) -> torch.Tensor:
    """What the plain model says from the kept tokens at their own positions."""
    places = torch.tensor([sorted(int(k) for k in kept)])
    words = torch.tensor([list(ids)])[:, places[0]]
    with torch.no_grad():
        return model.hf(
            input_ids=words, position_ids=places, attention_mask=torch.ones_like(words)
        ).logits[0, -1]
