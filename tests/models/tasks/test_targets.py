"""What a target means: labels, tags, contrasts, continuations."""

from __future__ import annotations

import numpy as np
import pytest

import raison
from raison.cli.texts import target_of_text_option
from raison.core.errors import InputError
from raison.models.protocol import Question, TargetSpec
from raison.testing import tiny_hf, tiny_model

TEXT = "The old town lies on a hill"


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
            model.resolve_targets(model.encode([raison.Example(TEXT)])[0], TargetSpec(target=ids))[
                0
            ]
            for ids in ([7, 8], [7, 10])
        )
    )
    assert abs(scored.value.sum() - (one - other)) < 1e-6


def test_labels_that_differ_in_case():
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.config.id2label = {0: "A", 1: "a", 2: "b"}
    model = raison.load(hf, tokenizer)
    assert [raison.explain(model, TEXT, target=t).target.ids[0] for t in ("A", "a", "B")] == [
        0,
        1,
        2,
    ]


def test_a_tag_is_not_contrasted_with_itself():
    model = tiny_model("bert", "tagging")
    found = raison.explain(model, TEXT, target="all")[0]
    with pytest.raises(InputError, match="two tags"):
        raison.explain(
            model,
            TEXT,
            target=found.target.positions[0],
            contrast=model.labels[found.target.ids[0]],
        )


def test_digits_that_are_no_numbers():
    model = raison.load(lambda texts: [[0.1, 0.2]] * len(texts), labels=["a", "b"])
    with pytest.raises(InputError, match="has no output"):
        raison.explain(model, "some words", target="²")
    assert target_of_text_option("9" * 5000) == "9" * 5000 and target_of_text_option("12") == 12


def test_a_class_may_be_named_by_its_number_in_words():
    model = tiny_model("bert", "classification")
    named = raison.explain(model, "a good film", "leave_one_out", target=1, contrast="0")
    assert named.target.contrast == (0,)
