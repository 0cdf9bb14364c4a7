"""Long-range agreement: rationales of a model that copies one word."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.studies.reproduce.experiment import Trial, experiments
from raison.studies.reproduce.experiments import long_range_agreement
from raison.studies.reproduce.suite import suite_named
from raison.testing import tiny_model
from tests.helpers.copier import PAIRS, TEMPLATE, Copier
from tests.helpers.trials import found_in, trial_of


def test_a_model_that_copies_the_antecedent(colours):
    evaluation = experiments["agreement"](
        trial_of(Copier(), {"greedy": "greedy", "refined": "refined"})
    )
    assert len(evaluation.texts) == len(PAIRS)
    for title in ("greedy", "refined"):
        told = {column.key: evaluation.cell(title, column.key) for column in evaluation.columns}
        assert told["length"].each == (2.0,) * 4  # the previous word and the antecedent
        assert told["ratio"].each == (1.0,) * 4
        for key in ("antecedent", "no_distractor", "reached"):
            assert told[key].value == 1.0
    assert "colours 4 of 4" in evaluation.notes[0]
    assert "colours 2.0 (2.0 … 2.0, 4 examples)" in evaluation.notes[2]


def test_an_order_takes_all_that_comes_before_the_antecedent(colours):
    from raison.core.registry import methods
    from raison.methods.base import Answer, Method

    class Backwards(Method):
        """The later, the more it counts."""

        name, axis = "backwards_for_a_test", "unit"

        def __call__(self, model, batch):
            return [Answer(np.arange(len(units), dtype=float)) for units in batch.units]

    methods["random"]  # the registry is scanned before something is added to it
    methods.register("backwards_for_a_test")(Backwards)
    try:
        evaluation = experiments["agreement"](
            trial_of(Copier(), {"late": "by_order(method=backwards_for_a_test)"})
        )
    finally:
        del methods._entries["backwards_for_a_test"]
    # I saw red today . ( it was cold ). and that was a: everything but "I saw"
    tokens = len(Copier().encode([TEMPLATE.fill(("red", "apple"))])[0])
    length = evaluation.cell("late", "length")
    assert length.each == (tokens - 2.0,) * 4
    assert evaluation.cell("late", "ratio").value == (tokens - 2) / 2
    assert evaluation.cell("late", "no_distractor").value == 0.0
    assert evaluation.cell("late", "antecedent").value == 1.0


def test_ratio_is_for_the_subset_that_was_proved(colours):
    found = experiments["agreement"](trial_of(Copier(), {"greedy": "greedy"}, exact_count=3))
    assert found.cell("greedy", "ratio").count == 3
    assert "proved for 3 of 3" in found.notes[1]
    found = experiments["agreement"](
        trial_of(Copier(), {"greedy": "greedy"}, exact="exact(evaluations=2)")
    )
    assert found.cell("greedy", "ratio").value is None  # the search gave up
    assert "proved for 0 of 4" in found.notes[1]


def test_only_texts_that_the_model_gets_right(colours, monkeypatch):
    model = Copier()
    del model.says[next(iter(model.says))]
    usable = long_range_agreement.usable_agreements(trial_of(model))
    assert len(usable) == 3
    assert "colours 3 of 4" in usable.sentence()
    assert len(long_range_agreement.usable_agreements(trial_of(model, count=2))) == 2
    model.says = {}
    with pytest.raises(InputError, match="none of the answers"):
        long_range_agreement.usable_agreements(trial_of(model))


def test_words_of_several_tokens_are_left_out():
    model = tiny_model("gpt2", "causal")
    assert (
        long_range_agreement.find_antecedent_and_brackets(
            model, TEMPLATE.fill(("incomprehensible", "unbelievable"))
        )
        is None
    )


def test_the_last_occurrence_is_the_antecedent():
    template = replace(TEMPLATE, second="and red was a")
    model = Copier()
    usable = long_range_agreement.find_antecedent_and_brackets(
        model, template.fill(("red", "apple"))
    )
    ids = usable.target.encoding.ids
    same = np.flatnonzero(ids == ids[usable.antecedent])
    assert len(same) == 2
    assert usable.antecedent == same[-1]
    inside = [usable.target.encoding.tokens[t].strip() for t in sorted(usable.distractor)]
    assert inside == ["(", "it", "was", "cold", ")", "."]
    row = usable.row(found_in([13, usable.antecedent, min(usable.distractor)], reached=False), 2)
    assert row.numbers() == {
        "length": 3.0,
        "ratio": 1.5,
        "antecedent": 1.0,
        "no_distractor": 0.0,
        "reached": 0.0,
    }


@pytest.mark.full
def test_agreement_on_a_real_model(smollm2, data_dir, record_property):
    suite = suite_named("P0-table1")
    chosen = {title: suite.methods[title] for title in ("greedy", "refined", "all attentions")}
    trial = Trial(
        smollm2, chosen, replace(suite.runs[0], settings={"exact_count": 1}), 4, 0, data_dir
    )
    found = experiments["agreement"](trial)
    assert found.cell("greedy", "reached").value == 1.0
    assert found.cell("refined", "length").value <= found.cell("greedy", "length").value
    record_property("length of greedy", found.cell("greedy", "length").value)
