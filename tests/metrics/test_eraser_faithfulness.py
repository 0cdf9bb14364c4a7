"""Explanations for ERASER's own scorer, which is written anew in oracles/eraser.py, and its macro IOU-F1."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from raison import load
from raison.core.eraser_documents import Document, spans_of_eraser_tokens, units_of_eraser_tokens
from raison.core.errors import InputError
from raison.core.records import Units
from raison.datasets import open_dataset
from raison.metrics.base import AveragedF1, Share
from raison.metrics.statistics import (
    averaged_f1_gap_interval,
    averaged_f1_interval,
    averaged_f1_permutation_test,
)
from raison.runs.driver import run
from raison.runs.export_run import export_run
from raison.runs.run_report import evaluation_of_run
from raison.runs.run_spec import RunSpec
from raison.runs.storage import place_of
from raison.studies.compare_methods import compare
from raison.studies.evaluate_methods import evaluate
from raison.testing.tiny import tiny_hf
from raison.testing.tiny import tiny_model as tiny
from tests.oracles.eraser import Refused, json_lines, score

DOCUMENTS = {
    "plot.txt": "a superb film , said ann .\n\n  the plot is okay , bob said .\nit is superb \n",
    "cast.txt": "the cast is superb and okay .",
    "music.txt": "nothing of note\tin the music . superb",
}


def piece(document: str, start: int, end: int) -> dict:
    return {"docid": document, "start_token": start, "end_token": end}


RECORDS = [  # two questions about one document, two documents of one record, a document without evidence
    {"annotation_id": "plot.txt:0", "query": "Is it good ?", "classification": "POS", "evidences": [
        [piece("plot.txt", 1, 3)], [piece("plot.txt", 7, 11)]]},
    {"annotation_id": "plot.txt:1", "query": "Is it bad ?", "classification": "NEG", "evidences": [
        [piece("plot.txt", 10, 11)]]},
    {"annotation_id": "all", "query": "Is all good ?", "classification": "POS",
     "docids": ["plot.txt", "music.txt", "cast.txt"],
     "evidences": [[piece("cast.txt", 3, 4), piece("plot.txt", 0, 6)]]},
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "set"
    (place / "docs").mkdir(parents=True)
    for name, text in DOCUMENTS.items():
        (place / "docs" / name).write_text(text)
    (place / "test.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return place


def praise(texts: list[str]) -> np.ndarray:
    """A model whose sufficient words are known: superb, less so okay."""
    good = np.array(
        [1 / (1 + np.exp(0.5 - 3.0 * text.count("superb") - text.count("okay"))) for text in texts]
    )
    return np.stack([1 - good, good], axis=1)


@pytest.fixture
def model():
    return load(praise, labels=["NEG", "POS"])


@pytest.fixture(scope="module")
def reader():
    """A model of pairs, whose choices mean nothing."""
    return tiny("bert", "classification")


def chosen_by(model, data, path, metric="eraser_iou_f1_macro"):
    """What a search chooses, measured and exported."""
    found = evaluate(model, data, ["greedy"], [metric], export=path)
    return found, json_lines(path)


def test_an_export_names_documents_and_gets_the_same_score_from_erasers_scorer(
    folder, model, tmp_path
):
    path = tmp_path / "made.jsonl"
    data = str(folder)
    found, predictions = chosen_by(model, data, path)
    assert [[each["docid"] for each in record["rationales"]] for record in predictions] == [
        ["plot.txt"], ["plot.txt"], ["plot.txt", "music.txt", "cast.txt"],
    ]  # fmt: skip
    expected = score(folder, "test", predictions)
    assert 0 < expected["f1"] < 1
    for key, name in (("f1", "f1"), ("precision", "precision"), ("recall", "recall")):
        cell = found.cell("greedy", f"eraser_iou_{name}_macro")
        assert cell.value == pytest.approx(expected[key]), key
        assert cell.low <= cell.value <= cell.high
    assert score(folder, "test", predictions, 0.9)["f1"] != expected["f1"]
    stricter = evaluate(
        model, data, metrics=["eraser_iou_f1_macro(threshold=0.9)"], explanations=path
    )
    assert stricter.cells[0].value == pytest.approx(score(folder, "test", predictions, 0.9)["f1"])


def test_questions_about_documents_are_exported_for_erasers_scorer(folder, reader, tmp_path):
    """The query is the first text, the documents are parts of the second."""
    path = tmp_path / "made.jsonl"
    found, predictions = chosen_by(reader, f"{folder}(query=True)", path)
    assert [len(record["rationales"]) for record in predictions] == [1, 1, 3]
    for record in predictions:
        record.pop("classification")  # the classes of the model are not those of the data
        record.pop("classification_scores")
    assert found.cells[0].value == pytest.approx(score(folder, "test", predictions)["f1"])
    spans = {
        "plot.txt": [(1, 3), (6, 11)],
        "cast.txt": [(3, 4)],
        "music.txt": [(0, 1)],
    }  # better choices
    for record in predictions:
        del record["units"]
        for rationale in record["rationales"]:
            chosen = spans[rationale["docid"]]
            rationale["hard_rationale_predictions"] = [
                {"start_token": a, "end_token": b} for a, b in chosen
            ]
    path.write_text("\n".join(map(json.dumps, predictions)))
    again = evaluate(
        reader, f"{folder}(query=True)", metrics=["eraser_iou_f1_macro"], explanations=path
    )
    expected = score(folder, "test", predictions)["f1"]
    assert again.cells[0].value == pytest.approx(expected) and 0.2 < expected < 1


def test_an_export_of_an_eraser_set_is_read_again_by_the_names_of_its_documents(
    folder, model, tmp_path
):
    path = tmp_path / "made.jsonl"
    first = evaluate(model, folder, ["greedy"], ["eraser_iou_f1_macro"], export=path)
    predictions = json_lines(path)
    for record in (
        predictions
    ):  # as another tool writes it: no units, documents in another order, none without spans
        del record["units"]
        kept = [
            each for each in reversed(record["rationales"]) if each["hard_rationale_predictions"]
        ]
        record["rationales"] = kept
    path.write_text("\n".join(map(json.dumps, predictions)))
    again = evaluate(model, folder, metrics=["eraser_iou_f1_macro"], explanations=path)
    assert (
        again.cell("greedy", "eraser_iou_f1_macro").each
        == first.cell("greedy", "eraser_iou_f1_macro").each
    )


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["plot.txt", "plot.txt"], "two rationales of the document 'plot.txt'"),
        (["cast.txt"], "a rationale of the document 'cast.txt', where the text has plot.txt"),
    ],
)
def test_rationales_of_the_wrong_documents_are_refused(names, why, folder, model, tmp_path):
    rationales = [{"docid": name, "hard_rationale_predictions": []} for name in names]
    path = tmp_path / "made.jsonl"
    path.write_text(json.dumps({"annotation_id": "plot.txt:0", "rationales": rationales}))
    with pytest.raises(InputError, match=why):
        evaluate(model, folder, metrics=["eraser_iou_f1_macro"], explanations=path)


def test_a_pair_that_is_no_eraser_set_has_a_document_for_each_text(reader, tmp_path):
    data = tmp_path / "pairs.jsonl"
    data.write_text(
        '{"id": "p", "text": "superb cast", "pair": "the okay plot", "label": "POS", "gold": [[0, 6]]}\n'
    )
    path = tmp_path / "made.jsonl"
    found, predictions = chosen_by(reader, str(data), path)
    predictions[0]["classification"] = "POS"  # the classes of the model are not those of the data
    place = tmp_path / "as_eraser"
    (place / "docs").mkdir(parents=True)
    for rationale, text in zip(
        predictions[0]["rationales"], ("superb cast", "the okay plot"), strict=True
    ):
        (place / "docs" / rationale["docid"]).write_text(text)
    assert [each["docid"] for each in predictions[0]["rationales"]] == ["p_first", "p_second"]
    record = {
        "annotation_id": "p",
        "classification": "POS",
        "evidences": [[piece("p_first", 0, 1)]],
    }
    (place / "test.jsonl").write_text(json.dumps(record))
    assert found.cells[0].value == pytest.approx(score(place, "test", predictions)["f1"])


def test_classes_have_the_publishers_names_and_come_with_their_scores(folder, tmp_path):
    """ERASER's scorer takes a class with scores or neither, and no name that the data does not have."""
    movies = tmp_path / "eraser_movies"
    folder.rename(movies)
    (movies / "test.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS[:2]))
    path = tmp_path / "made.jsonl"
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.config.id2label = {0: "negative", 1: "positive", 2: "mixed"}
    evaluate(
        load(hf, tokenizer), "eraser_movies", ["greedy"], ["auprc"], data_dir=tmp_path, export=path
    )
    predictions = json_lines(path)
    for record in predictions:
        assert set(record["classification_scores"]) == {"POS", "NEG", "mixed"}
        assert record["classification"] == max(
            record["classification_scores"], key=record["classification_scores"].get
        )
        record["classification"] = "POS"  # whichever a model without training says
    score(movies, "test", predictions)
    for record in predictions:
        del record["classification_scores"]
    with pytest.raises(Refused, match="a class without its scores"):
        score(movies, "test", predictions)

    def number(texts: list[str]) -> np.ndarray:
        return np.array([[float(text.count("superb"))] for text in texts])

    evaluate(
        load(number), "eraser_movies", ["leave_one_out"], ["auprc"], data_dir=tmp_path, export=path
    )
    for record in json_lines(path):
        assert "classification" not in record and record["target"]


def test_documents_may_stand_in_lines(folder):
    before = open_dataset(folder)
    for file in (folder / "docs").iterdir():
        file.unlink()
    (folder / "docs").rmdir()
    lines = [json.dumps({"docid": name, "document": text}) for name, text in DOCUMENTS.items()]
    (folder / "docs.jsonl").write_text("\n".join(lines))
    assert list(open_dataset(folder)) == list(before)
    (folder / "docs.jsonl").write_text("\n".join([*lines[:2], '{"docid": 3}']))
    with pytest.raises(
        InputError,
        match=r"Line 3 of .*test.jsonl.*'music.txt' is not in .*Line 3 of .*'docid' is int",
    ):
        open_dataset(folder)


@pytest.mark.parametrize("text", [*DOCUMENTS.values(), " a\xa0b  c\r\n\t\r\n d\te \n\n", ""])
def test_tokens_of_a_document_are_erasers(text):
    expected = []
    for line in text.replace("\r\n", "\n").split("\n"):
        expected += [word for word in line.strip().split(" ") if word]
    assert [text[start:end] for start, end in spans_of_eraser_tokens(text)] == expected
    part = Document("x", 0, 2, max(2, len(text) - 2))
    inside = spans_of_eraser_tokens(text, part)
    assert [text[a:b] for a, b in inside] == [
        text[2 : part.end][a:b] for a, b in spans_of_eraser_tokens(text[2 : part.end])
    ]


def test_units_of_tokens_against_all_pairs():
    generator = np.random.default_rng(0)
    for _ in range(50):
        cuts = np.sort(generator.choice(60, 20, replace=False))
        spans = [
            (int(generator.integers(2)), int(a), int(b))
            for a, b in zip(cuts[::2], cuts[1::2], strict=True)
        ]
        spans.append((0, -1, -1))
        units = Units("word", np.arange(len(spans)), tuple("u" * len(spans)), tuple(spans))
        places = [(start, start + int(generator.integers(1, 6))) for start in range(0, 60, 6)]
        document = Document("x", 0, 0, 60)
        expected = [
            [
                u
                for u, (segment, a, b) in enumerate(spans)
                if segment == 0 and a >= 0 and a < end and start < b
            ]
            for start, end in places
        ]
        assert units_of_eraser_tokens(document, places, units) == expected


def test_the_question_is_the_document_of_cose(reader, tmp_path):
    (tmp_path / "eraser_cose").mkdir()
    rows = "id,text,classification,rationale,query\n"
    rows += '7,is it superb ?,A,"[0, 0, 1, 0]",a [SEP] b [SEP] c [SEP] d [SEP] e\n'
    (tmp_path / "eraser_cose" / "test.csv").write_text(rows)
    path = tmp_path / "made.jsonl"
    evaluate(reader, "eraser_cose", ["greedy"], ["auprc"], data_dir=tmp_path, export=path)
    (rationale,) = json_lines(path)[0]["rationales"]
    assert rationale["docid"] == "7" and len(rationale["soft_rationale_predictions"]) == 4


# -- the F1 of averages ------------------------------------------------------------------------------------------


def averages(generator: np.random.Generator, count: int) -> list[AveragedF1]:
    made = []
    for _ in range(count):
        chosen, gold = generator.integers(0, 3, 2)
        made.append(
            AveragedF1(
                Share(float(generator.random(chosen).sum()), int(chosen)),
                Share(float(generator.random(gold).sum()), int(gold)),
            )
        )
    return made


def literal_f1(values: list[AveragedF1]) -> float:
    p, n, r, m = (sum(numbers) for numbers in zip(*(value.sums for value in values), strict=True))
    p, r = p / n if n else 0.0, r / m if m else 0.0
    return 2 * p * r / (p + r) if p + r else 0.0


def test_intervals_and_tests_of_the_f1_of_averages():
    generator = np.random.default_rng(1)
    first, second = averages(generator, 40), averages(generator, 40)
    found = averaged_f1_interval(first)
    kept = [value for value in first if not math.isnan(float(value))]
    assert (
        found.estimate == pytest.approx(literal_f1(first))
        and found.low < found.estimate < found.high
    )
    assert (found.count, found.excluded) == (len(kept), 40 - len(kept))
    drawn = [
        literal_f1([kept[k] for k in generator.integers(0, len(kept), len(kept))])
        for _ in range(2000)
    ]
    np.testing.assert_allclose(
        [found.low, found.high], np.quantile(drawn, [0.025, 0.975]), atol=0.03
    )
    gap = averaged_f1_gap_interval(first, second)
    test = averaged_f1_permutation_test(first, second)
    assert gap.estimate == pytest.approx(literal_f1(first) - literal_f1(second)) == test.difference
    few, others = first[:6], second[:6]
    exact = averaged_f1_permutation_test(few, others)
    asked = abs(literal_f1(few) - literal_f1(others)) - 1e-12
    hits = 0
    for mask in range(2**6):
        swap = [bool(mask >> k & 1) for k in range(6)]
        one = [b if turn else a for a, b, turn in zip(few, others, swap, strict=True)]
        other = [a if turn else b for a, b, turn in zip(few, others, swap, strict=True)]
        hits += abs(literal_f1(one) - literal_f1(other)) >= asked
    assert exact.exact and exact.p == pytest.approx(hits / 2**6)
    same = averaged_f1_permutation_test(first, first)
    assert same.p == 1 and averaged_f1_gap_interval(first, first).low == 0
    nothing = [AveragedF1(Share(0, 0), Share(0, 0))]
    assert math.isnan(averaged_f1_interval(nothing).estimate)
    assert averaged_f1_permutation_test(nothing, nothing).p == 1


def test_methods_are_compared_by_the_f1_of_averages(folder, model):
    result = evaluate(model, folder, ["greedy", "random"], ["eraser_iou_f1_macro"])
    for verdict in compare(result, "greedy", "random"):
        values = [result.cell(name, verdict.key).value for name in ("greedy", "random")]
        assert verdict.difference == pytest.approx(values[0] - values[1])
    assert type(result).from_json(result.to_json()).cells == result.cells


def test_a_run_measures_and_exports_the_f1_of_averages(folder, tmp_path):
    """Its four sums go through JSON and Parquet."""
    parquet = pytest.importorskip("pyarrow.parquet")
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.float().save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    spec = RunSpec(
        model=str(tmp_path / "model"),
        data=str(folder),
        methods=("greedy",),
        metrics=("eraser_iou_f1_macro",),
    )
    run(tmp_path / "run", spec)
    made = evaluation_of_run(place_of(tmp_path / "run"))
    direct = evaluate(
        load(str(tmp_path / "model")), str(folder), ["greedy"], ["eraser_iou_f1_macro"]
    )
    assert [cell.value for cell in made.cells] == [cell.value for cell in direct.cells]
    export_run(place_of(tmp_path / "run"), tmp_path / "made.parquet")
    for row in parquet.read_table(tmp_path / "made.parquet").to_pylist():
        found = [
            row[f"eraser_iou_f1_macro_{name}"]
            for name in ("part", "whole", "recall_part", "recall_whole")
        ]
        assert row["eraser_iou_precision_macro_part"] == found[0]
        assert found[2:] == [
            row["eraser_iou_recall_macro_part"],
            row["eraser_iou_recall_macro_whole"],
        ]
