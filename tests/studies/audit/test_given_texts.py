"""An audit is of the texts that it is given."""

from __future__ import annotations

import pytest

import raison
from raison.core.errors import InputError
from raison.core.records import Example
from raison.studies.audit.run_audit import audit
from raison.testing import tiny_hf
from tests.helpers.small_classifiers import reviews


def test_an_audit_trains_adversaries_on_the_texts_that_it_is_given(tmp_path):
    from raison.attention_models.train import train_classifier

    train_classifier(
        reviews(120), out=tmp_path / "m", config={"width": 16}, training={"epochs": 1, "batch": 16}
    )
    settings = {"adversaries": ["frozen"], "epochs": 1, "deep": 4, "show": 0, "permutations": 1}
    test = reviews(30, seed=5)
    one, other = reviews(48, seed=1), reviews(48, seed=2)
    audit(tmp_path / "m", test, train=one, keep=tmp_path / "kept", **settings)
    with pytest.raises(InputError, match="keeps an audit with another settings"):
        audit(tmp_path / "m", test, train=other, keep=tmp_path / "kept", **settings)


def test_a_decoder_with_a_classifying_head_can_be_audited():
    hf, tokenizer = tiny_hf("gpt2", "classification")
    model = raison.load(hf, tokenizer)
    data = [
        Example(e.text, label=model.labels[k % len(model.labels)])
        for k, e in enumerate(reviews(12))
    ]
    assert audit(model, data, deep=3, show=0, permutations=1).count == 12
