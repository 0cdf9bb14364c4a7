"""Rows of an exported run."""

from __future__ import annotations


def test_runs_tell_the_targets_probability(tmp_path):
    """With more classes than a record lists, a rare gold class has no probability of its own there."""
    from raison.runs.records import ResultRecord
    from raison.runs.rows import rows_of

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
    (row,) = rows_of(ResultRecord.from_json(record))
    assert row.probability is None and row.predicted == "c4"
