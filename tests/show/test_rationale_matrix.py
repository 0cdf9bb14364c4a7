"""Which rationales make a matrix, and what its cells are."""

from __future__ import annotations

from raison.core.records import Encoding, Explanation, Target
from raison.show.explanation_groups import group_into_matrices
from raison.show.rationale_matrix import CHOSEN, GIVEN, HIDDEN, SPARED, matrix_of_rationales
from tests.helpers.rationales import (
    court_rationale,
    encode_spaced_words,
    rationale,
    rationales_of_tokens,
)


def test_cells_stand_where_their_tokens_stand():
    found = matrix_of_rationales(list(reversed(rationales_of_tokens())))
    assert [row.target.text for row in found.rows] == [" cat", " sat", " on", " the", " mat"]
    assert [column.name for column in found.columns] == ["A", "cat", "sat", "on", "the"]
    G, C, S, H = GIVEN, CHOSEN, SPARED, HIDDEN
    assert found.cells.tolist() == [
        [G, H, H, H, H],
        [C, G, H, H, H],
        [C, C, G, H, H],
        [C, C, S, G, H],
        [C, C, S, S, G],
    ]


def test_special_tokens_have_no_column_and_units_are_mapped_by_token():
    found = matrix_of_rationales(rationales_of_tokens(start=(0,)))
    assert [column.name for column in found.columns] == ["A", "cat", "sat", "on", "the"]
    assert [column.tokens for column in found.columns] == [(1,), (2,), (3,), (4,), (5,)]
    assert found.cells[0].tolist() == [GIVEN] + [HIDDEN] * 4


def test_tokens_of_one_unit_share_a_column():
    encoding = encode_spaced_words("Heute Nacht", "so it is", names=("source", "prefix"))
    encoding = Encoding(**{**encoding.to_dict(), "start": [0, 3, 0, 2, 5], "end": [3, 11, 2, 5, 8]})
    found = []
    for p in (3, 4):
        target = Target("token", (p,), (p,), encoding.tokens[p], "log_prob")
        found.append(rationale(encoding, target, [0], "word"))
    columns = matrix_of_rationales(found).columns
    assert [(column.name, column.tokens) for column in columns] == [
        ("Heute Nacht", (0, 1)),
        ("so", (2,)),
        ("it", (3,)),
    ]


def test_lists_become_matrices():
    five, lone = rationales_of_tokens(), court_rationale()
    assert [len(sheet) for sheet in group_into_matrices([lone, *five])] == [1, 5]
    other = [Explanation(**{**vars(e), "method": "greedy"}) for e in five]
    mixed = [e for pair in zip(five, other, strict=True) for e in pair]
    assert [[e.method for e in sheet] for sheet in group_into_matrices(mixed)] == [
        ["refined"] * 5,
        ["greedy"] * 5,
    ]
    assert [len(sheet) for sheet in group_into_matrices(five[:2])] == [1, 1]
    assert [len(sheet) for sheet in group_into_matrices([*five, five[0]])] == [
        1
    ] * 6  # one target twice is no matrix
    bare = [Explanation(**{**vars(e), "certificate": None, "steps": ()}) for e in five]
    assert [len(sheet) for sheet in group_into_matrices(bare)] == [1] * 5
