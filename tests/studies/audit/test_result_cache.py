"""What is done of an audit is kept and not done again."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.models.load import load
from raison.studies.audit.run_audit import audit
from tests.helpers.small_classifiers import reviews


def test_what_is_done_is_kept_and_not_done_again(taught, tmp_path, monkeypatch):
    model, texts = load(taught), reviews(24)
    asked_for = {
        "deep": 4,
        "show": 1,
        "adversaries": ["frozen"],
        "train": reviews(40, seed=7),
        "epochs": 2,
    }
    plain = audit(model, texts, **asked_for)
    with monkeypatch.context() as broken:  # somebody pulls the plug while the adversary learns

        def stopped(*args, **kwargs):
            raise KeyboardInterrupt

        broken.setattr("raison.studies.audit.attention_tests.train_adversary", stopped)
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
        for name in (
            "agreement_with_importance",
            "normalised_entropies",
            "scores_with_replaced_attention",
            "spread_of_largest_divergences",
            "information_about_words",
        ):
            idle.setattr(f"raison.studies.audit.attention_tests.{name}", None)
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
