"""The text cut into pieces."""

from __future__ import annotations

from dataclasses import replace

from raison.core.findings import Certificate
from raison.core.records import Target
from raison.show.text_pieces import is_unproved_selection, text_passages
from tests.helpers.scored_explanations import (
    CASES,
    encode_words,
    scored,
    selection_of_rationalizer,
)
from tests.helpers.terminal import bare, coloured, show


def test_flow_keeps_every_character(explanation):
    passages = text_passages(explanation)
    assert ["".join(piece.text for piece in p.pieces) for p in passages] == list(
        explanation.encoding.texts
    )
    assert [u for p in passages for piece in p.pieces for u in piece.units] == list(
        range(len(explanation.units))
    )


def test_what_is_a_selection_without_evidence():
    """By its record: nothing proved, no negative score, nothing outside of the selection."""
    own = selection_of_rationalizer()
    assert is_unproved_selection(own)
    assert not is_unproved_selection(replace(own, selected=None))
    assert not is_unproved_selection(
        replace(own, certificate=Certificate("argmax", sufficient=True, size=2))
    )
    assert not is_unproved_selection(replace(own, scores=-own.scores))
    assert not is_unproved_selection(
        replace(own, scores=own.scores + 0.1)
    )  # what is not selected has scores, too
    assert not is_unproved_selection(CASES["selected"]())


def test_language_model_shows_its_outcome_behind_the_text():
    encoding = encode_words("We wrote a new")
    target = Target("token", (7,), (len(encoding),), " constitution", "log_prob")
    output = show(scored(encoding=encoding, target=target, scores=[1, 2, -1], prediction=None))
    assert 'new → " constitution"' in output


def test_target_inside_the_text_is_marked_and_the_rest_unseen():
    encoding = encode_words("The capital of France is Paris today")
    explanation = scored(
        encoding=encoding, target=Target("token", (5,), (5,), "Paris", "log_prob"), scores=[1] * 4
    )
    kinds = {
        piece.text.strip(): piece.kind
        for piece in text_passages(explanation)[0].pieces
        if not piece.units
    }
    assert kinds["Paris"] == "target" and kinds["today"] == "unseen" and kinds["is"] == "plain"
    assert "‹Paris›" in show(explanation)


def test_continuation_goes_on_behind_its_text():
    encoding = encode_words(
        "Le chat dort", "", "The cat sleeps", names=("source", "prefix", "continuation")
    )
    explanation = scored(
        encoding=encoding, target=Target("text", (3, 4, 5), (3, 4, 5), "The cat sleeps", "log_prob")
    )
    assert [p.name for p in text_passages(explanation)] == ["source"]
    assert '→ "The cat sleeps"' in show(explanation)


def test_special_units_stand_where_their_token_stands():
    explanation = scored(
        encoding=encode_words("Guten Tag", "Hello", names=("source", "prefix"), specials=True)
    )
    passages = text_passages(explanation)
    assert [passage.pieces[-1].kind for passage in passages] == ["special", "special"]
    assert "Tag </s>" in bare(coloured(explanation))


def test_tokens_that_share_a_character_share_a_piece():
    encoding = encode_words(
        "ok 🎉",
        ids=[0, 1, 2],
        tokens=("ok", "🎉", "🎉"),
        segment=[0, 0, 0],
        start=[0, 3, 3],
        end=[2, 4, 4],
        positions=[0, 1, 2],
        fixed=[False] * 3,
    )
    pieces = text_passages(scored(encoding=encoding, level="token"))[0].pieces
    assert [(piece.text, piece.units) for piece in pieces] == [
        ("ok", (0,)),
        (" ", ()),
        ("🎉", (1, 2)),
    ]
