"""What is exported can be read and measured again."""

from __future__ import annotations

import json

import pytest

from raison.core.errors import Unsupported
from raison.core.records import Example, Span
from raison.studies.evaluate_methods import evaluate
from raison.testing import tiny_model
from tests.helpers.evaluated import examples


@pytest.fixture(scope="module")
def model():
    return tiny_model("bert", "classification")


def test_what_we_export_can_be_measured_again(model, tmp_path):
    """ERASER's format keeps a score for each white-space token, so texts of such words give the same numbers."""
    texts = [Example("the film is a lovely surprise", id="a", label=0, gold=(Span(14, 20),)),
             Example("nobody in town expected it", id="b", label=1, gold=(Span(0, 6),))]  # fmt: skip
    path = tmp_path / "made.jsonl"
    ours = evaluate(model, texts, ["leave_one_out"], ["aopc", "auprc"], export=path)
    theirs = evaluate(model, texts, metrics=["aopc", "auprc"], explanations=path)
    assert theirs.methods == ("leave_one_out",)
    for key in ("aopc", "auprc"):
        assert theirs.cell("leave_one_out", key).each == pytest.approx(
            ours.cell("leave_one_out", key).each
        )
    with pytest.raises(Unsupported, match="needs a method"):
        evaluate(model, texts, metrics=["randomisation"], explanations=path)


def test_parquet(model, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    evaluate(
        model, examples(2), ["leave_one_out", "random"], ["aopc"], export=tmp_path / "made.parquet"
    )
    table = parquet.read_table(tmp_path / "made.parquet").to_pylist()
    assert [row["method"] for row in table] == ["leave_one_out", "random"] * 2
    assert len(table[0]["scores"]) == len(table[0]["units"])


def test_both_texts_of_a_pair_are_exported_and_read(model, tmp_path):
    path = tmp_path / "made.jsonl"
    texts = [
        Example("the film is lovely", "nobody saw the film", id="a"),
        Example("the end", "the end of it", id="b"),
    ]
    ours = evaluate(model, texts, ["leave_one_out"], ["aopc"], export=path)
    first = json.loads(path.read_text().splitlines()[0])
    assert [each["docid"] for each in first["rationales"]] == ["a_first", "a_second"]
    theirs = evaluate(model, texts, metrics=["aopc"], explanations=path)
    assert theirs.texts[0].units == ours.texts[0].units
    assert theirs.cells == ours.cells
