"""A run as a table."""

from __future__ import annotations

import json

import pytest

from raison.core.errors import RaisonError
from raison.runs import export_run as exporting
from raison.runs.driver import run
from raison.runs.export_run import export_run
from raison.runs.query import query_run
from raison.runs.storage import place_of
from raison.runs.verify import verify_run
from tests.helpers.runs import spec_of


def test_half_characters_can_be_exported(folder, tmp_path):
    rows = [
        {"text": "a \ud800 film"},
        {"text": "a dull story", "id": "\ud800"},
        {"text": "lovely", "label": "\udc00"},
    ]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    place = tmp_path / "run"
    run(place, spec_of(folder, data=str(tmp_path / "texts.jsonl"), metrics=()))
    assert (
        verify_run(place_of(place)).whole
        and export_run(place_of(place), tmp_path / "x.parquet") == 6
    )
    _, found = query_run(
        place_of(place), "select distinct id, label, failed is null from explanations order by 1"
    )
    assert len(found) == 3 and ("?", None, True) in found


def test_columns_do_not_depend_on_the_first_rows(folder, tmp_path, monkeypatch):
    rows = [
        "a very " + "lovely " * 20 + "film,none of them",
        "a dull story,LABEL_1",
        "warm,LABEL_1",
    ]
    (tmp_path / "texts.csv").write_text("text,label\n" + "\n".join(rows))
    place = tmp_path / "run"
    spec = spec_of(
        folder, data=str(tmp_path / "texts.csv"), methods=("gradient_norm",), target="gold"
    )
    run(place, spec)
    monkeypatch.setattr(exporting, "GROUP", 1)
    _, found = query_run(
        place_of(place), "select count(*), count(failed), avg(comprehensiveness) from explanations"
    )
    assert found[0][:2] == (3, 1) and found[0][2] is not None


def test_an_export_into_a_file_names_what_was_asked_for(copied, tmp_path):
    (tmp_path / "afile").write_text("x")
    with pytest.raises(RaisonError, match="afile/x.parquet' could not be written"):
        export_run(place_of(copied), tmp_path / "afile" / "x.parquet")


def test_runs_tell_the_targets_probability(tmp_path):
    """With more classes than a record lists, a rare gold class has no probability of its own there."""
    from raison.runs.result_records import ResultRecord, explanation_rows

    record = {
        "example": {"id": "1", "text": "x", "pair": None, "label": "c3"}, "method": "gae", "key": "k", "index": 0,
        "explanations": [
            {
                "target": {"text": "c3"}, "removal": None, "units": {"level": "word", "names": ["x"]}, "scores": [1.0],
                "selected": None, "order": None,
                "prediction": {"text": "c4", "probability": 0.36, "is_target": False},
            }
        ],
    }  # fmt: skip
    (row,) = explanation_rows(ResultRecord.from_json(record))
    assert row.probability is None and row.predicted == "c4"
