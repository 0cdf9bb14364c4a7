"""What people marked, in the picture of a rationale: words in bold over it, linked words framed in the matrix."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.core.findings import Certificate
from raison.core.records import Encoding, Explanation, Span, Target
from raison.core.text_splitting import split_words
from raison.core.units import group_tokens
from raison.show import to_figure
from raison.show.rationale_matrix import CHOSEN, matrix_of_rationales
from raison.show.text_pieces import TextPiece, gold_characters, shorten_text_pieces, text_passages

drawing = pytest.mark.skipif(find_spec("matplotlib") is None, reason="pictures need matplotlib")
TEXT = "My dog barked all night at the"


def encode(*texts, names=("text",)):
    """Every word is a token with the space before it."""
    rows = []
    for segment, text in enumerate(texts):
        for a, b in split_words(text):
            a -= a > 0 and text[a - 1] == " "
            rows.append((text[a:b], segment, a, b))
    tokens, segment, first, last = zip(*rows, strict=True)
    size = np.arange(len(rows))
    return Encoding(
        size, tokens, names, texts, segment, first, last, size, np.zeros(len(rows), bool)
    )


def explain(encoding, target, chosen, level="token"):
    """A rationale of the units with these numbers."""
    units = group_tokens(encoding, level, target.free(encoding))
    selected = np.isin(np.arange(len(units)), chosen)
    certificate = Certificate(
        rule="argmax",
        sufficient=True,
        size=len(chosen),
        irreducible=True,
        is_prediction=True,
        kept_tokens=len(chosen) + 1,
        context_tokens=len(units) + 1,
    )
    made = (selected.astype(float), "refined", "tiny", "delete", selected, np.array(chosen))
    return Explanation(encoding, units, target, *made, certificate=certificate)


def barked(level="token", chosen=(1, 2)):
    encoding = encode(TEXT)
    return explain(
        encoding, Target("token", (7,), (len(encoding),), " moon", "log_prob"), list(chosen), level
    )


def span(word, text=TEXT, segment=""):
    start = text.index(word)
    return Span(start, start + len(word), segment)


def set_words(explanation, gold):
    """word -> (in bold, filled) of the picture's text; words stand there once."""
    from raison.show.figure.explanation_sheet import ExplanationSheet
    from raison.show.figure.typeset import SheetLabel

    sheet = ExplanationSheet(gold)
    sheet.add_texts(explanation)
    found = {}
    for mark in sheet.marks:
        if isinstance(mark, SheetLabel):
            boxes = [box for box in sheet.boxes if box.left <= mark.across < box.right]
            filled = any(box.top < mark.baseline < box.top + box.height for box in boxes)
            found[mark.text] = (mark.weight == "bold", filled)
    return found


# -- a text ---------------------------------------------------------------------------------------------------


@drawing
def test_gold_words_are_bold_and_the_rationale_is_filled():
    found = set_words(barked(), [span("dog"), span("night"), span("the")])
    assert found["dog"] == (True, True)
    assert found["barked"] == (False, True)
    assert found["night"] == (True, False)
    assert found["all"] == (False, False)
    assert found["the"] == (True, False)  # given to the model anyway, and marked by people
    assert set_words(barked(), None)["barked"] == (True, True)  # as it was, where nobody was asked
    assert set_words(barked(), [])["barked"] == (False, True)  # people marked nothing


@drawing
def test_gold_words_are_bold_inside_a_longer_unit():
    encoding = encode(f"{TEXT} moon. Then it slept.")
    found = set_words(
        explain(encoding, Target("label", (1,), text="noisy"), [0], "sentence"), [span("barked")]
    )
    assert found["barked"] == (True, True)
    assert found["dog"] == (False, True)
    assert found["slept."] == (False, False)


def test_pieces_are_cut_where_gold_begins_and_ends_and_nothing_is_lost():
    gold = [Span(1, 7), span("the")]  # "y dog " begins in a word and ends behind one
    (passage,) = text_passages(barked(), gold)
    assert "".join(piece.text for piece in passage.pieces if piece.kind != "outcome") == TEXT
    assert [piece.text for piece in passage.pieces if piece.gold] == ["y", " ", "dog", "the"]
    assert not any(piece.gold for piece in text_passages(barked())[0].pieces)


def test_a_line_break_with_a_score_is_seen_with_gold_as_without():
    encoding = Encoding(
        [0, 1, 2],
        ("a", "\n", "b"),
        ("text",),
        ("a\nb",),
        [0] * 3,
        [0, 1, 2],
        [1, 2, 3],
        [0, 1, 2],
        [False] * 3,
    )
    explanation = explain(encoding, Target("label", (1,), text="x"), [1])
    assert [piece.text for piece in text_passages(explanation, [Span(0, 1)])[0].pieces] == [
        "a",
        "⏎\n",
        "b",
    ]


def test_gold_is_not_left_out_of_a_long_text():
    explanation = barked()
    dull = [TextPiece("far away " * 40)]
    left = shorten_text_pieces([*dull, TextPiece("dog", gold=True), *dull], explanation, tail=True)
    assert [piece.text for piece in left if piece.gold] == ["dog"]
    assert len("".join(piece.text for piece in left)) < 600


