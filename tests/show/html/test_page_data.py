"""What the page is sent beside the records: words, and which explanations are drawn together."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from raison.core.records import Explanation
from raison.show import rationale_sentences as proof
from raison.show.agreement_measures import agreement_of_pairs
from raison.show.agreement_sentences import agreement_footnotes, statement_of_agreement
from raison.show.html.explanation_words import exact_score
from raison.show.html.page_data import page_data
from raison.show.rationale_matrix import matrix_of_rationales
from raison.show.text_pieces import text_passages
from tests.helpers.rationales import court_rationale, rationales_of_tokens
from tests.helpers.scored_explanations import MOVIE, four_methods, scored, selection_of_rationalizer


def test_records_travel_whole_and_words_beside_them():
    explanations = [scored(MOVIE), court_rationale()]
    data = json.loads(json.dumps(page_data(explanations)))
    assert [Explanation.from_dict(record) for record in data["explanations"]] == explanations
    assert [group["kind"] for group in data["groups"]] == ["single", "single"]
    assert [words["rationale"] is None for words in data["words"]] == [True, False]
    assert data["words"][0]["outcome"] == "positive" and data["words"][0]["value"] == "98.7 %"


def test_methods_about_one_thing_are_a_group_and_rationales_stand_apart():
    methods = four_methods()
    searches = [court_rationale(), replace(court_rationale(), method="greedy")]
    groups = page_data([*methods, scored("Between two groups"), *searches])["groups"]
    assert [(group["kind"], group["members"]) for group in groups] == [
        ("methods", [0, 1, 2, 3]),
        ("single", [4]),
        ("single", [5]),
        ("single", [6]),
    ]
    words, agreements = groups[0]["words"], agreement_of_pairs([each.scores for each in methods])
    assert words["statement"] == statement_of_agreement(methods, agreements)
    assert words["footnotes"] == agreement_footnotes(methods, agreements)
    assert [pair["methods"] for pair in words["pairs"]] == list(agreements)
    assert page_data(searches, together=True)["groups"][0]["kind"] == "methods"


def test_rationales_of_many_targets_are_a_matrix():
    rows = rationales_of_tokens(p3={"is_prediction": False})
    (group,) = page_data(list(reversed(rows)), share_texts=True)["groups"]
    words, expected = group["words"], matrix_of_rationales(rows)
    assert group["kind"] == "matrix" and words["title"] == "5 rationales of one text"
    assert [row["place"] for row in words["rows"]] == [4, 3, 2, 1, 0]
    assert [
        [int(state) for state in row["cells"]] for row in words["rows"]
    ] == expected.cells.tolist()
    assert (
        words["alarms"] == [("≠", "not the model's own prediction")]
        and words["rows"][2]["signs"] == "≠"
    )


def test_a_rationale_is_told_as_in_the_terminal():
    explanation = court_rationale(status="budget", is_prediction=False)
    (words,) = page_data([explanation])["words"]
    told = words["rationale"]
    assert told["warnings"] == proof.rationale_warnings(explanation) and told[
        "proof"
    ] == proof.certificate_in_words(explanation)
    assert told["size"] == "3 of 9 tokens" and told["names"] == "Court → challenge → The"
    assert told["besides"] == ", and the given “the”"
    assert [row["figure"] for row in told["path"]["rows"]][-1] == "80.0 %"


def test_a_selection_without_evidence_has_no_value():
    (words,) = page_data([selection_of_rationalizer()])["words"]
    assert words["selected"] == "rationale 3 of 12 words" and "value" not in words["facts"]


def test_the_pieces_of_a_passage_are_its_text():
    explanation = court_rationale()
    (words,) = page_data([explanation])["words"]
    for passage, expected in zip(words["passages"], text_passages(explanation), strict=True):
        assert passage["text"] == "".join(piece.text for piece in expected.pieces)
        lengths = [length for length, *_ in passage["pieces"]]
        assert lengths == [len(piece.text) for piece in expected.pieces]
        kinds = [piece[2] if len(piece) > 2 else "plain" for piece in passage["pieces"]]
        assert kinds == [piece.kind for piece in expected.pieces]


def test_each_unit_has_its_score_and_rank_in_words():
    explanation = scored("good dull film", scores=[0.5, -1.25, 0.0])
    (words,) = page_data([explanation])["words"]
    assert [unit["label"] for unit in words["units"]] == [
        "good: +0.5, for, rank 2 of 3",
        "dull: −1.25, against, rank 1 of 3",
        "film: +0, rank 3 of 3",
    ]
    (words,) = page_data([selection_of_rationalizer()])["words"]
    assert {unit["remark"] for unit in words["units"]} == {"selected", "not selected"}


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        (1 / 3, "+0.333333"),
        (-123456.7, "−123457"),
        (1234567.0, "+1234570"),
        (1.5e-05, "+0.000015"),
        (-2.5e-07, "−2.5e-7"),
        (1e21, "+1e+21"),
        (100000.5, "+100001"),
    ],
)
def test_exact_scores_are_written_as_browsers_write_numbers(score, shown):
    assert exact_score(score) == shown


def test_a_search_with_all_its_steps_can_be_walked_through():
    explanation = court_rationale()
    path = page_data([explanation])["words"][0]["rationale"]["path"]
    assert len(path["walk"]) == len(explanation.steps)
    assert path["walk"][0].startswith(f"step 0 of {len(explanation.steps) - 1} · ")
    assert path["walk"][-1].endswith(" · enough")
    gap = replace(explanation, steps=explanation.steps[2:])
    assert page_data([gap])["words"][0]["rationale"]["path"]["walk"] == []


def test_rows_of_a_matrix_have_no_labels_of_units():
    assert all(words["units"] == [] for words in page_data(rationales_of_tokens())["words"])
