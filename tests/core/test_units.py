"""Units of any tokenizer: what is removed together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Slot
from raison.core.text_splitting import split_words
from raison.core.units import LEVELS, group_tokens
from raison.testing.tiny import tiny_model
from tests.helpers.token_units import HARD, KINDS, ORDINARY, check_units, encode, fuzz, split, valid


@pytest.fixture(scope="module")
def models():
    return {kind: tiny_model(family, "classification") for kind, family in KINDS.items()}


# -- units of every kind of tokenizer ---------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["token", "word", "sentence", "passage"])
def test_units_partition_what_may_be_removed(models, kind, level):
    for text in (*ORDINARY, *HARD):
        check_units(encode(models, kind, text), level)
        check_units(encode(models, kind, text, "Why is it so? 漢字 👍🏽."), level)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_arbitrary_text(models, kind):
    @settings(fuzz, max_examples=40)
    @given(valid)
    @example("\u200b")
    @example("\x00")
    def check(text):
        try:
            encoding = encode(models, kind, text)
        except InputError as error:
            assert "makes no tokens" in str(error)
            return
        for level in ("token", "word", "sentence", "passage"):
            check_units(encoding, level)
        for t in range(len(encoding)):
            assert encoding.start[t] == -1 or 0 <= encoding.start[t] <= encoding.end[t] <= len(text)

    check()


@pytest.mark.parametrize("kind", ["bytes", "fallback"])
@pytest.mark.parametrize("char", ["😀", "漢", "Ж"])
def test_bytes_of_a_character_are_one_unit(models, kind, char):
    encoding = encode(models, kind, f"so {char} it")
    place = 3
    pieces = [t for t in range(len(encoding)) if encoding.start[t] <= place < encoding.end[t]]
    assert len(pieces) >= len(char.encode())
    assert all(char in encoding.text_of(t) for t in pieces)
    units = group_tokens(encoding, "word")
    assert len({int(units.of[t]) for t in pieces}) == 1 and units.names[units.of[pieces[0]]] == char


@pytest.mark.parametrize("kind", ["bytes", "fallback"])
def test_bytes_of_a_joined_emoji_are_one_word(models, kind):
    units = check_units(encode(models, kind, "so 👩🏽‍🚀👍 go x"), "word")
    assert units.names[:4] == ("so", "👩🏽‍🚀", "👍", "go")


@pytest.mark.parametrize("kind", KINDS)
def test_word_names_read_as_the_text(models, kind):
    text = "She said it wasn't bad, 3.14 times."
    encoding = encode(models, kind, text)
    units = group_tokens(encoding, "word", np.ones(len(encoding), bool))
    expected = split(split_words, text)
    if (
        encoding.fixed[-1] and encoding.start[-1] >= 0
    ):  # a decoder's answer is read off the last token
        expected = expected[:-1]
    assert list(units.names) == expected


def test_a_straddling_token_joins_its_words(models):
    encoding = encode(models, "wordpiece", "so 😀👍🏽 it")  # one unknown piece for two emoji
    units = check_units(encoding, "word")
    assert units.names == ("so", "😀👍🏽", "it") and units.spans[1] == (0, 3, 6)


def by_hand(text, spans, fixed=(), segments=("text",), texts=None, segment=None, slots=()):
    size = len(spans)
    texts = texts or (text,)
    segment = segment or [0] * size
    return Encoding(
        ids=range(size),
        tokens=tuple(
            texts[s][a:b] if a >= 0 else "<s>" for (a, b), s in zip(spans, segment, strict=True)
        ),
        segments=segments,
        texts=texts,
        segment=segment,
        start=[a for a, _ in spans],
        end=[b for _, b in spans],
        positions=range(size),
        fixed=[t in fixed for t in range(size)],
        slots=slots,
    )


def test_straddling_chains_join_everything_they_touch():
    text = "ab cd ef gh"
    encoding = by_hand(text, [(0, 1), (1, 4), (4, 7), (7, 8), (9, 11)])
    assert group_tokens(encoding, "word").of.tolist() == [0, 0, 0, 0, 1]
    assert group_tokens(encoding, "word").names == ("ab cd ef", "gh")


def test_a_straddling_token_at_a_sentence_end_joins_the_sentences():
    text = "It is. So what. Yes."
    encoding = by_hand(text, [(0, 5), (5, 9), (9, 15), (15, 20)])
    assert group_tokens(encoding, "sentence").names == ("It is. So what.", "Yes.")


def test_white_space_goes_with_the_next_word_and_the_last_with_the_last():
    encoding = by_hand("  a  b  ", [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (6, 8)])
    units = group_tokens(encoding, "word")
    assert units.of.tolist() == [0, 0, 0, 1, 1, 1] and units.names == ("a", "b")


def test_empty_pieces_go_with_the_next_word():
    encoding = by_hand("a b", [(0, 0), (0, 1), (2, 2), (2, 3)])
    assert group_tokens(encoding, "word").of.tolist() == [0, 0, 1, 1]


def test_white_space_as_a_token_is_made_visible():
    units = group_tokens(by_hand("a \n\tb", [(0, 1), (1, 4), (4, 5)]), "token")
    assert units.names == ("a", "␣⏎⇥", "b")


def test_free_special_tokens_are_units_of_their_own():
    encoding = by_hand("a b", [(-1, -1), (0, 1), (2, 3), (-1, -1), (-1, -1)], fixed=(0,))
    for level in ("word", "sentence", "passage"):
        units = group_tokens(encoding, level)
        assert units.of[0] == -1 and len({units.of[3], units.of[4], units.of[1]}) == 3
        assert units.names[-2:] == ("<s>", "<s>") and units.spans[-1] == (0, -1, -1)


def test_only_free_tokens_have_units():
    encoding = by_hand("one two three", [(0, 1), (1, 3), (4, 7), (8, 13)], fixed=(3,))
    units = group_tokens(encoding, "word", np.array([False, True, True, True]))
    assert units.of.tolist() == [-1, 0, 1, -1] and units.names == ("ne", "two")


def test_equal_words_at_a_segment_border_stay_apart():
    spans = [(0, 1), (0, 1), (-1, -1), (0, 1)]
    encoding = by_hand(
        "", spans, segments=("a", "b", "c"), texts=("x", "x", "x"), segment=[0, 1, 1, 2]
    )
    for level in ("word", "sentence", "passage"):
        assert group_tokens(encoding, level).of.tolist() == [0, 1, 2, 3]


def test_a_text_without_words_has_units_still():
    assert group_tokens(by_hand(" \n ", [(0, 1), (1, 3)]), "word").of.tolist() == [0, 0]
    assert len(group_tokens(by_hand("", []), "word")) == 0


def test_unknown_levels_are_named():
    with pytest.raises(
        InputError, match="no units called 'line': use one of token, word, sentence, passage, slot"
    ):
        group_tokens(by_hand("a", [(0, 1)]), "line")
    assert LEVELS == ("token", "word", "sentence", "passage", "slot")


@pytest.mark.parametrize("kind", KINDS)
def test_levels_nest(models, kind):
    for text in ORDINARY:
        for pair in (None, "It is. It was."):
            encoding = encode(models, kind, text, pair)
            levels = [
                group_tokens(encoding, level).of
                for level in ("token", "word", "sentence", "passage")
            ]
            for fine, coarse in pairwise(levels):
                for unit in range(fine.max() + 1):
                    assert len(set(coarse[fine == unit])) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_passages_and_sentences_by_blank_lines(models, kind):
    text = "Old town. It is.\n\nThe hills!\n \nNo end"
    encoding = encode(models, kind, text, None)
    whole = not (encoding.fixed[-1] and encoding.start[-1] >= 0)
    end = "No end" if whole else text[text.index("No") : int(encoding.start[-1])]
    assert group_tokens(encoding, "passage").names == ("Old town. It is.", "The hills!", end)
    assert group_tokens(encoding, "sentence").names == ("Old town.", "It is.", "The hills!", end)


# -- slots ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_slots_are_units_and_the_template_is_fixed(models, kind):
    prompt = Example.from_template(
        "Review: {review} Rating: {stars} stars. End", review="A dull story", stars="4 or 5"
    )
    encoding = models[kind].encode([prompt])[0]
    units = check_units(encoding, "slot")
    assert units.names == ("review", "stars")
    removable = {encoding.text_of(t).strip() for t in np.flatnonzero(~encoding.fixed)}
    assert not removable & {"Review", "Rating", "stars", "End", ":"}
    for t in np.flatnonzero(~encoding.fixed & (encoding.start >= 0)):
        place = encoding.texts[0][encoding.start[t] : encoding.end[t]]
        assert not place.strip() or any(
            s.start < encoding.end[t] and encoding.start[t] < s.end for s in prompt.slots
        )
    assert len(check_units(encoding, "word")) == 6


def test_slots_in_any_order():
    text = "aa bb cc"
    slots = (Slot("last", 6, 8), Slot("first", 0, 2))
    encoding = by_hand(text, [(0, 1), (1, 2), (3, 5), (6, 8)], fixed=(2,), slots=slots)
    units = group_tokens(encoding, "slot")
    assert units.of.tolist() == [0, 0, -1, 1] and units.names == ("first", "last")


def test_a_token_that_straddles_the_edge_of_a_slot_goes_with_it():
    text = "(Paris)"
    encoding = by_hand(text, [(0, 3), (3, 7)], slots=(Slot("city", 1, 6),))
    units = group_tokens(encoding, "slot")
    assert units.of.tolist() == [0, 0] and units.names == ("city",)


def test_a_token_over_two_slots_joins_them():
    encoding = by_hand(
        "abcd", [(0, 1), (1, 3), (3, 4)], slots=(Slot("two", 2, 4), Slot("one", 0, 2))
    )
    units = group_tokens(encoding, "slot")
    assert units.of.tolist() == [0, 0, 0] and units.names == ("one + two",)


def test_slots_are_needed():
    with pytest.raises(InputError, match="no slots: build it with Example"):
        group_tokens(by_hand("a", [(0, 1)]), "slot")


pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