def test_spans_belong_to_a_segment():
    encoding = encode("who barked", TEXT, names=("question", "context"))
    first, second = gold_characters(encoding, [Span(0, 3), span("dog", segment="context")])
    assert first.nonzero()[0].tolist() == [0, 1, 2]
    assert second.nonzero()[0].tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ([Span(0, 99)], "end behind the text"),
        ([Span(0, 2, "context")], "but the texts are text"),
        ([(Span(0, 2), Span(3, 6))], "are spans of characters"),
    ],
)
@drawing
def test_gold_that_does_not_fit_the_text(tmp_path, gold, said):
    with pytest.raises(InputError, match=said):
        to_figure(barked(), tmp_path / "a.svg", gold=gold)
    assert not list(tmp_path.iterdir())


@drawing
def test_the_picture_says_what_bold_means(tmp_path):
    to_figure(barked(), tmp_path / "a.svg", gold=[span("dog")])
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert "<!-- people -->" in svg and "<!-- filled -->" in svg
    to_figure(barked(), tmp_path / "b.svg")
    assert "<!-- people -->" not in (tmp_path / "b.svg").read_text("utf-8")


@drawing
def test_methods_under_each_other_have_gold_too(tmp_path):
    encoding = encode("A great film")
    units, target = group_tokens(encoding, "word"), Target("label", (1,), text="good")
    both = [
        Explanation(encoding, units, target, [0.1, 2, -1], name, "tiny")
        for name in ("occlusion", "lime")
    ]
    to_figure(both, tmp_path / "a.svg", gold=[span("great", "A great film")])
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert "<!-- people -->" in svg and "<!-- filled -->" not in svg


# -- a matrix -------------------------------------------------------------------------------------------------

SOURCE, WRITTEN = "der Hund bellt", "the dog is barking"
LINKS = [("der", "the"), ("Hund", "dog"), ("bellt", "is"), ("bellt", "barking")]


def translated():
    """A rationale for each written word: the source word of the same number, the last for those beyond it."""
    encoding = encode(SOURCE, WRITTEN, names=("source", "prefix"))
    found = []
    for place in range(3, 7):
        target = Target("token", (place,), (place,), encoding.tokens[place], "log_prob")
        found.append(explain(encoding, target, [min(place - 3, 1)]))
    return found


def pairs():
    return [(span(one, SOURCE), span(other, WRITTEN)) for one, other in LINKS]


def test_linked_words_have_their_cells():
    found = matrix_of_rationales(translated(), pairs())
    names = [column.name for column in found.columns]
    assert found.gold is not None and found.gold.shape == found.cells.shape
    told = {
        (found.rows[r].target.text.strip(), names[c])
        for r, c in zip(*np.nonzero(found.gold), strict=True)
    }
    assert told == {(written, read) for read, written in LINKS}
    assert (found.cells == matrix_of_rationales(translated()).cells).all()
    assert matrix_of_rationales(translated()).gold is None
    hits = (found.gold & (found.cells == CHOSEN)).sum(1)
    assert hits.tolist() == [
        1,
        1,
        0,
        0,
    ]  # the rationales of the last two words are not what people linked


def test_a_unit_that_people_linked_in_part_is_taken_apart():
    encoding = Encoding(
        [0, 1, 2, 3, 4], ("rat", "haus", "platz", "town", " hall"), ("source", "prefix"), ("rathausplatz", "town hall"),
        [0, 0, 0, 1, 1], [0, 3, 7, 0, 4], [3, 7, 12, 4, 9], [0, 1, 2, 0, 1], [False] * 5,
    )  # fmt: skip
    rows = [
        explain(encoding, Target("token", (p,), (p,), encoding.tokens[p], "log_prob"), [0], "word")
        for p in (3, 4)
    ]
    linked = [(Span(0, 3), Span(0, 9))]
    assert [column.name for column in matrix_of_rationales(rows).columns] == [
        "rathaus",
        "platz",
        "town",
    ]
    found = matrix_of_rationales(rows, linked)
    assert [column.name for column in found.columns][:3] == ["rat", "haus", "platz"]
    assert found.gold is not None and found.gold[:, 0].all() and not found.gold[:, 1:].any()


@drawing
def test_the_picture_frames_what_people_linked(tmp_path):
    from raison.show.figure.canvas import INK
    from raison.show.figure.matrix import matrix_figure

    def frames(gold):
        from matplotlib.colors import to_hex

        patches = matrix_figure(matrix_of_rationales(translated(), gold)).axes[0].patches
        return sum(
            not patch.get_fill() and to_hex(patch.get_edgecolor()) == INK for patch in patches
        )

    assert frames(pairs()) == len(LINKS) + 1  # and the legend
    assert frames([]) == 1
    assert frames(None) == 0
    to_figure(translated(), tmp_path / "a.svg", gold=pairs())
    assert "linked by people" in (tmp_path / "a.svg").read_text("utf-8")
    with pytest.raises(InputError, match="pairs of spans"):
        to_figure(translated(), tmp_path / "b.svg", gold=[span("Hund", SOURCE)])
