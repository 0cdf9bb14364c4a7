"""What the page is sent beside the records: words, and which explanations are drawn together."""

from __future__ import annotations

import json
from dataclasses import replace

from raison.core.records import Explanation
from raison.show import rationale_sentences as proof
from raison.show.agreement_measures import agreement_of_pairs
from raison.show.agreement_sentences import agreement_footnotes, statement_of_agreement
from raison.show.html.page_data import page_data
from raison.show.rationale_matrix import matrix_of_rationales
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
