"""Which texts an audit reads, and which adversaries learn from."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.core.records import Example
from raison.models.load import load
from raison.show.audit_rows import audit_rows
from raison.studies.audit.run_audit import audit
from tests.helpers.small_classifiers import SMALL, reviews


def test_what_adversaries_learn_from(taught, tmp_path):
    model = load(taught)
    with pytest.raises(InputError, match="or give them \\(--train\\)"):
        audit(model, reviews(9), adversaries=["frozen"], deep=2, show=0)
    with pytest.raises(
        InputError, match="labelled texts, and there are none, or some without a label"
    ):
        audit(model, reviews(9), adversaries=["frozen"], train=[Example("a film")], deep=2, show=0)
    file = tmp_path / "few.csv"
    file.write_text(
        "\n".join(["text,label", *(f"{e.text},{e.label}" for e in reviews(10)), ",positive"])
    )
    few = {
        "adversaries": ["unfrozen"],
        "train": file,
        "epochs": 1,
        "deep": 2,
        "show": 0,
        "skip_broken": True,
    }
    assert audit(model, reviews(9), **few).adversaries[0].kind == "unfrozen"  # fewer than a batch


def test_a_file_that_the_model_was_trained_on_is_said(tmp_path):
    from raison.attention_models.train import train_classifier

    file, other = tmp_path / "data.csv", tmp_path / "other.csv"
    for place, seed in ((file, 0), (other, 1)):
        place.write_text(
            "\n".join(["text,label", *(f"{e.text},{e.label}" for e in reviews(60, seed=seed))])
        )
    train_classifier(
        str(file), out=tmp_path / "m", config={"width": 8}, training={**SMALL, "epochs": 1}
    )
    said = "The model was trained on this file"
    assert any(
        note.startswith(said) for note in audit(tmp_path / "m", str(file), deep=2, show=0).notes
    )
    found = audit(tmp_path / "m", str(other), deep=2, show=0)
    assert not any(note.startswith(said) for note in found.notes) and found.data == "other.csv"


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
    told = {row.name: row.about for row in audit_rows(found)}
    assert told["F1"] == "of positive"
